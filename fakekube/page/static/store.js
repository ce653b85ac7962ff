/**
 * The rows of the page: requests, changes, marks and objects as tables of columns. Numbers are typed arrays, strings are interned
 * in one list for all tables. There is no object for a row: 100,000 requests are 20 arrays.
 *
 * Invariant: rows are in the order of their key; a row with a known key replaces the former one.
 */

import { revisionOf } from "fk/revisions";

/** All different strings; index 0 is the empty one. */
export class Strings {
  constructor() {
    this.list = [""];
    /** @type {Map<string, number>} */
    this.indexes = new Map([["", 0]]);
  }

  /** @param {string} text @returns {number} */
  intern(text) {
    let index = this.indexes.get(text);
    if (index === undefined) {
      index = this.list.push(text) - 1;
      this.indexes.set(text, index);
    }
    return index;
  }
}

/**
 * The type of a column: f (float), i (integer), b (small integer), s (string), S (list of strings), r (revision).
 * @typedef {Record<string, "f" | "i" | "b" | "s" | "S" | "r">} Columns
 */

const ARRAYS = { f: Float64Array, r: Float64Array, i: Int32Array, b: Uint8Array, s: Int32Array };

/** @typedef {{strings: string[], columns: Record<string, any[]>, next?: number | string, more?: boolean, oldest?: number | string}} Rows */

/** A table of rows that are ordered by a numeric key, or unordered if it has none. */
export class Table {
  /**
   * @param {Columns} types
   * @param {string} key the column by which rows are ordered and replaced; empty for none
   * @param {Strings} strings
   */
  constructor(types, key, strings) {
    this.types = types;
    this.key = key;
    this.strings = strings;
    this.count = 0;
    this.capacity = 256;
    /** Counts the changes of the table, so that views know whether what they derived is still valid. */
    this.version = 0;
    /** @type {Record<string, any>} */
    this.columns = {};
    for (const [name, type] of Object.entries(types)) this.columns[name] = emptyColumn(type, this.capacity);
  }

  /**
   * Adds rows in columns; those with known keys replace the former ones.
   * @param {Rows} rows
   */
  add(rows) {
    const names = Object.keys(rows.columns);
    const size = names.length ? rows.columns[names[0]].length : 0;
    if (!size) return;
    const known = this.count;
    this.#write(rows, this.#places(rows, size), known);
  }

  /**
   * Adds rows that are all older than the present ones.
   * @param {Rows} rows
   */
  addOlder(rows) {
    const first = this.count ? this.columns[this.key][0] : Infinity;
    const keys = rows.columns[this.key] ?? [];
    const older = keys.filter((value) => (this.types[this.key] === "r" ? revisionOf(value) : value) < first).length;
    if (!older) return;
    this.#reserve(this.count + older);
    for (const column of Object.values(this.columns)) {
      if (Array.isArray(column)) column.unshift(...new Array(older));
      else column.copyWithin(older, 0, this.count);
    }
    this.count += older;
    this.#write(rows, Int32Array.from({ length: older }, (_, index) => index), 0);
  }

