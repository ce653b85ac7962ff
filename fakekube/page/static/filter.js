/**
 * The filter language of all views: `key:value` terms joined by AND; `a,b` within a value is OR; `-term` negates; `key>n`, `key<n`;
 * quoted or bare words match names, resources, paths and actors as substrings. There are no regular expressions.
 *
 * A filter is parsed once, then compiled for a table of rows. Strings are interned, so a term is decided once for each different
 * string, and a row costs one look-up a term.
 */

import { revisionOf } from "fk/revisions";

/**
 * @typedef {object} Term
 * @property {string} text as it was written
 * @property {boolean} negated
 * @property {string} key empty for words
 * @property {":" | ">" | "<"} operator
 * @property {string[]} values
 * @property {number} start of the term in the text
 * @property {number} end
 */

/**
 * @typedef {object} Filter
 * @property {Term[]} terms
 * @property {string} error empty if the text is valid
 */

/** The keys, with what they mean; the help and the suggestions show them. */
export const KEYS = /** @type {Record<string, string>} */ ({
  actor: "who sent the request, or made the change",
  agent: "the beginning of the User-Agent",
  user: "the user",
  verb: "get, list, watch, create, update, patch, delete …",
  resource: "pods, deployments.apps, pods/status, pods/*",
  kind: "Pod, Deployment …",
  ns: "the namespace; - for none",
  name: "the name; a* for a beginning",
  code: "the status code: 409, 4xx, code>399",
  fault: "the label of a fault; * for any",
  rev: "the revision: rev>500",
  ms: "the milliseconds of the request: ms>100",
  own: "true, false, reads, writes: requests of the cluster's own parts",
  type: "ADDED, MODIFIED, DELETED",
  path: "a changed path, or a path outside resources",
  health: "ok, waiting, bad, unknown",
  event: "the number of events that a watch delivered: event>10",
});

/** The filter of a page that has just been opened. */
export const DEFAULT_FILTER = "-own:reads -heartbeats";

const NUMERIC = new Set(["code", "rev", "ms", "event"]);
const TERM = /(-?)(?:([A-Za-z]+)([:<>]))?((?:"(?:[^"\\]|\\.)*"|[^\s"])*)(\S*)/y;

/**
 * @param {string} text
 * @returns {Filter}
 */
export function parseFilter(text) {
  /** @type {Filter["terms"]} */
  const terms = [];
  for (let position = 0; ; ) {
    while (/\s/.test(text.charAt(position))) position++;
    if (position >= text.length) return { terms, error: "" };
    TERM.lastIndex = position;
    const match = /** @type {RegExpExecArray} */ (TERM.exec(text));
    const [whole, minus, key = "", operator = ":", value, rest] = match;
    const problem = rest ? `unfinished quote: ${whole}` : problemOf(key.toLowerCase(), operator, value);
    if (problem) return { terms: [], error: problem };
    const values = splitValues(value);
    terms.push({ text: whole, negated: minus === "-", key: key.toLowerCase(), operator: /** @type {":" | ">" | "<"} */ (operator), values, start: position, end: position + whole.length });
    position += whole.length;
  }
}

/** @param {string} key @param {string} operator @param {string} value @returns {string} */
function problemOf(key, operator, value) {
  if (key && !Object.hasOwn(KEYS, key)) return `unknown key ${key}: known are ${Object.keys(KEYS).join(", ")}`;
  if (!value) return key ? `${key}${operator} needs a value` : "a term is missing after -";
  if (operator !== ":" && !NUMERIC.has(key)) return `${key}${operator} compares numbers: ${[...NUMERIC].join(", ")}`;
  if (operator !== ":" && !/^\d+(\.\d+)?$/.test(value)) return `${key}${operator} needs a number`;
  return "";
}

/** Splits at commas outside quotes, and removes the quotes. @param {string} text */
function splitValues(text) {
  const parts = text.match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+/g) ?? [""];
  return parts.map((part) => part.replace(/"((?:[^"\\]|\\.)*)"/g, (_, inner) => inner.replace(/\\(.)/g, "$1")));
}

