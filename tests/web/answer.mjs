// Answers a list of questions about model files with tacit.js: JSON in (a file), JSON out (stdout).
// Arrays of numbers are written as they are; JSON has no NaN and no infinity, so these are words.

import { readFileSync } from "node:fs";
import { Model } from "../../web/tacit.js";

const [, , path] = process.argv;
const jobs = JSON.parse(readFileSync(path, "utf-8"));

function ask(model, { own, unknown }) {
  const pairs = model.implicit ? own.map(([item]) => item) : own;
  const options = { because: model.knowsReasons && own.length > 0, std: model.knowsStd };
  const orders = model.knowsChoice ? [undefined, "rating", "choice"] : [undefined];
  return {
    predict: [...model.predict(pairs)],
    unclipped: [...model.predict(pairs, { clip: false })],
    some: [...model.predict(pairs, { items: [model.ids[1], unknown, model.ids[0]] })],
    stds: model.knowsStd ? [...model.stds(pairs)] : null,
    lists: orders.map((by) => model.recommend(pairs, 7, { ...options, by })),
    all: model.recommend(pairs, model.ids.length, { includeRated: true }).map(({ item }) => item),
  };
}

const answers = jobs.map(({ file, questions }) => {
  try {
    const model = Model.parse(readFileSync(file));
    const { kind, ids, titles, ratingRange, implicit, knowsStd, knowsChoice, knowsReasons, certificate } = model;
    const about = { kind, ids, titles, ratingRange, implicit, knowsStd, knowsChoice, knowsReasons, certificate };
    return { about, verified: model.verify(), answers: questions.map((question) => ask(model, question)) };
  } catch (error) {
    return { error: error.name, message: error.message };
  }
});

const words = (_, value) => {
  if (typeof value === "bigint") return `${value}`;
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
};
process.stdout.write(JSON.stringify(answers, words));
