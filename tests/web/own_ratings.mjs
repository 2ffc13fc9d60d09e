// What tacit.js does with own ratings in all their forms, and what it refuses. Run by test_refused.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Model, ModelFileError, RequestError } from "../../web/tacit.js";
import { epsilonOf, normalCdf, softplus } from "../../web/algebra.js";
import { sha256 } from "../../web/reading.js";

const [, , ratingsFile, touchedFile] = process.argv;
const bytes = readFileSync(ratingsFile);
const model = Model.parse(bytes);
const touched = Model.parse(readFileSync(touchedFile));
const [one, two] = model.ids;
const refused = (words, run) => assert.throws(run, (error) => error instanceof RequestError && words.test(error.message));

// Every form of own ratings means the same.
const scores = model.predict({ [one]: 5, [two]: 1 });
for (const own of [new Map([[one, 5], [two, 1]]), [[two, 1], [one, 5]], new Map([[one, 5], [two, 1]]).entries()]) {
  assert.deepEqual(model.predict(own), scores);
}
const shares = touched.predict([touched.ids[0], touched.ids[1]]);
for (const own of [new Set(touched.ids.slice(0, 2)), touched.ids.slice(0, 2).map(String), [...touched.ids.slice(0, 2), touched.ids[0]]]) {
  assert.deepEqual(touched.predict(own), shares);
}

// An aligned and an unaligned buffer are read alike.
const shifted = new Uint8Array(bytes.length + 3);
shifted.set(bytes, 3);
assert.deepEqual(Model.parse(shifted.subarray(3)).predict({ [one]: 5, [two]: 1 }), scores);

// Lists leave out what was rated, and are as long as asked for, or as there are items.
assert.ok(!model.recommend({ [one]: 5 }, 1000).some(({ item }) => item === one));
assert.equal(model.recommend({ [one]: 5 }, 1000, { includeRated: true }).length, model.ids.length);
assert.equal(model.recommend({}, 3).length, 3);
const all = model.recommend({ [one]: 5 }, 2 + model.ids.length);
assert.deepEqual(model.recommend({ [one]: 5 }, 2), all.slice(0, 2));

// What cannot be done is refused, and no message has a rating in it.
refused(/outside the rating range/, () => model.predict({ [one]: 77 }));
refused(/outside the rating range/, () => model.predict({ [one]: NaN }));
refused(/outside the rating range/, () => model.predict({ [one]: "5" }));
refused(/rated twice/, () => model.predict([[one, 5], [one, 4]]));
refused(/expected/, () => model.predict(null));
refused(/expected/, () => model.predict([one]));
refused(/n=0/, () => model.recommend({}, 0));
refused(/n=1\.5/, () => model.recommend({}, 1.5));
refused(/by=fame/, () => model.recommend({}, 1, { by: "fame" }));
refused(/does not know it/, () => touched.recommend([], 1, { by: "rating" }));
refused(/uncertainty/, () => touched.stds([]));
try {
  model.predict({ [one]: 77 });
} catch (error) {
  assert.ok(!error.message.includes("77"));
}
assert.ok(new ModelFileError("x") instanceof Error);

// The functions that everything rests on, at values from tables.
assert.equal(sha256(new TextEncoder().encode("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
assert.equal(sha256(new TextEncoder().encode("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
for (const size of [55, 56, 63, 64, 65, 119, 120]) assert.equal(sha256(new Uint8Array(size)).length, 64);
const near = (found, wanted, relative = 1e-11) => assert.ok(Math.abs(found - wanted) <= relative * Math.abs(wanted), `${found} ${wanted}`);
near(normalCdf(0), 0.5);
near(normalCdf(1), 0.8413447460685429);
near(normalCdf(-2.9), 0.0018658133003840378);
near(normalCdf(-3.1), 0.0009676032132183573);
near(normalCdf(-10), 7.61985302416052e-24);
near(normalCdf(-37), 5.725571222524576e-300, 1e-9);
assert.equal(normalCdf(-Infinity), 0);
assert.equal(normalCdf(Infinity), 1);
near(softplus(-40), Math.exp(-40));
near(softplus(800), 800);
near(epsilonOf(1, 1e-6), 4.886555, 1e-5);
console.log("all as it should be");
