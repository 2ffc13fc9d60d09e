/**
 * tacit.js: recommendations on a person's own device, from a published model and her own ratings.
 *
 *     import { Model } from "./tacit.js";
 *     const model = Model.parse(await (await fetch("model.tacit")).arrayBuffer());
 *     model.recommend({ "film-17": 5, "film-3": 1 }, 10, { because: true });
 *
 * It needs no other package, makes no request, keeps nothing, and gives the numbers that Python
 * gives. It runs in browsers and in Node.
 */

import { epsilonOf } from "./algebra.js";
import { costOf, inPlainWords } from "./promise.js";
import { ModelFileError, readFile, readTexts } from "./reading.js";
import { ruleOf } from "./rules.js";

export { ModelFileError };

/** What was asked for cannot be done: the message says why. It holds no rating. */
export class RequestError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "RequestError";
  }
}

/**
 * @typedef {string | number | bigint} ItemId
 *
 * Own ratings: an object or a Map from items to ratings, or a list of [item, rating]. For a model of
 * interactions a list or a Set of items does.
 * @typedef {Record<string, number> | Map<ItemId, number> | Iterable<[ItemId, number]> | Iterable<ItemId>} OwnRatings
 *
 * One of her own ratings, and what it adds to a prediction.
 * @typedef {{item: ItemId, title: string, rating: number, contribution: number}} Reason
 *
 * @typedef {Object} Recommendation
 * @property {ItemId} item
 * @property {string} title
 * @property {number} score the predicted rating, or for interactions the predicted share
 * @property {number | null} choice the share of her next choices, where the model knows it
 * @property {number=} std how far off the rating may be, if asked for
 * @property {number=} baseline the prediction without the values of her ratings, if asked for
 * @property {Reason[]=} because all of her ratings, the largest contributions first, if asked for
 *
 * @typedef {Object} Certificate
 * @property {boolean} private
 * @property {string=} grade strong, moderate, weak or none
 * @property {number | null} epsilon
 * @property {number | null} delta
 * @property {string[]} not_private_because
 * @property {string[]=} promise plain sentences
 * @property {Record<string, any>[]} releases
 * @property {Record<string, string>} public
 */

/** A published model: anyone's own ratings in, her own predictions out. */
export class Model {
  #rule;
  #places;

  /**
   * Read a model file; whatever is wrong with it, the error is a ModelFileError.
   * @param {ArrayBuffer | Uint8Array} content
   */
  static parse(content) {
    try {
      return new Model(readFile(content));
    } catch (error) {
      if (error instanceof ModelFileError) throw error;
      throw new ModelFileError("its parts cannot be read");
    }
  }

