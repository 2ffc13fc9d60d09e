// Times tacit.js: reading a model, one person's predictions, and her list. Run by web.py.

import { readFileSync } from "node:fs";
import { Model } from "../web/tacit.js";

const [, , path, ratings, runs] = process.argv;

/** The median and the longest time in milliseconds, after some runs that are not counted. */
function times(count, work) {
  const taken = [];
  for (let run = -5; run < count; run++) {
    const start = performance.now();
    work(run);
    if (run >= 0) taken.push(performance.now() - start);
  }
  taken.sort((a, b) => a - b);
  return { median: taken[taken.length >> 1], longest: taken[taken.length - 1] };
}

const bytes = readFileSync(path);
const start = performance.now();
const model = Model.parse(bytes);
const read = performance.now() - start;
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
