// Local rules that know what people choose: latent factors, the default, and interactions.

import { cholesky, dotRow, gram, matrixFrom, normalCdf, softplus, substitute } from "./algebra.js";
import { Regression } from "./linear.js";
import { every, linearScores, must, number } from "./parts.js";

/**
 * @typedef {import("./parts.js").Row} Row
 * @typedef {import("./parts.js").Parts} Parts
 * @typedef {import("./algebra.js").Matrix} Matrix
 */

const LARGEST = 1e9; // of any number of the choice model; beyond it arithmetic would fail
const SOFT = 0.1; // of the mean share: scores of choice below it fade to zero, and keep their order
const LEAST_POWER = 0.5; // of the chance to like an item, beside the score of choice

/** What a person chose and how she rated it: the default. @param {Parts} parts */
export function latentFactors(parts, settings) {
  const { offsets, items: count } = parts;
  const factors = parts.matrix("factors", count, null);
  const noise = parts.vector("noise", count);
  const choiceFactors = parts.matrix("choice_factors", count, null);
  const choices = choiceFactors.columns;
  const choiceNoise = parts.vector("choice_noise", count);
  const prior = parts.matrix("prior", choices, factors.columns);
  const liked = number(settings.liked);
  const usable = [choiceFactors, prior].every(({ data }) => every(data, (v) => Math.abs(v) < LARGEST));
  const positive = every(noise, (v) => v > 0) && every(choiceNoise, (v) => v > 0);
  must(usable && positive && choices > 0 && Number.isFinite(liked), "the arrays of the local rule are impossible");
  const regression = new Regression(factors, noise);
  const chosenBy = choiceWeights(choiceFactors, choiceNoise);
  const { weights: tells, strengths } = choiceParts(choiceFactors, choiceNoise);
  let popularity = 0;
  let common = 0; // of the squares: what is the same for everyone
  for (let j = 0; j < count; j++) {
    popularity += choiceFactors.data[j * choices];
    common += choiceFactors.data[j * choices] ** 2;
  }
  const squares = choiceFactors.data.reduce((sum, value) => sum + value ** 2, 0);
  const power = Math.max(LEAST_POWER, common / Math.max(squares, 1e-300)); // of liking
  const soft = SOFT * Math.max(popularity / count, 1e-12);
  const usual = Math.max(popularity ** 2, 1); // the mean number of ratings

  /** c: someone without ratings is taken to be average. */
  function choiceMeans(row) {
    const found = new Float64Array(choices);
    if (!row.items.length) found[0] = 1;
    const share = 1 / Math.sqrt(row.items.length);
    row.items.forEach((item) => {
      for (let k = 0; k < choices; k++) found[k] += share * chosenBy.data[item * choices + k];
    });
    return found;
  }

  /** c', of which scores of choice are made: people with many ratings are drawn less to the mean. */
  function choiceOf(row) {
    const found = new Float64Array(choices);
    const many = row.items.length;
    if (!many) {
      found[0] = 1;
      return found;
    }
    row.items.forEach((item) => {
      for (let k = 0; k < choices; k++) found[k] += tells.data[item * choices + k] / Math.sqrt(many);
    });
    const certainty = Math.min(10, Math.max(0.1, Math.sqrt(many / usual)));
    const upper = { ...strengths, data: strengths.data.slice() };
    for (let k = 0; k < choices; k++) upper.data[k * choices + k] += 1 / certainty;
    must(cholesky(upper), "the arrays of the local rule are impossible");
    substitute(upper, found);
    return found;
  }

  /** W^T c: the factors that are expected of her choice alone. */
  function expected(row) {
    const means = choiceMeans(row);
    const own = new Float64Array(factors.columns);
    means.forEach((mean, a) => {
      for (let k = 0; k < own.length; k++) own[k] += mean * prior.data[a * own.length + k];
    });
    return own;
  }

  function scores(row) {
    const own = expected(row);
    const gaps = Float64Array.from(
      row.items, (item, p) => row.values[p] - offsets[item] - dotRow(factors, item, own),
    );
    const solved = regression.solve(row, gaps);
    const sum = own.map((part, k) => (solved ? part + solved[k] : 0));
    return linearScores(offsets, 0, factors, every(sum, Number.isFinite) ? sum : sum.fill(0));
  }

  function choice(row) {
    const means = choiceOf(row);
    const found = new Float64Array(count);
    for (let j = 0; j < count; j++) found[j] = soft * softplus(dotRow(choiceFactors, j, means) / soft);
    return found;
  }

  return {
    scores,
    choice,
    stds: (row, items) => regression.stds(row, items, 0),
    ranking: (ratings, chosen) =>
      chosen.map((each, j) => each * normalCdf((ratings[j] - liked) / Math.sqrt(noise[j])) ** power),
    contributions(row, items) {
      const own = expected(row);
      const mean = (item) => offsets[item] + dotRow(factors, item, own);
      const gaps = Float64Array.from(row.items, (item, p) => row.values[p] - mean(item));
      const added = regression.weights(row, items).map((weights) => weights.map((weight, p) => weight * gaps[p]));
      return { baselines: Float64Array.from(items, mean), added };
    },
  };
}

