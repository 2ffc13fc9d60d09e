// Model files: safetensors with the certificate in the header (docs/models.md). Nothing executable.

/** A file that is not a valid model. */
export class ModelFileError extends Error {
  /** @param {string} reason */
  constructor(reason) {
    super(`not a valid model file: ${reason}`);
    this.name = "ModelFileError";
  }
}

/**
 * @typedef {{data: Float64Array | BigInt64Array | BigUint64Array | Uint8Array, shape: number[]}} Tensor
 * @typedef {{facts: Record<string, any>, tensors: Map<string, Tensor>}} ModelFile
 */

const FORMAT = "tacit-model/2";
const WITHOUT_DIGEST = "tacit-model/1";
const LARGEST_HEADER = 2 ** 24;
const TYPES = { F64: Float64Array, I64: BigInt64Array, U64: BigUint64Array, U8: Uint8Array };
const BLANK = "0".repeat(64);

/**
 * Read the arrays and the facts of a model file; anything unsound is a ModelFileError.
 * @param {ArrayBuffer | Uint8Array} content
 * @returns {ModelFile}
 */
export function readFile(content) {
  const bytes = content instanceof Uint8Array ? content : new Uint8Array(content);
  try {
    const { header, start } = readHeader(bytes);
    const facts = parseFacts(header.__metadata__.tacit);
    if (facts.format === FORMAT) checkDigest(bytes, start, facts.digest);
    else if (facts.format !== WITHOUT_DIGEST || "digest" in facts) {
      throw new ModelFileError(`expected the format '${FORMAT}'; a newer tacit.js may read it`);
    }
    return { facts, tensors: readTensors(header, bytes, start) };
  } catch (error) {
    if (error instanceof ModelFileError) throw error;
    throw new ModelFileError("its header cannot be read");
  }
}

/** @param {Uint8Array} bytes */
function readHeader(bytes) {
  if (bytes.length < 8) throw new ModelFileError("it is too short");
  const size = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
  if (size > LARGEST_HEADER) throw new ModelFileError("its header is longer than that of any model");
  const start = 8 + Number(size);
  if (start > bytes.length) throw new ModelFileError("it ends too early: get it again");
  const header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(8, start)));
  return { header, start };
}

/** JSON as Python writes it: infinite numbers too. @param {string} text */
function parseFacts(text) {
  try {
    return JSON.parse(text);
  } catch {
    const plain = text.replace(/"(?:[^"\\]|\\.)*"|Infinity|NaN/g, (token) =>
      token === "Infinity" ? "1e999" : token === "NaN" ? "null" : token,
    );
    return JSON.parse(plain);
  }
}

/** @param {Record<string, any>} header @param {Uint8Array} bytes @param {number} start */
function readTensors(header, bytes, start) {
  const entries = Object.entries(header).filter(([name]) => name !== "__metadata__");
  entries.sort(([, one], [, other]) => one.data_offsets[0] - other.data_offsets[0]);
  const tensors = new Map();
  let end = 0;
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of entries) {
    if (!Object.hasOwn(TYPES, dtype)) throw new ModelFileError("an array is of no known type");
    const type = TYPES[dtype];
    const size = shape.reduce((product, length) => product * length, 1);
    const whole = shape.every((length) => Number.isSafeInteger(length) && length >= 0);
    if (!whole || from !== end || to - from !== size * type.BYTES_PER_ELEMENT) {
      throw new ModelFileError("its arrays do not fit together");
    }
    if (start + to > bytes.length) throw new ModelFileError("it ends too early: get it again");
    const first = bytes.byteOffset + start + from;
    const aligned = first % type.BYTES_PER_ELEMENT === 0;
    const data = aligned
      ? new type(bytes.buffer, first, size)
      : new type(bytes.buffer.slice(first, first + to - from));
    tensors.set(name, { data, shape });
    end = to;
  }
  if (start + end !== bytes.length) throw new ModelFileError("it is longer than its header says");
  return tensors;
}

/**
 * Read texts that stand one after another, with the byte at which each ends.
 * @param {Map<string, Tensor>} tensors @param {string} name
 */