/** Writes a term: quotes the value if need be. @param {string} key @param {string} value */
export function term(key, value) {
  return `${key}:${/^[^\s",]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`;
}

/** Removes a term from a text. @param {string} text @param {Term} one */
export function withoutTerm(text, one) {
  return `${text.slice(0, one.start).trimEnd()} ${text.slice(one.end).trimStart()}`.trim();
}

/** Adds a term, and removes others of the same key and sign. @param {string} text @param {string} added */
export function withTerm(text, added) {
  const [one] = parseFilter(added).terms;
  const others = parseFilter(text).terms.filter((other) => !(other.key === one.key && other.negated === one.negated && one.key));
  return [...others.map((other) => other.text), added].join(" ");
}

/**
 * Compiles a filter for a table.
 * @param {Filter} filter
 * @param {import("fk/store").Table} table
 * @returns {(row: number) => boolean}
 */
export function compileFilter(filter, table) {
  const tests = filter.terms.map((one) => {
    const test = one.key ? keyTest(one, table) : wordTest(one, table);
    return one.negated ? (/** @type {number} */ row) => !test(row) : test;
  });
  if (!tests.length) return () => true;
  if (tests.length === 1) return tests[0];
  return (row) => {
    for (const test of tests) if (!test(row)) return false;
    return true;
  };
}

/**
 * The rows that a filter lets through, in order.
 * @param {Filter} filter @param {import("fk/store").Table} table
 * @returns {Int32Array}
 */
export function filteredRows(filter, table) {
  const passes = compileFilter(filter, table);
  const found = new Int32Array(table.count);
  let size = 0;
  for (let row = 0; row < table.count; row++) if (passes(row)) found[size++] = row;
  return found.subarray(0, size);
}

/** @typedef {(row: number) => boolean} Test */

/** @param {Term} one @param {import("fk/store").Table} table @returns {Test} */
function keyTest({ key, operator, values }, table) {
  if (key === "own") return ownTest(values, table);
  if (key === "path") return pathTest(values, table);
  if (NUMERIC.has(key)) return numberTest(key, operator, values, table);
  const column = COLUMNS[key] ?? key;
  return stringTest(column, (text) => values.some((value) => (MATCHERS[key] ?? glob)(text, value)), table);
}

const COLUMNS = /** @type {Record<string, string>} */ ({ ns: "namespace", health: "state" });

/** How a value matches a string, where it is not the same or a beginning with a star. */
const MATCHERS = /** @type {Record<string, (text: string, value: string) => boolean>} */ ({
  agent: (text, value) => text.startsWith(value),
  resource: resourceMatches,
  kind: (text, value) => text.toLowerCase() === value.toLowerCase(),
  type: (text, value) => text.toLowerCase() === value.toLowerCase(),
  ns: (text, value) => (value === "-" ? text === "" : glob(text, value)),
  fault: (text, value) => (value === "*" ? text !== "" : glob(text, value)),
});

/** @param {string} text @param {string} value */
function glob(text, value) {
  return value.endsWith("*") ? text.startsWith(value.slice(0, -1)) : text === value;
}

/**
 * Whether a resource is meant by a name, as in `cluster.requests.where`: `pods`, `deployments.apps`, `pods/status`, `pods/*`, `*`.
 * @param {string} text @param {string} value
 */
export function resourceMatches(text, value) {
  if (value === "*") return text !== "";
  const [wanted, wantedSub = ""] = value.split("/");
  const [found, foundSub = ""] = text.split("/");
  if (wantedSub === "*" ? !foundSub : wantedSub !== foundSub) return false;
  return found === wanted || found.split(".")[0] === wanted;
}

/** @param {string} name @param {(text: string) => boolean} matches @param {import("fk/store").Table} table @returns {Test} */
function stringTest(name, matches, table) {
  const column = table.columns[name];
  if (!column) return () => false;
  const known = new Int8Array(table.strings.list.length + 1024);
  return (row) => {
    const index = column[row];
    if (index >= known.length) return matches(table.strings.list[index]);
    if (known[index] === 0) known[index] = matches(table.strings.list[index]) ? 1 : -1;
    return known[index] === 1;
  };
}