/** Return D^-1 V, items by choice factors, and V^T D^-1 V. @param {Matrix} factors */
function choiceParts(factors, noise) {
  const size = factors.columns;
  const roots = matrixFrom(factors.rows, size);
  const weights = matrixFrom(factors.rows, size);
  for (let j = 0; j < factors.rows; j++) {
    for (let k = 0; k < size; k++) {
      roots.data[j * size + k] = factors.data[j * size + k] / Math.sqrt(noise[j]);
      weights.data[j * size + k] = factors.data[j * size + k] / noise[j];
    }
  }
  return { weights, strengths: gram(roots, false, 0) };
}

/** Return H = D^-1 V (I + V^T D^-1 V)^-1, items by choice factors. @param {Matrix} factors */
function choiceWeights(factors, noise) {
  const { weights, strengths } = choiceParts(factors, noise);
  const size = factors.columns;
  for (let k = 0; k < size; k++) strengths.data[k * size + k] += 1;
  must(cholesky(strengths), "the arrays of the local rule are impossible");
  for (let j = 0; j < factors.rows; j++) substitute(strengths, weights.data.subarray(j * size, j * size + size));
  return weights;
}

/** What a person touched in, a score of every item out. @param {Parts} parts */
export function interactions(parts) {
  const { offsets, items: count } = parts;
  const factors = parts.matrix("factors", count, null);
  const rank = factors.columns;
  const total = offsets.reduce((sum, share) => sum + share, 0);
  const shares = every(offsets, (share) => share >= 0) && Math.abs(total - 1) < 1e-6;
  must(shares && every(factors.data, (v) => Math.abs(v) <= LARGEST), "the arrays of the local rule are impossible");
  const heavy = matrixFrom(count, rank); // root of p_j times f_j
  const middle = new Float64Array(rank);
  for (let j = 0; j < count; j++) {
    for (let k = 0; k < rank; k++) {
      const factor = factors.data[j * rank + k];
      heavy.data[j * rank + k] = Math.sqrt(offsets[j]) * factor;
      middle[k] += offsets[j] * factor;
    }
  }
  const strengths = gram(heavy, false, 0);

  /** I + d K in Cholesky's form. */
  function inner(many) {
    const upper = { ...strengths, data: strengths.data.map((value) => many * value) };
    for (let k = 0; k < rank; k++) upper.data[k * rank + k] += 1;
    must(cholesky(upper), "the arrays of the local rule are impossible");
    return upper;
  }

  return {
    scores(row) {
      const taste = middle.map((value) => -row.items.length * value);
      row.items.forEach((item) => {
        for (let k = 0; k < rank; k++) taste[k] += factors.data[item * rank + k];
      });
      substitute(inner(row.items.length), taste);
      return new Float64Array(count).map((_, j) => offsets[j] * (1 + dotRow(factors, j, taste)));
    },
    contributions(row, items) {
      const upper = inner(row.items.length);
      const solved = (vector) => (substitute(upper, vector), vector);
      const own = Array.from(row.items, (item) => solved(factors.data.slice(item * rank, item * rank + rank)));
      const average = solved(middle.slice());
      return {
        baselines: Float64Array.from(
          items, (item) => offsets[item] * (1 - row.items.length * dotRow(factors, item, average)),
        ),
        added: Array.from(items, (item) =>
          Float64Array.from(own, (vector) => offsets[item] * dotRow(factors, item, vector)),
        ),
      };
    },
  };
}
