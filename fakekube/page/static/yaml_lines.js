/**
 * Prints JSON as lines of YAML with the path of each line. What is printed reads back as the same value.
 *
 * Strings are plain only if no reader of YAML 1.1 or 1.2 could take them for something else, literal blocks if they have several
 * lines, else JSON strings, which are valid YAML.
 */

import { isObject, itemNames, member } from "fk/paths";

/**
 * @typedef {object} Line
 * @property {number} depth of indentation, in steps of two spaces
 * @property {string} dash `- ` for each list item that begins here
 * @property {string} key with its colon; empty in lists and blocks
 * @property {string} text the value
 * @property {"string" | "number" | "word" | "empty" | "block" | "none" | "folded"} kind of the text
 * @property {string} path of the value that begins here; of the whole text in blocks
 */

const PLAIN = /^[A-Za-z_\/.][A-Za-z0-9_\/.-]*$/;
const WORDS = /^(?:y|n|yes|no|on|off|true|false|null|~|\.|\.\.|\.inf|\.nan|---|\.\.\.)$/i;
const NUMERIC = /^\.[0-9_]/;
const BLOCK = /^(?=[^\n]*\S)(?:[^\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]*)$/u;

/** The number of items and lines from which `fold` folds. */
export const LONG_LIST = 100;
export const LONG_TEXT = 20;

/**
 * @param {unknown} value
 * @param {{fold?: boolean}} [options] fold: lists and strings that are too long end in a line that says so
 * @returns {Line[]}
 */
export function yamlLines(value, { fold = false } = {}) {
  /** @type {Line[]} */
  const lines = [];
  print(value, { depth: 0, dash: "", key: "", path: "", fold }, lines);
  return lines;
}

/** The whole text. @param {unknown} value @returns {string} */
export function yamlText(value) {
  return yamlLines(value).map((line) => `${lineText(line)}\n`).join("");
}

/** A line as text. @param {Line} line */
export function lineText(line) {
  const key = line.key && line.text ? `${line.key} ` : line.key;
  return line.key || line.text || line.dash ? "  ".repeat(line.depth) + line.dash + key + line.text : "";
}

/**
 * @typedef {{depth: number, dash: string, key: string, path: string, fold: boolean}} Place
 */

/** @param {any} value @param {Place} place @param {Line[]} lines */
function print(value, place, lines) {
  if (Array.isArray(value) && value.length) printItems(value, place, lines);
  else if (isObject(value) && Object.keys(value).length) printMembers(value, place, lines);
  else if (typeof value === "string" && isBlock(value)) printBlock(value, place, lines);
  else lines.push({ depth: place.depth, dash: place.dash, key: place.key, path: place.path, ...scalar(value) });
}

/** @param {Record<string, any>} value @param {Place} place @param {Line[]} lines */
function printMembers(value, place, lines) {
  let { depth, dash } = place;
  if (place.key) {
    lines.push({ depth, dash, key: place.key, text: "", kind: "none", path: place.path });
    depth += 1 + dash.length / 2;
    dash = "";
  }
  for (const [name, inner] of Object.entries(value)) {
    print(inner, { depth, dash, key: `${keyText(name)}:`, path: member(place.path, name), fold: place.fold }, lines);
    depth += dash.length / 2;
    dash = "";
  }
}

/** @param {any[]} value @param {Place} place @param {Line[]} lines */
function printItems(value, place, lines) {
  let { depth, dash } = place;
  if (place.key) {
    lines.push({ depth, dash, key: place.key, text: "", kind: "none", path: place.path });
    depth += dash.length / 2;
    dash = "";
  }
  const names = itemNames(value);
  const shown = place.fold ? value.slice(0, LONG_LIST) : value;
  shown.forEach((item, index) => {
    print(item, { depth, dash: `${dash}- `, key: "", path: place.path + names[index], fold: place.fold }, lines);
    depth += dash.length / 2;
    dash = "";
  });
  if (shown.length < value.length) {
    lines.push({ depth, dash: "", key: "", text: `# … ${value.length - shown.length} more items`, kind: "folded", path: place.path });
  }
}

/** @param {string} text */
function isBlock(text) {
  return text.includes("\n") && !text.startsWith("\n") && BLOCK.test(text) && !/[ \t]\n|[ \t]$/.test(text) && !/^\s/.test(text) && !/^\s+\n/m.test(text);
}

/** @param {string} value @param {Place} place @param {Line[]} lines */
function printBlock(value, place, lines) {
  const end = /\n*$/.exec(value)?.[0].length ?? 0;
  const chomp = end === 0 ? "|-" : end === 1 ? "|" : "|+";
  lines.push({ depth: place.depth, dash: place.dash, key: place.key, text: chomp, kind: "block", path: place.path });
  const depth = place.depth + 1 + Math.max(0, place.dash.length / 2 - (place.key ? 0 : 1));
  const parts = (end ? value.slice(0, -1) : value).split("\n");
  const shown = place.fold ? parts.slice(0, LONG_TEXT) : parts;
  for (const text of shown) lines.push({ depth, dash: "", key: "", text, kind: "block", path: place.path });
  if (shown.length < parts.length) {
    lines.push({ depth, dash: "", key: "", text: `# … ${parts.length - shown.length} more lines`, kind: "folded", path: place.path });
  }
}

/** @param {string} name */
function keyText(name) {
  return isPlain(name) ? name : JSON.stringify(name);
}

/** @param {string} text */
function isPlain(text) {
  return PLAIN.test(text) && !WORDS.test(text) && !NUMERIC.test(text);
}

/** @param {any} value @returns {{text: string, kind: Line["kind"]}} */
function scalar(value) {
  if (typeof value === "string") return { text: isPlain(value) ? value : jsonString(value), kind: "string" };
  if (typeof value === "number" || typeof value === "bigint") return { text: String(value), kind: "number" };
  if (Array.isArray(value)) return { text: "[]", kind: "empty" };
  if (isObject(value)) return { text: "{}", kind: "empty" };
  return { text: String(value ?? null), kind: "word" };
}

/** JSON strings are YAML but for three characters, which YAML takes for line breaks or forbids. @param {string} text */
function jsonString(text) {
  return JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