const NUMBERS = /** @type {Record<string, string>} */ ({ code: "code", ms: "ms", event: "events" });

/** @param {string} key @param {string} operator @param {string[]} values @param {import("fk/store").Table} table @returns {Test} */
function numberTest(key, operator, values, table) {
  const column = key === "rev" ? (table.columns.revision ?? table.columns.rev) : table.columns[NUMBERS[key]];
  if (!column) return () => false;
  const read = (/** @type {string} */ value) => (key === "rev" ? revisionOf(value) : Number(value));
  if (operator === ">") {
    const limit = read(values[0]);
    return (row) => column[row] > limit;
  }
  if (operator === "<") {
    const limit = read(values[0]);
    return (row) => column[row] < limit && (column[row] > 0 || key === "ms");
  }
  const ranges = values.map((value) => rangeOf(value, read));
  return (row) => ranges.some(([low, high]) => column[row] >= low && column[row] <= high);
}

/** `409`, `4xx`, `400..499`. @param {string} value @param {(value: string) => number} read */
function rangeOf(value, read) {
  if (/^[1-5]xx$/i.test(value)) return [Number(value[0]) * 100, Number(value[0]) * 100 + 99];
  const [low, high = low] = value.split("..");
  return /^\d+(\.\d+)?$/.test(low) && /^\d+(\.\d+)?$/.test(high) ? [read(low), read(high)] : [NaN, NaN];
}

/** @param {string[]} values @param {import("fk/store").Table} table @returns {Test} */
function ownTest(values, table) {
  const own = table.columns.own ?? table.columns.side;
  if (!own) return () => false;
  const isOwn = table.columns.own ? (/** @type {number} */ row) => own[row] === 1 : stringTest("side", (side) => side === "cluster", table);
  const reads = table.columns.verb ? stringTest("verb", (verb) => verb === "get" || verb === "list" || verb === "watch", table) : () => false;
  return (row) => values.some((value) => {
    if (value === "reads") return isOwn(row) && reads(row);
    if (value === "writes") return isOwn(row) && !reads(row);
    return isOwn(row) === (value === "true");
  });
}

/** @param {string[]} values @param {import("fk/store").Table} table @returns {Test} */
function pathTest(values, table) {
  const url = table.columns.path ? stringTest("path", (text) => values.some((value) => text.includes(value)), table) : () => false;
  const paths = table.columns.paths;
  return (row) => url(row) || (paths?.[row]?.some((/** @type {string} */ path) => values.some((value) => path.includes(value))) ?? false);
}

/** Columns in which a word is looked for. */
const SEARCHED = ["name", "namespace", "resource", "kind", "actor", "path", "text", "why"];

/** @param {Term} one @param {import("fk/store").Table} table @returns {Test} */
function wordTest({ values }, table) {
  if (values.length === 1 && values[0] === "heartbeats") return heartbeatTest(table);
  const wanted = values.map((value) => value.toLowerCase());
  const matches = (/** @type {string} */ text) => wanted.some((word) => text.toLowerCase().includes(word));
  const tests = SEARCHED.filter((name) => table.columns[name]).map((name) => stringTest(name, matches, table));
  const paths = table.columns.paths;
  return (row) => tests.some((test) => test(row)) || (paths?.[row]?.some(matches) ?? false);
}

/** Leases, Events, status of nodes in which no condition changed, and what a fresh cluster has. @param {import("fk/store").Table} table @returns {Test} */
function heartbeatTest(table) {
  const named = stringTest("resource", (resource) => /^(leases\.coordination\.k8s\.io|events(\.events\.k8s\.io)?)(\/|$)/.test(resource), table);
  const flag = table.columns.heartbeat;
  return flag ? (row) => flag[row] > 0 || named(row) : named;
}