  /** @param {import("./reading.js").ModelFile} file */
  constructor({ facts, tensors }) {
    const [low, high] = facts.rating_range;
    if (!(Number.isFinite(low) && Number.isFinite(high) && low < high)) {
      throw new ModelFileError("impossible rating range");
    }
    /** @type {ItemId[]} */
    this.ids = itemIds(tensors);
    /** @type {string[]} what to call each item: its title, or its id where it has none */
    this.titles = itemTitles(tensors, this.ids);
    /** @type {[number, number]} */
    this.ratingRange = [low, high];
    this.certificate = checkedCertificate(facts.certificate, facts.releases);
    /** @type {string | null} */
    this.digest = facts.digest ?? null;
    this.#rule = ruleOf(facts.rule, tensors, this.ids.length);
    this.#places = new Map(this.ids.map((id, place) => [String(id), place]));
    if (this.#places.size !== this.ids.length) throw new ModelFileError("an item is listed twice");
  }

  /** The kind of local rule. */
  get kind() {
    return this.#rule.kind;
  }

  /** Whether it was learned from interactions, and takes no ratings. */
  get implicit() {
    return this.kind === "interactions";
  }

  /** Whether it can say how far off a prediction may be. */
  get knowsStd() {
    return this.#rule.stds !== undefined;
  }

  /** Whether it knows what people choose, besides how they rate it. */
  get knowsChoice() {
    return this.#rule.choice !== undefined;
  }

  /** Whether each own rating has a contribution of its own to a prediction. */
  get knowsReasons() {
    return this.#rule.contributions !== undefined;
  }

  /** The place of an item in the catalogue, -1 if it has none. @param {ItemId} item */
  place(item) {
    return this.#places.get(String(item)) ?? -1;
  }

  /**
   * Return the predicted ratings of `items`, in their order; NaN for an unknown one.
   * @param {OwnRatings} own items outside the catalogue are left out
   * @param {{items?: ItemId[], clip?: boolean}} [options] `clip`: whether predictions beyond the
   *     rating range are moved to its ends, as is usual
   * @returns {Float64Array}
   */
  predict(own, { items, clip = true } = {}) {
    const scores = this.#rule.scores(this.#row(own));
    const shown = clip ? scores.map((score) => this.#clip(score)) : scores;
    if (!items) return shown;
    return Float64Array.from(items, (item) => (this.place(item) < 0 ? NaN : shown[this.place(item)]));
  }

  /**
   * Return how far off the prediction of each of `items` may be: standard deviations.
   * @param {OwnRatings} own @param {ItemId[]} [items] all if left out
   * @returns {Float64Array}
   */
  stds(own, items = this.ids) {
    const places = items.map((item) => this.place(item));
    return this.#stds(this.#row(own), places);
  }

  /**
   * Return the n best items, without those already rated, the best first.
   * @param {OwnRatings} own
   * @param {number} [n]
   * @param {Object} [options]
   * @param {boolean} [options.includeRated] also items that she rated
   * @param {"rating" | "choice"} [options.by] what it is ordered by; left out: how likely she
   *     chooses an item times (a power of) how likely she likes it, else the prediction
   * @param {boolean} [options.std] also say how far off each rating may be
   * @param {boolean} [options.because] also say what each of her ratings adds to each prediction
   * @returns {Recommendation[]}
   */
  recommend(own, n = 10, { includeRated = false, by, std = false, because = false } = {}) {
    if (!Number.isInteger(n) || n < 1) throw new RequestError(`n=${n}: expected a whole number of at least 1`);
    const row = this.#row(own);
    const scores = this.#rule.scores(row);
    const choices = this.#rule.choice ? this.#rule.choice(row) : null;
    const order = this.#order(by, scores, choices);
    const share = choices && 1 / Math.max(total(choices, includeRated ? [] : row.items), 1e-300);
    if (!includeRated) row.items.forEach((place) => (order[place] = -Infinity));
    const best = bestPlaces(order, n);
    const stds = std ? this.#stds(row, best) : null;
    const reasons = because ? this.#contributions(row, best) : null;
    return best.map((place, at) => ({
      ...this.#named(place),
      score: this.#clip(scores[place]),
      choice: choices && share ? choices[place] * share : null,
      ...(stds && { std: stds[at] }),
      ...(reasons && this.#reasons(row, reasons.baselines[at], reasons.added[at])),
    }));
  }

  /**
   * Recompute what the listed releases cost and compare it with the claim, as `tacit verify` does.
   * That they were made as stated cannot be seen from a file.
   * @returns {{holds: boolean, epsilon: number | null}}
   */
  verify() {
    const { private: promised, epsilon, delta, releases } = this.certificate;
    if (epsilon === null || delta === null) return { holds: false, epsilon: null };
    const mu = costOf(releases);
    const found = Number.isFinite(mu) ? epsilonOf(mu, delta) : Infinity;
    return { holds: promised && found <= epsilon * (1 + 1e-9), epsilon: found };
  }

  /** @param {number} place */
  #named(place) {
    return { item: this.ids[place], title: this.titles[place] };
  }

  /** @param {number} score */
  #clip(score) {
    return Math.min(this.ratingRange[1], Math.max(this.ratingRange[0], score));
  }

  /** Nothing in the rating range has an sd above half its width. */
  #stds(row, places) {
    if (!this.#rule.stds) throw new RequestError(`the local rule of this model (${this.kind}) knows no uncertainty`);
    const known = places.map((place) => Math.max(place, 0));
    const most = (this.ratingRange[1] - this.ratingRange[0]) / 2;
    return this.#rule.stds(row, known).map((sd, at) => (places[at] < 0 ? NaN : Math.min(sd, most)));
  }

  #contributions(row, places) {
    if (this.#rule.contributions) return this.#rule.contributions(row, places);
    throw new RequestError(
      `because: the local rule of this model (${this.kind}) is not linear in one's own ratings, so ` +
        "they have no separate contributions; leave it out",
    );
  }

  #reasons(row, baseline, added) {
    const order = Array.from(added.keys()).sort((a, b) => Math.abs(added[b]) - Math.abs(added[a]) || a - b);
    const because = order.map((k) => ({
      ...this.#named(row.items[k]), rating: row.values[k], contribution: added[k],
    }));
    return { baseline, because };
  }

