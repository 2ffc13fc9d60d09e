// Linear algebra of one person, and the normal law. Matrices are rows one after another.

/** @typedef {{data: Float64Array, rows: number, columns: number}} Matrix */

/** @param {number} rows @param {number} columns @returns {Matrix} */
export function matrixFrom(rows, columns) {
  return { data: new Float64Array(rows * columns), rows, columns };
}

/** The inner product of a row of a matrix and a vector. @param {Matrix} matrix */
export function dotRow(matrix, row, vector) {
  const { data, columns } = matrix;
  let total = 0;
  for (let k = 0, at = row * columns; k < columns; k++, at++) total += data[at] * vector[k];
  return total;
}

/**
 * Return the upper half of B^T B + ridge I, or with `across` of B B^T + ridge I.
 * @param {Matrix} block @param {boolean} across @returns {Matrix}
 */
export function gram(block, across, ridge = 1) {
  const { data, rows, columns } = block;
  const size = across ? rows : columns;
  const sums = matrixFrom(size, size);
  for (let k = 0; k < size; k++) sums.data[k * size + k] = ridge;
  if (across) {
    for (let a = 0; a < rows; a++) {
      const own = data.subarray(a * columns, a * columns + columns);
      for (let b = a; b < rows; b++) sums.data[a * size + b] += dotRow(block, b, own);
    }
    return sums;
  }
  for (let p = 0; p < rows; p++) {
    for (let k = 0; k < size; k++) {
      const weight = data[p * size + k];
      for (let l = k; l < size; l++) sums.data[k * size + l] += weight * data[p * size + l];
    }
  }
  return sums;
}

/** Turn the upper half into U with U^T U, in place; false if that cannot be done. @param {Matrix} upper */
export function cholesky(upper) {
  const { data, rows: size } = upper;
  for (let k = 0; k < size; k++) {
    for (let a = 0; a < k; a++) {
      const weight = data[a * size + k];
      for (let l = k; l < size; l++) data[k * size + l] -= weight * data[a * size + l];
    }
    const pivot = data[k * size + k];
    if (!(pivot > 0 && pivot < Infinity)) return false;
    const root = Math.sqrt(pivot);
    for (let l = k; l < size; l++) data[k * size + l] /= root;
  }
  return true;
}

/** Solve U^T x = right in place. @param {Matrix} upper @param {Float64Array} right */
export function forward(upper, right) {
  const { data, rows: size } = upper;
  for (let k = 0; k < size; k++) {
    right[k] /= data[k * size + k];
    for (let l = k + 1; l < size; l++) right[l] -= right[k] * data[k * size + l];
  }
}

/** Solve U^T U x = right in place. @param {Matrix} upper @param {Float64Array} right */
export function substitute(upper, right) {
  const { data, rows: size } = upper;
  forward(upper, right);
  for (let k = size - 1; k >= 0; k--) {
    for (let l = k + 1; l < size; l++) right[k] -= data[k * size + l] * right[l];
    right[k] /= data[k * size + k];
  }
}

/** log(1 + e^x). @param {number} x */
export function softplus(x) {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

/**
 * e^(x^2/2) times the upper tail of the normal law, for x >= 0: a series near zero, and beyond the
 * continued fraction 1/(x + 1/(x + 2/(x + 3/(x + ...)))) from its 80th part backwards.
 */
function scaledTail(x) {
  if (x < 3) return Math.sqrt(Math.PI / 2) * Math.exp((x * x) / 2) - oddSeries(x);
  let below = x;
  for (let part = 80; part > 0; part--) below = x + part / below;
  return 1 / below;
}

/** x + x^3/3 + x^5/(3 5) + ...: e^(x^2/2) times the integral from 0 to x of e^(-t^2/2). */
function oddSeries(x) {
  let [term, sum] = [x, x];
  for (let odd = 3; Math.abs(term) > 1e-17 * Math.abs(sum); odd += 2) {
    term *= (x * x) / odd;
    sum += term;
  }
  return sum;
}

/** The normal law's distribution function, exact to about twelve digits in both tails. @param {number} x */
export function normalCdf(x) {
  if (Number.isNaN(x)) return NaN;
  const far = Math.abs(x);
  if (far > 40) return x > 0 ? 1 : 0;
  const tail = (Math.exp((-far * far) / 2) / Math.sqrt(2 * Math.PI)) * scaledTail(far);
  return x > 0 ? 1 - tail : tail;
}

/** How much of the normal law is within x >= 0 of its middle, with all digits also where it is small. */
export function centralMass(x) {
  if (x >= 3) return 1 - 2 * normalCdf(-x);
  return Math.sqrt(2 / Math.PI) * Math.exp((-x * x) / 2) * oddSeries(x);
}

/**
 * The smallest epsilon that releases with a total cost of mu give at this delta.
 *
 * With a = epsilon/mu - mu/2 and b = a + mu, delta = phi(a) (tail(a) - tail(b)), tail scaled by phi.
 * It is for showing: `tacit verify` rounds up, and has proofs.
 * @param {number} mu @param {number} delta
 */
export function epsilonOf(mu, delta) {
  if (!(mu > 0)) return 0;
  let [low, high] = [0, (mu * mu) / 2 + 40 * mu + 1];
  for (let step = 0; step < 200; step++) {
    const middle = (low + high) / 2;
    if (deltaOf(middle, mu) > delta) low = middle;
    else high = middle;
  }
  return high;
}

/** @param {number} epsilon @param {number} mu */
function deltaOf(epsilon, mu) {
  const [a, b] = [epsilon / mu - mu / 2, epsilon / mu + mu / 2];
  if (a < 0) return normalCdf(-a) - Math.exp(epsilon + Math.log(normalCdf(-b) || 1e-320));
  return (Math.exp((-a * a) / 2) / Math.sqrt(2 * Math.PI)) * (scaledTail(a) - scaledTail(b));
}
