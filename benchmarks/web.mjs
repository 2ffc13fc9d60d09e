// Times tacit.js: reading a model, one person's predictions, and her list. Run by web.py.

import { readFileSync } from "node:fs";
import { Model } from "../web/tacit.js";

const [, , path, ratings, runs] = process.argv;

/** Milliseconds of processor time that some work takes. */
function spent(work) {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** The first time, and the median of some more. */
function times(count, work) {
  const first = spent(work);
  const more = Array.from({ length: count }, () => spent(work)).sort((a, b) => a - b);
  return { first, median: more[more.length >> 1] };
}

const bytes = readFileSync(path);
let model;
const read = spent(() => (model = Model.parse(bytes)));
const [low, high] = model.ratingRange;
const own = Array.from({ length: Number(ratings) }, (_, k) => {
  const item = model.ids[Math.floor((k * model.ids.length) / Number(ratings))];
  return model.implicit ? item : [item, low + ((k * 7) % 10) * 0.1 * (high - low)];
});
const list = { std: model.knowsStd, because: model.knowsReasons };
console.log(JSON.stringify({
  bytes: bytes.length,
  read,
  predict: times(Number(runs), () => model.predict(own)),
  recommend: times(Number(runs), () => model.recommend(own, 10, list)),
}));
