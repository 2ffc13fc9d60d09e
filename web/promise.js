// What a promise means in plain sentences, and how much it is worth: as tacit/accounting/promise.py.
//
// All of it is computed from the numbers of the certificate. A file says its own sentences and grade
// too; whoever writes a file by hand, or wrote it with an older version, can put anything there.

import { centralMass, normalCdf } from "./algebra.js";

/** The largest numbers that a grade allows; `chance` is for two possible rating lists. */
const LIMITS = [
  { grade: "strong", epsilon: 1, delta: 1e-5, chance: 0.6 },
  { grade: "moderate", epsilon: 5, delta: 1e-3, chance: 0.75 },
  { grade: "weak", epsilon: 20, delta: 1e-2, chance: 0.95 },
];
const SEEN = "what anyone else sees, all other users' recommendations and this model together,";
const DEPENDS = {
  strong: `This is a strong promise: ${SEEN} barely depends on one person's ratings.`,
  moderate: `This is a moderate promise: ${SEEN} depends on one person's ratings to a limited extent.`,
  weak: `This is a weak promise: ${SEEN} may depend on one person's ratings so much that an attacker can learn something about them.`,
};
const IDEALISED = "its noise was drawn in floating point, whose low bits can leak";
const OTHERS = "other models fitted to the same ratings; their costs add up.";
const OTHERS_OF_A_REFIT =
  "models fitted to the same ratings other than this refit and the earlier refits that it uses, which are counted in epsilon; the costs of others add up.";

/** The total cost of all releases; one without noise costs infinitely much. @param {any[]} releases */
export const costOf = (releases) =>
  Math.hypot(...releases.map(({ sensitivity, noise_sd: sd }) => (sd > 0 ? sensitivity / sd : Infinity)));

/**
 * A certificate with the grade, the reasons and the sentences that its numbers give.
 * @param {Record<string, any>} certificate
 */
export function inPlainWords(certificate) {
  const mu = costOf(certificate.releases);
  const reasons = certificate.not_private_because.map(String);
  if (certificate.numerics === "idealised" && !reasons.includes(IDEALISED)) reasons.push(IDEALISED);
  const weak = certificate.epsilon === null ? "" : tooWeak(certificate, mu);
  if (weak && !reasons.includes(weak)) reasons.push(weak);
  const kept = certificate.epsilon !== null && reasons.length === 0;
  return {
    ...certificate,
    private: kept,
    grade: kept ? gradeOf(certificate, mu) : "none",
    not_private_because: reasons,
    promise: kept ? sentences(certificate, mu) : [
      "This model is NOT PRIVATE: it makes no promise to anyone whose ratings it used.",
      ...reasons.map((reason) => `Why: ${reason}.`),
    ],
  };
}

/** Under add_remove two lists of one person are two steps apart. */
const twoLists = ({ neighbours }, mu) => (neighbours === "replace" ? mu : 2 * mu);

function gradeOf(budget, mu) {
  return LIMITS.find((limits) => beyond(budget, mu, limits).length === 0)?.grade ?? "none";
}

function tooWeak(budget, mu) {
  const said = beyond(budget, mu, LIMITS[LIMITS.length - 1]);
  return said.length ? `its promise is too weak to be called private: ${said.join(" and ")}` : "";
}

/** Which numbers are above what a grade allows. */
function beyond(budget, mu, limits) {
  const cost = twoLists(budget, mu), said = [];
  if (!(budget.epsilon <= limits.epsilon)) said.push(`epsilon ${shown(budget.epsilon)} is above ${limits.epsilon}`);
  if (!(budget.delta <= limits.delta)) said.push(`delta ${shown(budget.delta)} is above ${shown(limits.delta)}`);
  if (!(normalCdf(cost / 2) <= limits.chance)) {
    said.push(
      "the bound on how often an attacker decides rightly between two possible rating lists of one person, " +
        `${percent(cost)} %, is above ${Math.round(100 * limits.chance)} %`,
    );
  }
  return said;
}

function sentences(certificate, mu) {
  const refit = certificate.releases.some(({ kind }) => kind === "earlier refits");
  return [
    `(${shown(certificate.epsilon)}, ${shown(certificate.delta)})-joint differential privacy for every user whose ratings were used, under the relation below.`,
    DEPENDS[gradeOf(certificate, mu)],
    ...attackers(certificate, mu),
    "Not covered: what she is shown depends on her own ratings, so showing her recommendations to others can reveal them.",
    `Not covered: ${refit ? OTHERS_OF_A_REFIT : OTHERS}`,
    "Not covered: what others can know about her without her ratings, such as a taste that everyone shares.",
  ];
}

/** How often an attacker is right, for either relation; a coin toss is 50 %. */
function attackers(certificate, mu) {
  const knows = "An attacker who knows everyone else's ratings and must decide";
  const lists = "between two possible rating lists of this person";
  const right = `is right at most ${percent(mu)} % of the time (50 % is a coin toss).`;
  if (certificate.neighbours === "replace") {
    return [
      `${knows} ${lists}, both equally likely beforehand, ${right}`,
      "The same limit holds for two lists that differ in a single rating; no smaller one is claimed for it.",
    ];
  }
  return [
    `${knows} whether this person gave one certain rating list or none at all, both equally likely beforehand, ${right}`,
    `If the attacker must decide ${lists}, whether they differ in a single rating or in all of them, the limit is ` +
      `${percent(twoLists(certificate, mu))} %: under this relation that is two changes, from one list to none and from none to the other.`,
  ];
}

/** 100 Phi(mu/2), rounded up, with two digits of what is above 50. @param {number} mu */
export function percent(mu) {
  const above = 50 * centralMass(mu / 2) * (1 + 1e-12);
  if (!(above > 0)) return "50";
  if (above > 49.9) return "more than 99.9";
  const digits = Math.max(1, 1 - Math.floor(Math.log10(above)));
  const units = String(50n * 10n ** BigInt(digits) + BigInt(Math.ceil(above * 10 ** digits)));
  return `${units.slice(0, -digits)}.${units.slice(-digits)}`;
}

/** A cost with so many digits, rounded up: what is shown is never less than what it is. */
export function roundedUp(value, digits) {
  const nearest = Number(value.toPrecision(digits));
  return shown(nearest < value ? stepped(nearest, 1, value, digits) : nearest);
}

/** How much noise there is, with so many digits, rounded down. */
export function roundedDown(value, digits) {
  const nearest = Number(value.toPrecision(digits));
  return shown(nearest > value ? stepped(nearest, -1, value, digits) : nearest);
}

/** What is nearest to a value with so many digits, one unit of its last digit further. */
function stepped(nearest, by, value, digits) {
  const unit = 10 ** (digits - 1 - Math.floor(Math.log10(value)));
  return Number((nearest + by / unit).toPrecision(digits));
}

/** An epsilon that was found, rounded up; beyond the claim only if it is beyond it. */
export function recomputed(epsilon, claimed) {
  if (!(epsilon <= claimed)) return roundedUp(epsilon, 6);
  for (let digits = 6; digits < 18; digits += 1) {
    const text = roundedUp(epsilon, digits);
    if (Number(text) <= claimed) return text;
  }
  return shown(epsilon);
}

/** A number as short as possible, and never as another number: as Python writes it. @param {number} value */
export function shown(value) {
  const short = Number(value.toPrecision(6)) === value;
  const [digits, power] = value.toExponential().split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= (short ? 6 : 16)) {
    return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const plain = value.toFixed(Math.max(0, digits.replace(/[-.]/g, "").length - 1 - exponent));
  return short || plain.includes(".") ? plain : `${plain}.0`;
}
