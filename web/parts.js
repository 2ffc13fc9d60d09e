// What local rules share: published arrays, each checked, and a person's own ratings.

import { dotRow } from "./algebra.js";
import { ModelFileError } from "./reading.js";

/**
 * A person's own ratings: positions in the catalogue, rising, and values in single precision.
 * @typedef {{items: Int32Array, values: Float64Array}} Row
 *
 * What each of her ratings adds to the predictions of some items.
 * @typedef {{baselines: Float64Array, added: Float64Array[]}} Contributions
 *
 * @typedef {Object} Rule
 * @property {string} kind
 * @property {(row: Row) => Float64Array} scores predicted rating of every item
 * @property {((row: Row, items: ArrayLike<number>) => Float64Array)=} stds sd of their errors
 * @property {((row: Row) => Float64Array)=} choice score of choice of every item
 * @property {((scores: Float64Array, choices: Float64Array) => Float64Array)=} ranking what lists are
 *     ordered by, from the two above
 * @property {((row: Row, items: ArrayLike<number>) => Contributions)=} contributions
 *
 * @typedef {import("./reading.js").Tensor} Tensor
 * @typedef {import("./algebra.js").Matrix} Matrix
 */

/** @param {boolean} fine @param {string} what */
export function must(fine, what = "the arrays of the local rule do not fit together") {
  if (!fine) throw new ModelFileError(what);
}

/** @param {unknown} value */
export function number(value) {
  must(typeof value === "number" && !Number.isNaN(value), "the settings of the local rule are impossible");
  return /** @type {number} */ (value);
}

/** @param {unknown} value */
export function mostRatings(value) {
  if (value === null) return Infinity;
  must(number(value) >= 1 && number(value) <= 2 ** 53, "the settings of the local rule are impossible");
  return Math.trunc(number(value));
}

/** @param {ArrayLike<number>} values @param {(value: number) => boolean} fine */
export function every(values, fine) {
  for (let at = 0; at < values.length; at++) if (!fine(values[at])) return false;
  return true;
}

/** Published arrays by name, each checked: of this shape, 64-bit floats, finite. */
export class Parts {
  /** @param {Map<string, Tensor>} tensors @param {number} items */
  constructor(tensors, items) {
    this.tensors = tensors;
    this.items = items;
    this.offsets = this.vector("offsets", items);
  }

  /** @param {string} name @param {(number | null)[]} shape null is any length */
  array(name, shape) {
    const found = this.tensors.get("rule." + name);
    must(found !== undefined && found.data instanceof Float64Array);
    const { data, shape: there } = /** @type {Tensor} */ (found);
    must(there.length === shape.length && shape.every((size, at) => size === null || size === there[at]));
    must(every(data, Number.isFinite));
    return { data: /** @type {Float64Array} */ (data), shape: there };
  }

  /** @param {string} name @param {number | null} size */
  vector(name, size) {
    return this.array(name, [size]).data;
  }

  /** @param {string} name @param {number | null} rows @param {number | null} columns @returns {Matrix} */
  matrix(name, rows, columns) {
    const { data, shape } = this.array(name, [rows, columns]);
    return { data, rows: shape[0], columns: shape[1] };
  }
}

/** Own ratings less offsets and own mean, scaled down to a norm. @param {Row} row */
export function centred(row, offsets, { centre = true, shrink = 0, norm = Infinity, most = Infinity }) {
  const count = row.items.length;
  const gaps = Float64Array.from(row.values, (value, at) => value - offsets[row.items[at]]);
  let mean = 0;
  if (centre && count) mean = gaps.reduce((sum, gap) => sum + gap, 0) / (count + shrink);
  let total = 0;
  for (let at = 0; at < count; at++) {
    gaps[at] -= mean;
    total += gaps[at] ** 2;
  }
  total *= rowWeight(count, most);
  const scale = total > 0 ? Math.min(1, norm / Math.sqrt(total)) : 1;
  return { gaps: gaps.map((gap) => gap * scale), mean };
}

/** What sums over a row are multiplied by: most/length, at most one. */
export function rowWeight(length, most) {
  return length > 0 ? Math.min(1, most / length) : 1;
}

/** Return offsets + mean + F u. @param {Matrix} factors */
export function linearScores(offsets, mean, factors, u) {
  const scores = new Float64Array(offsets.length);
  for (let j = 0; j < scores.length; j++) scores[j] = offsets[j] + mean + dotRow(factors, j, u);
  return scores;
}

/** Weights of ratings from those of ratings less the own mean, which is added too. */
export function withOwnMean(weights, shrink) {
  const share = 1 / Math.max(weights.length + shrink, 1e-12);
  const rest = share * (1 - weights.reduce((sum, weight) => sum + weight, 0));
  return weights.map((weight) => weight + rest);
}
