/**
 * Revisions as numbers of the page. A cluster may start at a revision up to 2^128, which JSON gives as a string; the page keeps
 * the offset to a base, which is 0 for all usual clusters.
 */

let base = 0n;

/**
 * Sets the base from the first revision that the page sees.
 * @param {number | string} revision
 */
export function setBase(revision) {
  base = typeof revision === "string" && BigInt(revision) > 2n ** 53n ? BigInt(revision) - 1_000_000_000n : 0n;
}

/** The number of a revision in JSON. @param {number | string} revision @returns {number} */
export function revisionOf(revision) {
  if (base === 0n) return Number(revision);
  const value = BigInt(revision);
  return value < base ? 0 : Number(value - base);
}

/** The digits of a revision. @param {number} revision @returns {string} */
export function digits(revision) {
  return base === 0n || revision <= 0 ? String(revision) : String(base + BigInt(revision));
}
