/**
 * Paths of fields: `spec.replicas`, `metadata.labels["app.kubernetes.io/name"]`, `spec.containers[name=web].image`, `args[2]`.
 *
 * An item of a list is named by its merge key if all items of the list have that key with different values, else by its index.
 * Python writes paths by the same rule (fakekube/powers), so that a path means the same in a row, a finding and an address.
 */

/** Members that identify the items of a list, the first fitting one counts. */
const MERGE_KEYS = [["name"], ["containerPort", "protocol"], ["port", "protocol"], ["type"], ["ip"], ["uid"], ["key"]];

const PLAIN = /^[A-Za-z0-9_-]+$/;
const PLAIN_VALUE = /^[A-Za-z0-9_.:\/-]+$/;

/** @param {unknown} value @returns {value is Record<string, any>} */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The path of a member.
 * @param {string} path @param {string} name
 */
export function member(path, name) {
  if (!PLAIN.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path ? `${path}.${name}` : name;
}

/**
 * The merge key of lists: the members that identify each item in all of them; null if there is none.
 * @param {...unknown[]} lists
 * @returns {string[] | null}
 */
export function mergeKey(...lists) {
  const used = lists.filter((list) => list.length);
  if (!used.length) return null;
  return MERGE_KEYS.find((names) => used.every((list) => identifies(list, names))) ?? null;
}

/** @param {unknown[]} list @param {string[]} names */
function identifies(list, names) {
  const seen = new Set();
  for (const item of list) {
    if (!isObject(item) || !names.every((name) => isScalar(item[name]))) return false;
    seen.add(itemName(names, item)); // true and "true" have one name
  }
  return seen.size === list.length;
}

/** @param {unknown} value */
function isScalar(value) {
  return typeof value === "string" || typeof value === "number" || typeof value === "bigint" || typeof value === "boolean";
}

/**
 * The name of an item within brackets: `[name=web]`.
 * @param {string[]} names @param {Record<string, any>} item
 */
export function itemName(names, item) {
  return `[${names.map((name) => `${name}=${quoted(String(item[name]))}`).join(",")}]`;
}

/** @param {string} value */
function quoted(value) {
  return PLAIN_VALUE.test(value) ? value : JSON.stringify(value);
}

/**
 * The names of the items of a list, by merge key or index.
 * @param {unknown[]} list
 * @returns {string[]}
 */
export function itemNames(list) {
  const names = mergeKey(list);
  return list.map((item, index) => (names ? itemName(names, /** @type {any} */ (item)) : `[${index}]`));
}

/**
 * The value at a path; undefined if there is none.
 * @param {unknown} value @param {string} path
 * @returns {unknown}
 */
export function valueAt(value, path) {
  for (const step of steps(path)) {
    if (typeof step === "string") value = isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
    else if (!Array.isArray(value)) return undefined;
    else if (typeof step === "number") value = value[step];
    else {
      const wanted = step.item;
      const position = itemNames(value).indexOf(wanted);
      value = position < 0 ? undefined : value[position];
    }
    if (value === undefined) return undefined;
  }
  return value;
}

/**
 * The steps of a path: names of members, indexes, and items by merge key.
 * @param {string} path
 * @returns {(string | number | {item: string})[]}
 */
export function steps(path) {
  const found = [];
  const pattern = /\.?([A-Za-z0-9_-]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|(\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\])/gy;
  for (let match = pattern.exec(path); match; match = pattern.exec(path)) {
    if (match[1] !== undefined) found.push(match[1]);
    else if (match[2] !== undefined) found.push(Number(match[2]));
    else if (match[3] !== undefined) found.push(JSON.parse(match[3]));
    else found.push({ item: match[4] });
  }
  return found;
}

/**
 * Whether a path is another one or lies below it.
 * @param {string} path @param {string} parent
 */
export function isWithin(path, parent) {
  return path === parent || (path.startsWith(parent) && /[.[]/.test(path.charAt(parent.length)));
}