  /** What a list is ordered by, in a new array. */
  #order(by, scores, choices) {
    if (![undefined, null, "rating", "choice"].includes(by)) {
      throw new RequestError(`by=${by}: expected 'rating' or 'choice', or leave it out`);
    }
    if (choices && by !== "rating") return by === "choice" ? choices.slice() : this.#rule.ranking(scores, choices);
    if (by && (by === "choice") !== this.implicit) {
      throw new RequestError(`by=${by}: this model (${this.kind}) does not know it; leave it out`);
    }
    return scores.slice();
  }

  /** Own ratings as places and values in single precision, as Python holds them. */
  #row(own) {
    const pairs = pairsOf(own, this.implicit).map(([item, rating]) => [this.place(item), rating]);
    const [low, high] = this.ratingRange;
    const fine = ([, rating]) => typeof rating === "number" && rating >= low && rating <= high;
    const wrong = this.implicit ? 0 : pairs.filter((pair) => !fine(pair)).length;
    if (wrong) {
      throw new RequestError(`own ratings: ${wrong} are missing or outside the rating range [${low}, ${high}]`);
    }
    const known = pairs.filter(([place]) => place >= 0).sort(([one], [other]) => one - other);
    const once = known.filter(([place], at) => !at || place !== known[at - 1][0]);
    if (!this.implicit && once.length < known.length) {
      throw new RequestError(`own ratings: ${known.length - once.length} items are rated twice`);
    }
    const values = Float64Array.from(once, ([, rating]) => (this.implicit ? 1 : Math.fround(rating)));
    return { items: Int32Array.from(once, ([place]) => place), values };
  }
}

/** @param {any} own @param {boolean} implicit @returns {[ItemId, number][]} */
function pairsOf(own, implicit) {
  if (own === null || typeof own !== "object") throw new RequestError("own ratings: expected {item: rating}");
  if (typeof own[Symbol.iterator] !== "function") return Object.entries(own);
  const given = [...own];
  if (implicit) return given.map((each) => (Array.isArray(each) ? each : [each, 1]));
  if (given.every((each) => Array.isArray(each) && each.length === 2)) return given;
  throw new RequestError("own ratings: expected {item: rating}, or a list of [item, rating]");
}

/** The sum of all numbers but those at some places. */
function total(numbers, left) {
  let sum = 0;
  for (let at = 0; at < numbers.length; at++) sum += numbers[at];
  for (const at of left) sum -= numbers[at];
  return sum;
}

/** The places of the n best scores, best first; equal ones in the order of the catalogue. */
function bestPlaces(scores, n) {
  const better = (a, b) => scores[b] - scores[a] || a - b;
  /** @type {number[]} */
  let best = [];
  let edge = -Infinity; // what a score must be above, once n are known
  for (let place = 0; place < scores.length; place++) {
    if (!(scores[place] > edge)) continue;
    best.push(place);
    if (best.length < 2 * n + 50) continue;
    best = best.sort(better).slice(0, n);
    edge = scores[best[n - 1]];
  }
  return best.sort(better).slice(0, n);
}

/** @param {Map<string, import("./reading.js").Tensor>} tensors @returns {ItemId[]} */
function itemIds(tensors) {
  const numbers = tensors.get("items.numbers");
  if (!numbers) {
    const texts = readTexts(tensors, "items");
    if (texts.includes("")) throw new ModelFileError("an item has no id");
    return texts;
  }
  const { data } = numbers;
  if (!(data instanceof BigInt64Array || data instanceof BigUint64Array) || numbers.shape.length !== 1) {
    throw new ModelFileError("item ids are not whole numbers");
  }
  return Array.from(data, (id) => (Number.isSafeInteger(Number(id)) ? Number(id) : id));
}

/** @param {Map<string, import("./reading.js").Tensor>} tensors @param {ItemId[]} ids */
function itemTitles(tensors, ids) {
  if (!tensors.has("titles.text")) return ids.map(String);
  const titles = readTexts(tensors, "titles");
  if (titles.length !== ids.length) throw new ModelFileError("there are not as many titles as items");
  return titles.map((title, at) => title || String(ids[at]));
}

/** @param {any} certificate @param {unknown} releases @returns {Certificate} */
function checkedCertificate(certificate, releases) {
  const { format, private: promised, epsilon, not_private_because: reasons } = certificate;
  const known = format === "tacit-certificate/1" && Array.isArray(reasons) && Array.isArray(certificate.releases);
  if (!known) throw new ModelFileError("the certificate cannot be read");
  if (promised !== (epsilon !== null && reasons.length === 0) || !Number.isInteger(releases)) {
    throw new ModelFileError("the certificate contradicts itself on whether the model is private");
  }
  if (epsilon !== null && !isBudget(certificate)) throw new ModelFileError("the certificate cannot be read");
  return inPlainWords(certificate);
}

/** Whether a budget is one that there can be, and the costs of releases are numbers. */
function isBudget({ epsilon, delta, neighbours, releases }) {
  const within = epsilon > 0 && epsilon <= 1e4 && delta >= 1e-30 && delta < 1;
  const costs = releases.every(
    ({ sensitivity, noise_sd: sd }) => Number.isFinite(sensitivity) && sensitivity > 0 && Number.isFinite(sd) && sd >= 0,
  );
  return within && costs && ["replace", "add_remove"].includes(neighbours);
}