export function readTexts(tensors, name) {
  const text = tensors.get(`${name}.text`)?.data;
  const ends = tensors.get(`${name}.ends`)?.data;
  if (!(text instanceof Uint8Array) || !(ends instanceof BigInt64Array)) {
    throw new ModelFileError(`the texts of '${name}' are damaged`);
  }
  try {
    return cut(text, ends);
  } catch {
    throw new ModelFileError(`the texts of '${name}' are damaged`);
  }
}

/** @param {Uint8Array} text @param {BigInt64Array} ends */
function cut(text, ends) {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const whole = decoder.decode(text);
  const plain = whole.length === text.length; // then a byte is a character
  let start = 0;
  const texts = Array.from(ends, (edge) => {
    const [from, to] = [start, Number(edge)];
    if (!(to >= from && to <= text.length)) throw new RangeError();
    start = to;
    return plain ? whole.slice(from, to) : decoder.decode(text.subarray(from, to));
  });
  if (start !== text.length) throw new RangeError();
  return texts;
}

/** Refuse a file whose bytes do not give the digest that is stated in its header. */
function checkDigest(bytes, start, stated) {
  if (typeof stated !== "string" || !/^sha256:[0-9a-f]{64}$/.test(stated)) {
    throw new ModelFileError("it has no digest of its content, which its format requires");
  }
  const place = new TextDecoder("latin1").decode(bytes.subarray(0, start)).indexOf(stated);
  if (place < 0) throw new ModelFileError("it has no digest of its content, which its format requires");
  const blanked = new Uint8Array(bytes); // a copy: slice() of a Buffer of Node would be a view
  blanked.set(new TextEncoder().encode(BLANK), place + "sha256:".length);
  if (`sha256:${sha256(blanked)}` !== stated) {
    throw new ModelFileError("its content does not match its digest; it was damaged or changed: get it again");
  }
}

/** The first 32 bits of the fractions of a root of the first primes (FIPS 180-4). */
function fractions(count, root) {
  const found = [];
  for (let candidate = 2; found.length < count; candidate++) {
    let prime = true;
    for (let d = 2; d * d <= candidate; d++) prime &&= candidate % d > 0;
    if (prime) found.push(wholeRoot(BigInt(candidate), root));
  }
  return Int32Array.from(found);
}

/** Exactly: floor(2^32 prime^(1/root)) mod 2^32, which floating point might round. */
function wholeRoot(prime, root) {
  const target = prime << BigInt(32 * root);
  let [low, high] = [0n, 1n << 42n];
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(root) <= target) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn);
}

const ROUNDS = fractions(64, 3);
const START = fractions(8, 2);

/**
 * SHA-256 in hex digits. Browsers have one only where a page is served over HTTPS or from loopback.
 * @param {Uint8Array} bytes
 */
export function sha256(bytes) {
  const whole = bytes.length - (bytes.length % 64);
  const rest = new Uint8Array(bytes.length - whole < 56 ? 64 : 128);
  rest.set(bytes.subarray(whole));
  rest[bytes.length - whole] = 0x80;
  new DataView(rest.buffer).setBigUint64(rest.length - 8, BigInt(bytes.length) * 8n);
  const state = START.slice();
  addBlocks(state, bytes.subarray(0, whole));
  addBlocks(state, rest);
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/** @param {Int32Array} state @param {Uint8Array} bytes */
function addBlocks(state, bytes) {
  const words = new Int32Array(64);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let block = 0; block < bytes.length; block += 64) {
    for (let t = 0; t < 16; t++) words[t] = view.getInt32(block + 4 * t);
    for (let t = 16; t < 64; t++) {
      const early = words[t - 15];
      const late = words[t - 2];
      const one = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
      const two = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
      words[t] = (words[t - 16] + one + words[t - 7] + two) | 0;
    }
    mix(state, words);
  }
}

/** @param {number} word @param {number} by */
function turn(word, by) {
  return (word >>> by) | (word << (32 - by));
}

/** @param {Int32Array} state @param {Int32Array} words */
function mix(state, words) {
  let a = state[0], b = state[1], c = state[2], d = state[3];
  let e = state[4], f = state[5], g = state[6], h = state[7];
  for (let t = 0; t < 64; t++) {
    const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[t] + words[t]) | 0;
    const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + first) | 0;
    d = c; c = b; b = a; a = (first + second) | 0;
  }
  state[0] += a; state[1] += b; state[2] += c; state[3] += d;
  state[4] += e; state[5] += f; state[6] += g; state[7] += h;
}
