// The certificate of a model, in plain words.

import { recomputed, roundedDown, roundedUp } from "./promise.js";
import { make } from "./view.js";

/** @typedef {import("./tacit.js").Model} Model */

const PEOPLE = "the people whose ratings it was learned from";
const RELATIONS = {
  replace: "one person's whole list of ratings is exchanged for any other",
  add_remove: "one person's whole list of ratings is there or not",
};

/** @param {string} id @returns {any} */
const $ = (id) => document.getElementById(id);

/** @param {Model} model */
export function showCertificate(model) {
  const { certificate } = model;
  const { grade } = certificate;
  $("grade").textContent = certificate.private ? `${grade} promise` : "not private";
  $("grade").dataset.grade = grade;
  $("grade-words").textContent = certificate.private ? `to ${PEOPLE}` : `No promise is made to ${PEOPLE}.`;
  $("promise").replaceChildren(...certificate.promise.map((sentence) => make("li", {}, sentence)));
  $("checked").textContent = checkedWords(model);
  $("numbers").replaceChildren(...pairs(numbersOf(model)));
  $("public").replaceChildren(...pairs(Object.entries(certificate.public ?? {})));
  $("releases").replaceChildren(...releaseRows(certificate.releases));
}

/** @param {Model} model */
function checkedWords(model) {
  const { holds, epsilon } = model.verify();
  if (epsilon === null) return "";
  const found = Number.isFinite(epsilon) ? `epsilon ${recomputed(epsilon, model.certificate.epsilon)}` : "no bound at all";
  const claim = holds ? "which is within what it claims" : "and the certificate does not hold";
  return `Checked on this device: its ${model.certificate.releases.length} listed releases give ${found}, ${claim}.`;
}

/** @param {Model} model */
function numbersOf({ certificate, digest, ids, kind }) {
  const known = certificate.epsilon !== null;
  return [
    ["Items", String(ids.length)],
    ["Local rule", kind],
    ...(known ? [["Epsilon", certificate.epsilon], ["Delta", certificate.delta]] : []),
    ...(known ? [["Relation", RELATIONS[certificate.neighbours] ?? certificate.neighbours]] : []),
    ["Digest of the file", digest ?? "none: it is of an older version"],
  ];
}

/** @param {[string, unknown][]} facts */
function pairs(facts) {
  return facts.flatMap(([name, words]) => [make("dt", {}, name), make("dd", {}, String(words))]);
}

/** @param {Record<string, any>[]} releases */
function releaseRows(releases) {
  const head = ["Release", "Sensitivity", "Noise (sd)"].map((name) => make("th", { scope: "col" }, name));
  const written = (value, as) => (typeof value === "number" ? as(value, 4) : "–");
  /** The sum of earlier refits has a cost alone. */
  const drawn = (release) =>
    release.kind === "earlier refits" ? ["–", "–"] : [written(release.sensitivity, roundedUp), written(release.noise_sd, roundedDown)];
  const rows = releases.map((release) =>
    make("tr", {}, ...[release.name ?? release.kind ?? "", ...drawn(release)].map(
      (cell) => make("td", {}, String(cell)),
    )),
  );
  return [make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)];
}
