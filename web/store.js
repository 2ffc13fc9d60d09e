// A person's own ratings, in this browser's storage and nowhere else.

/** @typedef {import("./tacit.js").Model} Model */

const FORMAT = "tacit-ratings/1";

/** Own ratings by item id, as text; those that the model cannot use are kept, and not counted. */
export class Store {
  /** @param {Model} model @param {Storage | null} storage */
  constructor(model, storage) {
    this.model = model;
    this.storage = storage;
    this.key = `tacit ratings ${location.pathname.replace(/[^/]*$/, "")}`;
    /** @type {Map<string, number>} */
    this.ratings = new Map();
    this.#read();
  }

  /** Whether ratings outlive this page. */
  get kept() {
    return this.storage !== null;
  }

  /** What the model can use: the latest rating first. @returns {[string, number][]} */
  usable() {
    return [...this.ratings].filter(([item, rating]) => this.#fits(item, rating)).reverse();
  }

  /** @param {string} item */
  get(item) {
    return this.ratings.get(item);
  }

  /** @param {string} item @param {number} rating */
  set(item, rating) {
    this.ratings.set(item, rating);
    this.#write();
  }

  /** @param {string} item */
  remove(item) {
    this.ratings.delete(item);
    this.#write();
  }

  erase() {
    this.ratings.clear();
    try {
      this.storage?.removeItem(this.key);
    } catch {
      this.storage = null;
    }
  }

  /** The ratings as a file. */
  text() {
    return JSON.stringify({ format: FORMAT, ratings: Object.fromEntries(this.ratings) }, null, 1) + "\n";
  }

  /** Add the ratings of a file; return how many the model can use, or null if it is no such file. */
  add(text) {
    const found = parsed(text);
    if (!found) return null;
    for (const [item, rating] of found) this.ratings.set(item, rating);
    this.#write();
    return found.filter(([item, rating]) => this.#fits(item, rating)).length;
  }

  #fits(item, rating) {
    const [low, high] = this.model.ratingRange;
    return this.model.place(item) >= 0 && (this.model.implicit || (rating >= low && rating <= high));
  }

  #read() {
    try {
      this.ratings = new Map(parsed(this.storage?.getItem(this.key) ?? "") ?? []);
    } catch {
      this.storage = null;
    }
  }

  #write() {
    try {
      this.storage?.setItem(this.key, this.text());
    } catch {
      this.storage = null;
    }
  }
}

/** @param {string} text @returns {[string, number][] | null} */
function parsed(text) {
  try {
    const { format, ratings } = JSON.parse(text);
    if (format !== FORMAT || ratings === null || typeof ratings !== "object") return null;
    const pairs = Object.entries(ratings);
    return pairs.every(([, rating]) => Number.isFinite(rating)) ? pairs : null;
  } catch {
    return null;
  }
}

/** The browser's storage, or null where it is switched off. */
export function browserStorage() {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null;
  }
}
