// Every kind of local rule, by the name it has in model files. The formulas are those of
// src/tacit/models/*.py, and tests/web compares every number with Python's.

import { interactions, latentFactors } from "./choice.js";
import { projection, ridge } from "./linear.js";
import { must, Parts } from "./parts.js";
import { filling, neighbours, replay } from "./rounds.js";

const RULES = {
  projection, ridge, replay, filling, neighbours, interactions, "latent-factors": latentFactors,
};

/**
 * Return the local rule that a model file holds.
 * @param {{kind: string, settings: Record<string, unknown>}} facts
 * @param {Map<string, import("./reading.js").Tensor>} tensors
 * @param {number} items
 * @returns {import("./parts.js").Rule}
 */
export function ruleOf({ kind, settings }, tensors, items) {
  must(Object.hasOwn(RULES, kind), "unknown kind of local rule; a newer tacit.js may read it");
  return { kind, ...RULES[kind](new Parts(tensors, items), settings) };
}
