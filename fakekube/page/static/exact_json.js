/**
 * JSON whose integers stay exact: those beyond 2^53 become BigInts, and are written with all their digits. Kubernetes' integers have
 * 64 bits, the numbers of JavaScript 53.
 */

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const INTEGER = /^-?\d{16,}$/;

/** @param {string} text @returns {any} Throws SyntaxError. */
export function parseExact(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const mark = unused(text);
  let found = false;
  const marked = text.replace(TOKEN, (token) => {
    if (!INTEGER.test(token) || Number.isSafeInteger(Number(token))) return token;
    found = true;
    return `{"${mark}":"${token}"}`;
  });
  if (!found) return JSON.parse(text);
  return JSON.parse(marked, (_, value) => (typeof value === "object" && value !== null && Object.hasOwn(value, mark) ? BigInt(value[mark]) : value));
}

/** @param {unknown} value @param {number} [indent] @returns {string} */
export function stringifyExact(value, indent) {
  let found = false;
  const plain = JSON.stringify(value, (_, one) => {
    found ||= typeof one === "bigint";
    return typeof one === "bigint" ? String(one) : one;
  }, indent);
  if (!found) return plain;
  const mark = unused(plain);
  const marked = JSON.stringify(value, (_, one) => (typeof one === "bigint" ? `${mark}${one}` : one), indent);
  return marked.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1");
}

/** A name that a text does not have. @param {string} text */
function unused(text) {
  let mark = "integer";
  while (text.includes(mark)) mark += Math.random().toString(36).slice(2);
  return mark;
}
