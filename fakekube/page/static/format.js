/** How numbers, times and durations read. Pure functions; times are those of the cluster's clock, in UTC. */

import { stringifyExact } from "fk/exact_json";

const TWO = (/** @type {number} */ n) => String(n).padStart(2, "0");

/**
 * The time of day, with milliseconds: `09:11:27.522`.
 * @param {number} seconds since 1970
 */
export function time(seconds) {
  if (!Number.isFinite(seconds)) return "";
  const date = new Date(Math.round(seconds * 1000));
  return `${TWO(date.getUTCHours())}:${TWO(date.getUTCMinutes())}:${TWO(date.getUTCSeconds())}.${String(date.getUTCMilliseconds()).padStart(3, "0")}`;
}

/** The time of day without milliseconds. @param {number} seconds */
export function clockTime(seconds) {
  return time(seconds).slice(0, 8);
}

/** A date and time with its zone. @param {number} seconds */
export function dateTime(seconds) {
  return Number.isFinite(seconds) ? `${new Date(seconds * 1000).toISOString().slice(0, 10)} ${time(seconds)} UTC` : "";
}

/**
 * A duration with its unit: `1.2 ms`, `3 s`, `4 m`, `2 h`, `3 d`.
 * @param {number} seconds
 */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "";
  const amount = Math.abs(seconds);
  if (amount < 0.0095) return `${trimmed(seconds * 1000, 1)} ms`;
  if (amount < 1) return `${Math.round(seconds * 1000)} ms`;
  if (amount < 10) return `${trimmed(seconds, 1)} s`;
  if (amount < 120) return `${Math.round(seconds)} s`;
  if (amount < 7200) return `${Math.round(seconds / 60)} m`;
  if (amount < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

/** Milliseconds of a request; one in flight has none. @param {number} ms */
export function milliseconds(ms) {
  if (!Number.isFinite(ms)) return "…";
  return ms < 10 ? ms.toFixed(1) : String(Math.round(ms));
}

/** @param {number} value @param {number} digits */
function trimmed(value, digits) {
  return String(Number(value.toFixed(digits)));
}

/** A number with separators: `1,204`. @param {number} value */
export function count(value) {
  return value.toLocaleString("en-US");
}

/** A number and its noun: `1 change`, `2 changes`. @param {number} value @param {string} noun */
export function plural(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : /(?:s|x|ch)$/.test(noun) ? "es" : "s"}`;
}

/** @param {number} bytes */
export function bytes(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${trimmed(bytes / 1000, 1)} kB`;
  return `${trimmed(bytes / 1e6, 1)} MB`;
}

/** `default/web`, or the name alone. @param {string} namespace @param {string} name */
export function qualified(namespace, name) {
  return namespace ? `${namespace}/${name}` : name;
}

/** A value on one line, cut at a length. @param {unknown} value @param {number} [limit] */
export function inline(value, limit = 80) {
  const text = value === undefined ? "∅" : typeof value === "string" ? value : stringifyExact(value);
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}
