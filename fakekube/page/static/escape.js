/**
 * Makes text from outside harmless to read: control characters, bidirectional overrides and invisible characters are shown as
 * symbols. All other escaping is that of the DOM: the page only ever sets text.
 */

const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000d\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
const HIDDEN_IN_LINE = new RegExp(`[\\t\\n]|${HIDDEN.source}`, "gu");

/** @param {string} character */
function symbol(character) {
  const code = /** @type {number} */ (character.codePointAt(0));
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "␡";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/**
 * Returns a text of one line: line breaks and tabs are symbols too.
 * @param {unknown} text
 * @returns {string}
 */
export function visible(text) {
  return String(text ?? "").replace(HIDDEN_IN_LINE, symbol);
}

/**
 * Returns a text that may have several lines.
 * @param {unknown} text
 * @returns {string}
 */
export function visibleLines(text) {
  return String(text ?? "").replace(HIDDEN, symbol);
}

/**
 * Quotes a word for a POSIX shell. Words with control characters use $'…', which bash, zsh and POSIX 2024 know.
 * @param {string} word
 * @returns {string}
 */
export function shellQuote(word) {
  if (/^[A-Za-z0-9_\/.,:=@%+-]+$/.test(word)) return word;
  if (!/[\u0000-\u001f\u007f]/.test(word)) return `'${word.replaceAll("'", `'\\''`)}'`;
  const escaped = word.replace(/[\\']/g, "\\$&").replace(/[\u0000-\u001f\u007f]/g, (one) => `\\${one.charCodeAt(0).toString(8).padStart(3, "0")}`);
  return `$'${escaped}'`;
}

/**
 * Returns a Python literal of a JSON value.
 * @param {unknown} value
 * @returns {string}
 */
export function pythonLiteral(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([key, one]) => `${pythonLiteral(key)}: ${pythonLiteral(one)}`).join(", ")}}`;
  }
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
