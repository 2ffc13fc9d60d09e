// The page: search, rate, and a list that follows at once. Everything happens here, on this device.

import encoded from "./model.js";
import { showCertificate } from "./certificate.js";
import { browserStorage, Store } from "./store.js";
import { Model } from "./tacit.js";
import { make, percent, rater, reasonsList, Scale, shareBar, shown, uncertaintyBar } from "./view.js";
import { Watch } from "./watching.js";

const PAGE = 10;
const RESULTS = 7;
const MOST_LEFT_OUT = 40; // own ratings that are left out one by one where a rule is not linear

/** @param {string} id @returns {any} */
const $ = (id) => document.getElementById(id);

/** Texts are compared without accents and case. @param {string} text */
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

class Page {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.scale = new Scale(model);
    this.store = new Store(model, browserStorage());
    this.length = PAGE;
    this.open = new Set();
    /** @type {string[] | null} */
    this.searched = null;
    this.suggested = model.recommend([], RESULTS).map(({ item }) => model.place(item));
    this.begin = model.knowsChoice || model.implicit ? "Some that many people choose:" : "Some to begin with:";
    $("order-label").hidden = !model.knowsChoice;
    if (model.implicit) this.#speakOfItems();
    this.#listen();
    this.showResults();
    this.showOwn();
    this.showList();
  }

  #speakOfItems() {
    $("own-title").firstChild.data = "Yours ";
    document.querySelector(".intro p").firstChild.data =
      "Mark a few things you like or have. The list is worked out here, in this page, from what you mark " +
      "and from a model that was published for everyone. What you mark is not sent anywhere.";
  }

  #listen() {
    $("search").addEventListener("input", () => this.showResults());
    $("order").addEventListener("change", () => this.showList());
    $("more").addEventListener("click", () => this.#showMore());
    $("export").addEventListener("click", () => this.#save());
    $("import").addEventListener("click", () => $("file").click());
    $("file").addEventListener("change", () => this.#load());
    $("erase").addEventListener("click", () => $("confirm").showModal());
    $("confirm-no").addEventListener("click", () => $("confirm").close());
    $("confirm-yes").addEventListener("click", () => this.#erase());
  }

  /** Own ratings as the model takes them. */
  own() {
    return this.store.usable();
  }

  /** @param {number} place @param {number | null} rating */
  rate(place, rating) {
    const item = String(this.model.ids[place]);
    if (rating === null) this.store.remove(item);
    else this.store.set(item, rating);
    this.showOwn();
    const [first] = this.showList();
    const done = rating === null ? `Removed ${this.model.titles[place]}.` : `${this.model.titles[place]}: ${this.scale.words(rating)}.`;
    this.say(first ? `${done} First in your list: ${first.title}.` : done);
  }

  /** @param {string} words for screen readers */
  say(words) {
    $("said").textContent = words;
  }

  // What you know -------------------------------------------------------------------------------

  showResults() {
    const wanted = plain($("search").value.trim());
    const found = wanted ? this.#search(wanted) : this.suggested;
    const places = found.slice(0, RESULTS);
    $("results").replaceChildren(...places.map((place) => this.#row(place, false)));
    const many = found.length > RESULTS ? `${RESULTS} of ${found.length} found` : `${found.length} found`;
    $("results-note").textContent = wanted ? (found.length ? many : "Nothing found. Try a part of a title.") : this.begin;
  }

  /** @param {string} wanted */
  #search(wanted) {
    this.searched ??= this.model.titles.map(plain);
    const places = [];
    this.searched.forEach((title, place) => title.includes(wanted) && places.push(place));
    const rank = (place) => (this.searched[place].startsWith(wanted) ? 0 : 1);
    return places.sort((a, b) => rank(a) - rank(b) || a - b);
  }

  /** @param {number} place @param {boolean} own */
  #row(place, own) {
    const title = this.model.titles[place];
    const given = this.store.get(String(this.model.ids[place]));
    const row = make("li", {}, make("span", { class: "title" }, title), rater(this.scale, title, given, (rating) => this.rate(place, rating)));
    if (own) {
      const remove = make("button", { type: "button", class: "remove", "aria-label": `Remove ${title}` }, "×");
      remove.addEventListener("click", () => this.#remove(place));
      row.append(remove);
    }
    row.dataset.place = String(place);
    row.dataset.rating = String(given);
    return row;
  }

  #remove(place) {
    this.rate(place, null);
    this.showResults();
    const next = /** @type {HTMLElement | null} */ ($("own").querySelector(".remove"));
    (next ?? $("search")).focus();
  }

  /** Rows that did not change stay as they are, and keep the focus. */
  showOwn() {
    const places = this.own().map(([item]) => this.model.place(item));
    const there = new Map([...$("own").children].map((row) => [`${row.dataset.place} ${row.dataset.rating}`, row]));
    const active = document.activeElement?.closest("#own li");
    const rows = places.map((place) => {
      const rating = this.store.get(String(this.model.ids[place]));
      if (active?.dataset.place === String(place)) {
        active.dataset.rating = String(rating);
        return active;
      }
      return there.get(`${place} ${rating}`) ?? this.#row(place, true);
    });
    const same = rows.length === $("own").children.length && rows.every((row, at) => row === $("own").children[at]);
    if (!same) $("own").replaceChildren(...rows);
    $("own-count").textContent = rows.length ? String(rows.length) : "";
    $("own-empty").hidden = rows.length > 0;
    for (const id of ["export", "erase"]) $(id).disabled = this.store.ratings.size === 0;
    if (!this.store.kept) $("own-empty").textContent = "This browser keeps nothing for this site, so your ratings end with this page.";
  }

  // For you -------------------------------------------------------------------------------------

  showList() {
    const { model } = this;
    const own = this.own();
    const because = model.knowsReasons && own.length > 0;
    const by = $("order").value || undefined;
    const found = model.recommend(own, this.length + 1, { by, std: model.knowsStd, because });
    const rows = found.slice(0, this.length);
    $("list").replaceChildren(...rows.map((row) => this.#card(row, rows)));
    $("more").hidden = found.length <= this.length;
    $("list-note").textContent = this.#note(own.length);
    return rows;
  }

  #note(count) {
    if (!count) return "For someone unknown: what most people would like. It becomes yours with your first rating.";
    const bar = this.model.knowsStd ? " The line is the predicted rating, and the band how far off it may be." : "";
    const things = this.model.implicit ? "thing" : "rating";
    return `From ${count} ${things}${count === 1 ? "" : "s"} of yours.${bar}`;
  }

  #card(row, rows) {
    const place = this.model.place(row.item);
    const key = String(row.item);
    const answer = make("div", { class: "why", id: `why-${place}`, hidden: true });
    const ask = make("button", { type: "button", class: "ask", "aria-controls": answer.id, "aria-label": `Why ${row.title}, and rate it` }, "Why?");
    const show = (open) => {
      if (open && !answer.childElementCount) answer.append(...this.#why(row, place), this.#rateHere(row, place));
      ask.setAttribute("aria-expanded", String(open));
      answer.hidden = !open;
    };
    show(this.open.has(key));
    ask.addEventListener("click", () => {
      if (this.open.delete(key)) return show(false);
      this.open.add(key);
      show(true);
    });
    const facts = make("div", { class: "facts-line" }, ...this.#facts(row, rows));
    const card = make("li", {}, make("div", { class: "card" }, make("h3", {}, row.title), ask, facts, answer));
    card.dataset.item = key;
    return card;
  }

  #facts({ score, std, choice }, rows) {
    if (this.model.implicit) {
      const largest = Math.max(...rows.map((each) => each.score));
      return [shareBar(score, largest), make("span", { class: "number" }, percent(score)), make("span", { class: "note" }, "of what you would pick next")];
    }
    const spread = std === undefined ? "" : ` ± ${shown(std, this.scale)}`;
    const words = `predicted ${shown(score, this.scale)}${std === undefined ? "" : `, give or take ${shown(std, this.scale)}`}`;
    const number = make("span", { class: "number" }, make("span", { "aria-hidden": "true" }, shown(score, this.scale), make("span", { class: "soft" }, spread)), make("span", { class: "hidden" }, words));
    const pick = choice === null ? [] : [make("span", { class: "note" }, `${percent(choice)} of your next picks`)];
    return [uncertaintyBar(this.scale, score, std), number, ...pick];
  }

  #rateHere(row, place) {
    const words = this.model.implicit ? "Yours already?" : "Know it already?";
    return make("p", { class: "rate-here" }, make("span", {}, words), rater(this.scale, row.title, undefined, (rating) => this.#rateFromList(place, rating)));
  }

  #why(row, place) {
    const own = this.own();
    if (!own.length) return [make("p", {}, "You have rated nothing yet: it is what most people would like.")];
    const reasons = row.because ?? this.#leftOut(own, place);
    if (!reasons) return [make("p", {}, "This kind of model mixes all your ratings; there are too many to take apart here.")];
    const usual = row.baseline === undefined
      ? "What would change if you had not rated it:"
      : `Before your ratings count it is at ${this.model.implicit ? percent(row.baseline) : shown(row.baseline, this.scale)}. What moves it most:`;
    return [make("p", {}, usual), reasonsList(reasons, this.scale)];
  }

  /** Where a rule is not linear: what a prediction loses without each of one's ratings. */
  #leftOut(own, place) {
    if (own.length > MOST_LEFT_OUT) return null;
    const { model } = this;
    const whole = model.predict(own, { clip: false })[place];
    const rows = own.map(([item, rating], at) => {
      const without = model.predict(own.filter((_, other) => other !== at), { clip: false })[place];
      return { title: model.titles[model.place(item)], rating, contribution: whole - without };
    });
    return rows.sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  }

  #rateFromList(place, rating) {
    this.rate(place, rating);
    this.showResults();
    $("list-title").focus();
  }

  #showMore() {
    const first = this.length;
    this.length += PAGE;
    this.showList();
    $("list").children[first]?.querySelector(".ask")?.focus();
  }

  // Own ratings as a file -----------------------------------------------------------------------

  #save() {
    const address = URL.createObjectURL(new Blob([this.store.text()], { type: "application/json" }));
    make("a", { href: address, download: "my-ratings.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    this.say("Saved to a file.");
  }

  async #load() {
    const [file] = $("file").files;
    $("file").value = "";
    if (!file) return;
    const added = this.store.add(await file.text());
    this.showAll();
    const words = added === null ? "That file holds no ratings of this page." : `${added} ratings loaded.`;
    this.say(words);
    $("own-empty").hidden = added !== null && this.own().length > 0;
    if (added === null) $("own-empty").textContent = words;
  }

  #erase() {
    this.store.erase();
    this.open.clear();
    this.showAll();
    $("confirm").close();
    this.say("All your ratings are erased.");
    $("search").focus();
  }

  showAll() {
    this.showResults();
    this.showOwn();
    this.showList();
  }
}

/** @param {Watch} watch */
function showWatch(watch) {
  $("pill-count").textContent = $("sent").textContent = String(watch.sent);
  $("blocked").textContent = String(watch.blocked);
  $("loaded").textContent = `Before that your browser loaded ${watch.loaded} files of this page, the model among them.`;
  document.body.classList.toggle("leaking", watch.sent > 0);
}

function start() {
  const watch = new Watch(showWatch);
  try {
    const model = Model.parse(Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0)));
    $("app").hidden = $("facts").hidden = false;
    new Page(model);
    showCertificate(model);
  } catch (error) {
    $("problem").hidden = false;
    $("problem").textContent = `The model cannot be used: ${error.message}`;
  }
  $("try").addEventListener("click", async () => {
    const { tried, through } = await watch.attempt();
    $("tried").textContent = through ? `${through} of ${tried} attempts went through.` : `It tried in ${tried} ways. Your browser stopped all of them.`;
  });
  if (document.readyState === "complete") watch.lock();
  else addEventListener("load", () => watch.lock());
}

start();
