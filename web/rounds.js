// Local rules that are not linear in one's own ratings: rounds that are replayed, and neighbours.

import { centred, every, mostRatings, must, number, rowWeight } from "./parts.js";

/**
 * @typedef {import("./parts.js").Parts} Parts
 */

/** Frank-Wolfe's rounds, replayed on one's own ratings (Algorithm 1). @param {Parts} parts */
export function replay(parts, settings) {
  const { offsets, items: count } = parts;
  const directions = parts.matrix("directions", null, count);
  const gains = parts.vector("gains", directions.rows);
  const keeps = parts.vector("keeps", directions.rows);
  const norm = number(settings.row_norm);
  const most = mostRatings(settings.max_ratings);
  const centre = Boolean(settings.centre);
  must(norm > 0 && every(keeps, (v) => v >= 0 && v <= 1), "the settings of the local rule are impossible");
  return {
    scores(row) {
      const { gaps, mean } = centred(row, offsets, { centre, norm, most });
      const weight = rowWeight(gaps.length, most);
      const fitted = new Float64Array(gaps.length);
      const coefficients = new Float64Array(gains.length);
      for (let t = 0; t < gains.length; t++) {
        const at = (p) => directions.data[t * count + row.items[p]];
        let along = 0;
        for (let p = 0; p < gaps.length; p++) along += (fitted[p] - gaps[p]) * at(p);
        const coefficient = -gains[t] * weight * along;
        let total = 0;
        for (let p = 0; p < gaps.length; p++) {
          fitted[p] = keeps[t] * fitted[p] + coefficient * at(p);
          total += fitted[p] ** 2;
        }
        const length = Math.sqrt(weight * total);
        const factor = length <= norm ? 1 : length < Infinity ? norm / length : 0;
        for (let p = 0; p < gaps.length; p++) fitted[p] = factor > 0 ? factor * fitted[p] : 0;
        for (let earlier = 0; earlier < t; earlier++) coefficients[earlier] *= keeps[t] * factor;
        coefficients[t] = factor > 0 ? coefficient * factor : 0;
      }
      const scores = Float64Array.from(offsets, (offset) => offset + mean);
      coefficients.forEach((coefficient, t) => {
        for (let j = 0; j < count; j++) scores[j] += coefficient * directions.data[t * count + j];
      });
      return scores;
    },
  };
}

/** Projected gradient: fill one's row in, map it, and again (Algorithm 5). @param {Parts} parts */
export function filling(parts, settings) {
  const { offsets, items: count } = parts;
  const rates = parts.vector("rates", null);
  const whole = parts.tensors.has("rule.maps"); // of version 0.1.0
  const maps = whole ? parts.array("maps", [rates.length, count, count]).data : null;
  const norm = number(settings.row_norm);
  const norms = whole ? new Float64Array(rates.length).fill(norm) : parts.vector("norms", rates.length);
  const ranks = whole ? [] : [...settings.ranks].map(number);
  const rank = ranks.reduce((sum, each) => sum + each, 0);
  const vectors = whole ? null : parts.matrix("vectors", count, rank);
  const shrinkage = whole ? null : parts.vector("shrinkage", rank);
  const most = mostRatings(settings.max_ratings);
  const centre = Boolean(settings.centre);
  const possible = ranks.every((each) => Number.isInteger(each) && each >= 0 && each <= count);
  must(possible && (whole || ranks.length === rates.length), "the settings of the local rule are impossible");
  must(norm > 0 && every(norms, (v) => v > 0), "the settings of the local rule are impossible");

  /** Y <- Y V diag(Z/Lambda) V^T of round t, whose vectors begin at `first`. */
  function mapped(filled, t, first) {
    const found = new Float64Array(count);
    if (maps) {
      const entry = (a, b) => maps[(t * count + Math.max(a, b)) * count + Math.min(a, b)];
      for (let a = 0; a < count; a++) for (let b = 0; b < count; b++) found[b] += filled[a] * entry(a, b);
      return found;
    }
    const inner = new Float64Array(ranks[t]);
    for (let j = 0; j < count; j++) {
      for (let k = 0; k < ranks[t]; k++) inner[k] += filled[j] * vectors.data[j * rank + first + k];
    }
    for (let k = 0; k < ranks[t]; k++) inner[k] *= shrinkage[first + k];
    for (let j = 0; j < count; j++) {
      for (let k = 0; k < ranks[t]; k++) found[j] += inner[k] * vectors.data[j * rank + first + k];
    }
    return found;
  }

  return {
    scores(row) {
      const { gaps, mean } = centred(row, offsets, { centre, norm, most });
      let filled = new Float64Array(count);
      for (let t = 0, first = 0; t < rates.length; first += ranks[t] ?? 0, t++) {
        row.items.forEach((item, p) => (filled[item] += rates[t] * (gaps[p] - filled[item])));
        const length = Math.sqrt(filled.reduce((sum, value) => sum + value ** 2, 0));
        if (!(length <= norms[t])) {
          const factor = length < Infinity ? norms[t] / length : 0;
          filled = filled.map((value) => (factor > 0 ? factor * value : 0));
        }
        filled = mapped(filled, t, first);
      }
      return filled.map((value, j) => value + mean + offsets[j]);
    },
  };
}

/** An item is predicted from the most similar rated ones. @param {Parts} parts */
export function neighbours(parts, settings) {
  const { offsets, items: count } = parts;
  const covariance = parts.matrix("covariance", count, count);
  const nearest = Math.trunc(number(settings.nearest));
  const damping = number(settings.damping);
  const shrink = number(settings.shrink);
  const possible = nearest >= 1 && damping > 0 && damping < Infinity && shrink >= 0 && shrink < Infinity;
  must(possible, "the settings of the local rule are impossible");
  const sds = new Float64Array(count).map((_, j) => Math.sqrt(Math.max(covariance.data[j * count + j], 1e-12)));
  return {
    scores(row) {
      const { gaps, mean } = centred(row, offsets, { shrink });
      const near = new Float64Array(gaps.length);
      return new Float64Array(count).map((_, j) => {
        row.items.forEach((item, p) => {
          const correlation = covariance.data[j * count + item] / (sds[j] * sds[item]);
          near[p] = Math.min(1, Math.max(-1, correlation));
        });
        let edge = 0;
        if (near.length > nearest) edge = near.map(Math.abs).sort()[near.length - nearest];
        let [weight, sum] = [damping, 0];
        near.forEach((similarity, p) => {
          if (Math.abs(similarity) < edge) return;
          weight += Math.abs(similarity);
          sum += (similarity * gaps[p]) / sds[row.items[p]];
        });
        return (sds[j] * sum) / weight + mean + offsets[j];
      });
    },
  };
}
