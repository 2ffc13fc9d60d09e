// Pieces of the page. Texts of a model are only ever text: nothing here parses HTML.

/** @typedef {import("./tacit.js").Model} Model */

/**
 * Make an element.
 * @param {string} tag @param {Record<string, any>} [facts] properties; `class` and aria-... too
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function make(tag, facts = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** How ratings of a range are given and written. */
export class Scale {
  /** @param {Model} model */
  constructor({ ratingRange: [low, high], implicit }) {
    this.low = low;
    this.high = high;
    this.implicit = implicit;
    this.stars = high === 5 && low >= 0 && low <= 1;
    const width = high - low;
    if (this.stars) this.step = Number.isInteger(low) ? 1 : 0.5;
    else this.step = width <= 12 && Number.isInteger(low) ? 1 : width / 20;
  }

  /** @param {number} rating */
  words(rating) {
    if (this.implicit) return "yours";
    return this.stars ? `${trim(rating)} of 5 stars` : `${trim(rating)} on a scale from ${this.low} to ${this.high}`;
  }

  /** Where on the scale, from 0 to 1. @param {number} rating */
  at(rating) {
    return Math.min(1, Math.max(0, (rating - this.low) / (this.high - this.low)));
  }
}

/** A number with at most two decimals. @param {number} value */
export function trim(value) {
  return String(Math.round(value * 100) / 100);
}

/** One decimal, or as many as the width of the scale needs. */
export function shown(value, scale) {
  const digits = scale.high - scale.low >= 30 ? 0 : scale.high - scale.low >= 1.5 ? 1 : 2;
  return value.toFixed(digits);
}

/**
 * A control to rate an item: stars, a slider, or a button for models of interactions.
 * @param {Scale} scale @param {string} title @param {number | undefined} rating
 * @param {(rating: number | null) => void} rated
 */
export function rater(scale, title, rating, rated) {
  return scale.implicit ? toggle(title, rating, rated) : slider(scale, title, rating, rated);
}

function toggle(title, rating, rated) {
  const button = make("button", { type: "button", class: "toggle", "aria-label": `I like or have ${title}` });
  const show = (on) => {
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "♥ Mine" : "♡ Mine?";
  };
  show(rating !== undefined);
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    show(on);
    rated(on ? 1 : null);
  });
  return button;
}

function slider(scale, title, rating, rated) {
  const { low, high, step, stars } = scale;
  const input = make("input", {
    type: "range", min: String(low), max: String(high), step: String(step), "aria-label": `Rate ${title}`,
  });
  const value = make("span", { class: "value", "aria-hidden": "true" });
  const full = make("span", { class: "full" }, stars ? "★★★★★" : "");
  const empty = make("span", { class: "empty" }, stars ? "☆☆☆☆☆" : "");
  const face = make("span", { class: stars ? "stars" : "track", "aria-hidden": "true" }, empty, full);
  const show = (now) => {
    const given = now !== undefined;
    input.value = String(given ? now : (low + high) / 2);
    full.style.width = `${given ? 100 * (stars ? now / high : scale.at(now)) : 0}%`;
    value.textContent = given ? trim(now) : "–";
    input.setAttribute("aria-valuetext", given ? scale.words(now) : "not rated; press Enter or move to rate");
  };
  show(rating);
  let last = rating;
  const give = () => {
    const now = Number(input.value);
    if (now === last) return;
    last = now;
    show(now);
    rated(now);
  };
  input.addEventListener("input", give);
  input.addEventListener("pointerup", give); // a click where the thumb already is
  input.addEventListener("keydown", (event) => event.key === "Enter" && give());
  return make("span", { class: "rater" }, make("span", { class: "face" }, face, input), value);
}

/** Where a prediction lies on the scale, and how far off it may be. */
export function uncertaintyBar(scale, score, std) {
  const bar = make("span", { class: "bar", "aria-hidden": "true" });
  if (std !== undefined) {
    const [from, to] = [scale.at(score - std), scale.at(score + std)];
    const band = make("span", { class: "band" });
    band.style.left = `${100 * from}%`;
    band.style.width = `${100 * (to - from)}%`;
    bar.append(band);
  }
  const tick = make("span", { class: "tick" });
  tick.style.left = `${100 * scale.at(score)}%`;
  bar.append(tick);
  return bar;
}

/** For interactions: the expected share, beside the largest one. */
export function shareBar(share, largest) {
  const full = make("span", { class: "share" });
  full.style.width = `${100 * Math.max(0, Math.min(1, share / largest))}%`;
  return make("span", { class: "bar", "aria-hidden": "true" }, full);
}

/** Which own ratings weigh most, as bars to the left and to the right. */
export function reasonsList(reasons, scale, most = 4) {
  const largest = Math.max(...reasons.map(({ contribution }) => Math.abs(contribution)), 1e-12);
  const rows = reasons.slice(0, most).map(({ title, rating, contribution }) => {
    const bar = make("span", { class: contribution < 0 ? "weight down" : "weight up" });
    bar.style.width = `${(50 * Math.abs(contribution)) / largest}%`;
    const given = scale.implicit ? "" : ` (you: ${trim(rating)})`;
    const amount = scale.implicit ? percent(contribution) : `${contribution < 0 ? "−" : "+"}${Math.abs(contribution).toFixed(2)}`;
    return make(
      "li", {},
      make("span", { class: "reason" }, title, make("span", { class: "note" }, given)),
      make("span", { class: "weights", "aria-hidden": "true" }, bar),
      make("span", { class: "amount" }, amount),
    );
  });
  return make("ul", { class: "reasons" }, ...rows);
}

/** @param {number} share */
export function percent(share) {
  const value = 100 * share;
  const digits = Math.abs(value) >= 10 ? 0 : Math.abs(value) >= 0.1 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(digits)} %`;
}
