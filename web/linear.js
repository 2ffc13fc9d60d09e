// Local rules that are linear in one's own ratings: projection, and ridge regression on item factors.

import { cholesky, dotRow, forward, gram, matrixFrom, substitute } from "./algebra.js";
import { centred, every, linearScores, mostRatings, must, number, rowWeight, withOwnMean } from "./parts.js";

/**
 * @typedef {import("./parts.js").Row} Row
 * @typedef {import("./parts.js").Parts} Parts
 * @typedef {import("./algebra.js").Matrix} Matrix
 */

/** Ridge regression on item factors F with noise D: ridge and latent-factor rules share it. */
export class Regression {
  /** @param {Matrix} factors @param {Float64Array} noise */
  constructor(factors, noise) {
    this.factors = factors;
    this.noise = noise;
  }

  /** G = R F at the rated items, with R one over the sd of the noise. @param {Row} row */
  block(row) {
    const { factors, noise } = this;
    const block = matrixFrom(row.items.length, factors.columns);
    row.items.forEach((item, p) => {
      const root = 1 / Math.sqrt(noise[item]);
      for (let k = 0; k < factors.columns; k++) {
        block.data[p * factors.columns + k] = root * factors.data[item * factors.columns + k];
      }
    });
    return block;
  }

  /** Return (G^T G + I)^-1 G^T R gaps, or null where arithmetic breaks down. @param {Row} row */
  solve(row, gaps) {
    const block = this.block(row);
    const targets = gaps.map((gap, p) => gap / Math.sqrt(this.noise[row.items[p]]));
    const wide = block.rows < block.columns;
    const inner = gram(block, wide);
    if (!cholesky(inner)) return null;
    const solved = new Float64Array(block.columns);
    if (wide) substitute(inner, targets);
    for (let p = 0; p < block.rows; p++) {
      for (let k = 0; k < block.columns; k++) solved[k] += targets[p] * block.data[p * block.columns + k];
    }
    if (!wide) substitute(inner, solved);
    return every(solved, Number.isFinite) ? solved : null;
  }

  /** The sd of the error of each prediction; `doubt` is the variance of that of the own mean. */
  stds(row, items, doubt) {
    const rank = this.factors.columns;
    const upper = gram(this.block(row), false);
    const ones = new Float64Array(rank);
    row.items.forEach((item) => {
      for (let k = 0; k < rank; k++) ones[k] += this.factors.data[item * rank + k] / this.noise[item];
    });
    const fine = cholesky(upper);
    if (fine) substitute(upper, ones);
    else ones.fill(0);
    const vector = new Float64Array(rank);
    return Float64Array.from(items, (item) => {
      vector.set(this.factors.data.subarray(item * rank, item * rank + rank));
      const left = doubt ? 1 - dotRow(this.factors, item, ones) : 0;
      if (fine) forward(upper, vector);
      let variance = this.noise[item];
      for (let k = 0; k < rank; k++) variance += vector[k] ** 2;
      if (doubt) variance += doubt * left ** 2;
      return Number.isNaN(variance) ? Infinity : Math.sqrt(variance);
    });
  }

  /** What a rating that is 1 above its expectation adds to each prediction: items by ratings. */
  weights(row, items) {
    const rank = this.factors.columns;
    const upper = gram(this.block(row), false);
    must(cholesky(upper), "the arrays of the local rule are impossible");
    const solved = Array.from(row.items, (item) => {
      const own = this.factors.data.slice(item * rank, item * rank + rank).map((f) => f / this.noise[item]);
      substitute(upper, own);
      return own;
    });
    return Array.from(items, (item) => Float64Array.from(solved, (own) => dotRow(this.factors, item, own)));
  }
}

/** Projection of one's own row on a published subspace (Algorithm 4). @param {Parts} parts */
export function projection(parts, settings) {
  const { offsets } = parts;
  const basis = parts.matrix("basis", parts.items, null);
  const scale = number(settings.scale);
  const most = mostRatings(settings.max_ratings);
  const centre = Boolean(settings.centre);
  must(scale > 0 && scale < Infinity, "the settings of the local rule are impossible");
  const rank = basis.columns;
  return {
    scores(row) {
      const { gaps, mean } = centred(row, offsets, { centre });
      const inner = new Float64Array(rank);
      const weight = scale * rowWeight(row.items.length, most);
      row.items.forEach((item, p) => {
        for (let k = 0; k < rank; k++) inner[k] += weight * gaps[p] * basis.data[item * rank + k];
      });
      return linearScores(offsets, mean, basis, inner);
    },
    contributions(row, items) {
      const weight = scale * rowWeight(row.items.length, most);
      const own = Array.from(row.items, (item) => basis.data.subarray(item * rank, item * rank + rank));
      const added = Array.from(items, (item) => {
        const weights = Float64Array.from(own, (vector) => weight * dotRow(basis, item, vector));
        return (centre ? withOwnMean(weights, 0) : weights).map(
          (each, p) => each * (row.values[p] - offsets[row.items[p]]),
        );
      });
      return { baselines: Float64Array.from(items, (item) => offsets[item]), added };
    },
  };
}

/** Ridge regression on published item factors. @param {Parts} parts */
export function ridge(parts, settings) {
  const { offsets, items: count } = parts;
  const noise = parts.vector("noise", count);
  const factors = parts.matrix("factors", count, null);
  const centre = Boolean(settings.centre);
  const shrink = number(settings.shrink);
  must(every(noise, (v) => v > 0) && shrink >= 0 && shrink < Infinity, "the settings of the local rule are impossible");
  const regression = new Regression(factors, noise);
  const rank = factors.columns;

  let level = 0; // the mean over items of |f|^2 + noise, times their number
  for (let at = 0; at < factors.data.length; at++) level += factors.data[at] ** 2;
  for (let at = 0; at < count; at++) level += noise[at];

  /** The variance of the error of the own mean. */
  function doubt(row) {
    const shared = new Float64Array(rank);
    let errors = 0;
    row.items.forEach((item) => {
      errors += noise[item];
      for (let k = 0; k < rank; k++) shared[k] += factors.data[item * rank + k];
    });
    for (const part of shared) errors += part ** 2;
    const counted = (row.items.length + shrink) ** 2;
    return counted > 0 ? ((shrink * level) / count + errors) / counted : Infinity;
  }

  return {
    scores(row) {
      const { gaps, mean } = centred(row, offsets, { centre, shrink });
      return linearScores(offsets, mean, factors, regression.solve(row, gaps) ?? new Float64Array(rank));
    },
    stds: (row, items) => regression.stds(row, items, centre ? doubt(row) : 0),
    contributions(row, items) {
      const added = regression.weights(row, items).map((weights) =>
        (centre ? withOwnMean(weights, shrink) : weights).map(
          (weight, p) => weight * (row.values[p] - offsets[row.items[p]]),
        ),
      );
      return { baselines: Float64Array.from(items, (item) => offsets[item]), added };
    },
  };
}