  /** Fills columns; those that are missing are cleared in new rows. @param {Rows} rows @param {Int32Array} targets @param {number} known */
  #write(rows, targets, known) {
    const map = Int32Array.from(rows.strings, (text) => this.strings.intern(text));
    for (const [name, type] of Object.entries(this.types)) {
      const column = rows.columns[name];
      if (column) fill(this.columns[name], type, column, targets, map);
      else for (const row of targets) if (row >= known) this.columns[name][row] = type === "S" ? undefined : 0;
    }
    this.version++;
  }

  /** The rows that new ones become: after the last, or those with the same key. @param {Rows} rows @param {number} size */
  #places(rows, size) {
    const targets = new Int32Array(size);
    const keys = this.key ? rows.columns[this.key].map((value) => (this.types[this.key] === "r" ? revisionOf(value) : value)) : null;
    let last = this.key && this.count ? this.columns[this.key][this.count - 1] : -Infinity;
    this.#reserve(this.count + size);
    for (let i = 0; i < size; i++) {
      if (keys && keys[i] <= last) {
        const found = this.find(keys[i]);
        targets[i] = found >= 0 ? found : this.#insert(keys[i], targets.subarray(0, i));
      } else {
        targets[i] = this.count++;
        if (keys) {
          last = keys[i];
          this.columns[this.key][targets[i]] = last;
        }
      }
    }
    return targets;
  }

  /** Makes room for a key that comes late; earlier targets of the same batch that are after it move on. @param {number} key @param {Int32Array} earlier */
  #insert(key, earlier) {
    const at = this.lowerBound(key);
    earlier.forEach((target, index) => {
      if (target >= at) earlier[index]++;
    });
    for (const column of Object.values(this.columns)) {
      if (Array.isArray(column)) column.splice(at, 0, undefined);
      else column.copyWithin(at + 1, at, this.count);
    }
    this.count++;
    this.columns[this.key][at] = key;
    return at;
  }

  /** @param {number} wanted */
  #reserve(wanted) {
    if (wanted <= this.capacity) return;
    this.capacity = Math.max(wanted, this.capacity * 2);
    for (const [name, column] of Object.entries(this.columns)) {
      if (Array.isArray(column)) continue;
      const grown = new column.constructor(this.capacity);
      grown.set(column.subarray(0, this.count));
      this.columns[name] = grown;
    }
  }

  /** The first row whose key is not less than one; the number of rows if there is none. @param {number} key */
  lowerBound(key) {
    const keys = this.columns[this.key];
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (keys[middle] < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The row with a key, or -1. @param {number} key */
  find(key) {
    const row = this.lowerBound(key);
    return row < this.count && this.columns[this.key][row] === key ? row : -1;
  }

  /** The text of a string column. @param {string} name @param {number} row @returns {string} */
  text(name, row) {
    const column = this.columns[name];
    return column ? this.strings.list[column[row]] : "";
  }

  /** @param {string} name @param {number} row */
  value(name, row) {
    return this.columns[name]?.[row];
  }

  /** One row as an object, for the selection. @param {number} row @returns {Record<string, any>} */
  row(row) {
    return Object.fromEntries(Object.entries(this.types).map(([name, type]) => [name, type === "s" ? this.text(name, row) : this.columns[name][row]]));
  }

  /** Replaces the values of one row by those of the only row in a batch. @param {number} row @param {Rows} rows */
  replace(row, rows) {
    this.#write(rows, Int32Array.of(row), this.count);
  }

  /** Removes rows. @param {Set<number>} gone */
  remove(gone) {
    let size = 0;
    for (let row = 0; row < this.count; row++) {
      if (gone.has(row)) continue;
      if (size !== row) for (const column of Object.values(this.columns)) column[size] = column[row];
      size++;
    }
    this.count = size;
    for (const column of Object.values(this.columns)) if (Array.isArray(column)) column.length = size;
    this.version++;
  }

  /** Drops the oldest rows. @param {number} amount */
  dropFirst(amount) {
    if (amount <= 0) return;
    for (const column of Object.values(this.columns)) {
      if (Array.isArray(column)) column.splice(0, amount);
      else column.copyWithin(0, amount, this.count);
    }
    this.count = Math.max(0, this.count - amount);
    this.version++;
  }

  clear() {
    this.count = 0;
    for (const column of Object.values(this.columns)) if (Array.isArray(column)) column.length = 0;
    this.version++;
  }
}

/** @param {Columns[string]} type @param {number} capacity */
function emptyColumn(type, capacity) {
  return type === "S" ? [] : new ARRAYS[type](capacity);
}

/** @param {any} target @param {Columns[string]} type @param {any[]} column @param {Int32Array} targets @param {Int32Array} map */
function fill(target, type, column, targets, map) {
  const size = targets.length;
  if (type === "s") for (let i = 0; i < size; i++) target[targets[i]] = map[column[i]];
  else if (type === "r") for (let i = 0; i < size; i++) target[targets[i]] = revisionOf(column[i]);
  else if (type === "f") for (let i = 0; i < size; i++) target[targets[i]] = column[i] ?? NaN;
  else for (let i = 0; i < size; i++) target[targets[i]] = column[i];
}

/** The page keeps so many requests and so many changes; the oldest are dropped first. */
export const KEPT_ROWS = 200_000;

/** @type {Columns} */
const OBJECT_COLUMNS = { kind: "s", resource: "s", namespace: "s", name: "s", uid: "s", owner: "s", owners: "S", created: "f", deleting: "b", state: "s", text: "s", actor: "s" };

/** All rows of a cluster or a trace. */
export class Store {
  constructor() {
    this.strings = new Strings();
    this.requests = new Table(
      {
        number: "f", began: "f", time: "f", ms: "f", verb: "s", resource: "s", namespace: "s", name: "s", path: "s", actor: "s", side: "s", agent: "s", user: "s",
        own: "b", code: "i", fault: "s", rev: "r", writes: "i", events: "i", ended: "s", sent: "i", received: "i", protocol: "s", why: "s", heartbeat: "b",
      },
      "number",
      this.strings,
    );
    this.changes = new Table(
      {
        ...OBJECT_COLUMNS, revision: "r", after: "f", time: "f", type: "s", side: "s", request: "f", verb: "s", sub: "s", indirect: "b", reason: "s", heartbeat: "b",
        sentence: "s", paths: "S",
      },
      "revision",
      this.strings,
    );
    this.marks = new Table({ number: "f", after: "f", revision: "r", began: "f", time: "f", kind: "s", text: "s" }, "number", this.strings);
    /** Parts of the history that could not be read: [table, first, last]. @type {[string, number, number][]} */
    this.gaps = [];
  }

  /** @returns {Table} a table for rows of objects */
  objectTable() {
    return new Table({ ...OBJECT_COLUMNS, revision: "r" }, "", this.strings);
  }

  /** @param {Rows} rows */
  addRequests(rows) {
    this.requests.add(rows);
    this.requests.dropFirst(this.requests.count - KEPT_ROWS);
  }

  /** @param {Rows} rows */
  addChanges(rows) {
    this.changes.add(rows);
    this.#markHeartbeats(rows);
    this.changes.dropFirst(this.changes.count - KEPT_ROWS);
  }

  /** A request is a heartbeat if its change is one. What a fresh cluster has is hidden like heartbeats. @param {Rows} rows */
  #markHeartbeats(rows) {
    const { columns } = rows;
    const { heartbeat, request, reason, revision } = columns;
    const initial = rows.strings.indexOf("initial");
    reason?.forEach((text, index) => {
      const row = text === initial ? this.changes.find(revisionOf(revision[index])) : -1;
      if (row >= 0) this.changes.columns.heartbeat[row] ||= 2;
    });
    heartbeat?.forEach((flag, index) => {
      const row = flag ? this.requests.find(request[index]) : -1;
      if (row >= 0) {
        this.requests.columns.heartbeat[row] = 1;
        this.requests.version++;
      }
    });
  }

  clear() {
    for (const table of [this.requests, this.changes, this.marks]) table.clear();
    this.gaps = [];
  }
}
