/**
 * Which manager owns which field: walks each entry of `metadata.managedFields` together with the object.
 *
 * `f:NAME` is a member, `k:{…}` the item of a list whose members equal the key, `v:…` the item of a set with that value, `i:N` the
 * item at an index, `.` the node itself. Specified by: structured-merge-diff, fieldpath/serialize-pe.go.
 */

import { parseExact, stringifyExact } from "fk/exact_json";
import { isObject, itemNames, member } from "fk/paths";

/**
 * @typedef {object} Owner
 * @property {string} manager
 * @property {string} operation Apply or Update
 * @property {string} subresource
 * @property {string} time
 */

/**
 * The owners of each path of an object, in the order of managedFields. Fields that the object no longer has are left out.
 * @param {Record<string, any>} object
 * @returns {Map<string, Owner[]>}
 */
export function ownersOf(object) {
  /** @type {Map<string, Owner[]>} */
  const owners = new Map();
  for (const entry of object?.metadata?.managedFields ?? []) {
    const owner = {
      manager: String(entry.manager ?? ""),
      operation: String(entry.operation ?? ""),
      subresource: String(entry.subresource ?? ""),
      time: String(entry.time ?? ""),
    };
    if (isObject(entry.fieldsV1)) walk(entry.fieldsV1, object, "", owner, owners);
  }
  return owners;
}

/** @param {Record<string, any>} fields @param {any} value @param {string} path @param {Owner} owner @param {Map<string, Owner[]>} owners */
function walk(fields, value, path, owner, owners) {
  const names = Object.keys(fields);
  if (!names.length || Object.hasOwn(fields, ".")) add(owners, path, owner);
  const labels = Array.isArray(value) ? itemNames(value) : [];
  for (const name of names) {
    if (name === ".") continue;
    const step = resolve(name, value);
    if (step === undefined) continue;
    const inner = typeof step === "string" ? member(path, step) : path + labels[step];
    walk(isObject(fields[name]) ? fields[name] : {}, value[step], inner, owner, owners);
  }
}

/** @param {Map<string, Owner[]>} owners @param {string} path @param {Owner} owner */
function add(owners, path, owner) {
  const found = owners.get(path);
  if (found) found.push(owner);
  else owners.set(path, [owner]);
}

/**
 * The member or index that an element of fieldsV1 names in a value; undefined if the value has none.
 * @param {string} element @param {any} value
 * @returns {string | number | undefined}
 */
function resolve(element, value) {
  const kind = element.slice(0, 2);
  const rest = element.slice(2);
  if (kind === "f:") return isObject(value) && Object.hasOwn(value, rest) ? rest : undefined;
  if (!Array.isArray(value)) return undefined;
  if (kind === "i:") return Number(rest) < value.length ? Number(rest) : undefined;
  if (kind !== "k:" && kind !== "v:") return undefined;
  const wanted = parsed(rest);
  const position = value.findIndex((item) => (kind === "k:" ? hasKey(item, wanted) : equal(item, wanted)));
  return position < 0 ? undefined : position;
}

/** @param {string} text */
function parsed(text) {
  try {
    return parseExact(text);
  } catch {
    return undefined;
  }
}

/** Defaults of keys that servers leave out of objects, and managers of their entries. */
const KEY_DEFAULTS = /** @type {Record<string, unknown>} */ ({ protocol: "TCP" });

/** @param {any} item @param {any} key */
function hasKey(item, key) {
  return isObject(item) && isObject(key) && Object.entries(key).every(([name, value]) => equal(memberOf(item, name), value));
}

/** @param {Record<string, unknown>} item @param {string} name */
function memberOf(item, name) {
  return [item, KEY_DEFAULTS].find((one) => Object.hasOwn(one, name))?.[name];
}

/** @param {unknown} one @param {unknown} other */
function equal(one, other) {
  return one === other || (typeof one === "object" && stringifyExact(one) === stringifyExact(other));
}

/** An owner in one word: `kubectl/status`. @param {Owner} owner */
export function ownerName(owner) {
  return owner.subresource ? `${owner.manager}/${owner.subresource}` : owner.manager;
}
