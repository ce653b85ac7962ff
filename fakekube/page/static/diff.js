/**
 * The differences of two JSON values as paths with old and new values. Members are compared one by one; items of lists are matched
 * by their merge key, or by index if the lists are equally long; else the whole list differs. A member that is missing on one side
 * is one difference with its whole value.
 *
 * Python computes the same in fakekube/powers (changed paths of rows/changes, changes/REV and compare).
 */

import { isObject, itemName, member, mergeKey } from "fk/paths";

/**
 * @typedef {object} Difference
 * @property {string} path
 * @property {unknown} [old] absent if the field was added
 * @property {unknown} [new] absent if the field was removed
 */

/**
 * @param {unknown} old @param {unknown} now @param {string} [path]
 * @returns {Difference[]}
 */
export function diff(old, now, path = "") {
  /** @type {Difference[]} */
  const found = [];
  walk(old, now, path, found);
  return found;
}

/** @param {any} old @param {any} now @param {string} path @param {Difference[]} found */
function walk(old, now, path, found) {
  if (old === now) return;
  if (isObject(old) && isObject(now)) walkMembers(old, now, path, found);
  else if (Array.isArray(old) && Array.isArray(now)) walkItems(old, now, path, found);
  else if (old === undefined) found.push({ path, new: now });
  else if (now === undefined) found.push({ path, old });
  else found.push({ path, old, new: now });
}

/** @param {Record<string, any>} old @param {Record<string, any>} now @param {string} path @param {Difference[]} found */
function walkMembers(old, now, path, found) {
  for (const name of new Set([...Object.keys(old), ...Object.keys(now)])) {
    walk(own(old, name), own(now, name), member(path, name), found);
  }
}

/** @param {Record<string, any>} value @param {string} name */
function own(value, name) {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

/** @param {any[]} old @param {any[]} now @param {string} path @param {Difference[]} found */
function walkItems(old, now, path, found) {
  const names = old.length && now.length ? mergeKey(old, now) : null;
  if (names) {
    const before = new Map(old.map((item) => [itemName(names, item), item]));
    const after = new Map(now.map((item) => [itemName(names, item), item]));
    if (reordered([...before.keys()], [...after.keys()])) {
      found.push({ path, old, new: now });
      return;
    }
    for (const name of new Set([...before.keys(), ...after.keys()])) walk(before.get(name), after.get(name), path + name, found);
  } else if (old.length === now.length) {
    old.forEach((item, index) => walk(item, now[index], `${path}[${index}]`, found));
  } else {
    found.push({ path, old, new: now });
  }
}

/** Whether the common items of two lists have another order. @param {string[]} old @param {string[]} now */
function reordered(old, now) {
  const kept = new Set(now);
  const common = old.filter((name) => kept.has(name));
  const before = new Set(old);
  return now.filter((name) => before.has(name)).some((name, index) => name !== common[index]);
}

/** Members of metadata that change with every write, or say who wrote. */
const NOISE = ["metadata.managedFields", "metadata.resourceVersion", "metadata.generation"];

/** Removes the differences that every write makes. @param {Difference[]} differences */
export function withoutNoise(differences) {
  return differences.filter(({ path }) => !NOISE.some((one) => path === one || path.startsWith(`${one}[`) || path.startsWith(`${one}.`)));
}
