/**
 * The rows of objects now or at the cursor, and the forest that `ownerReferences` make of them. Rows follow the stream of changes;
 * they are listed again only after a reset, and for each cursor.
 */

/** @typedef {{row: number, level: number, children: number[], link: boolean}} Node */

export class ObjectsModel {
  /** @param {import("fk/app").App} app */
  constructor(app) {
    this.app = app;
    /** @type {import("fk/store").Table | null} */ this.table = null;
    this.loadedAt = /** @type {number | null | undefined} */ (undefined);
    /** @type {Map<number, number>} uid → row */ this.rowOfUid = new Map();
    this.version = 0;
    /** The version of which the forest was made. @type {number | undefined} */ this.forestVersion = undefined;
    this.problem = "";
  }

  reset() {
    this.loadedAt = undefined;
    this.app.render();
  }

  /**
   * The table at the cursor; null while it loads. A table that is loading again stays in view.
   * @returns {import("fk/store").Table | null}
   */
  get current() {
    const at = this.app.at;
    if (this.app.loaded && this.loadedAt !== at && this.loading !== `${at}`) this.#load(at);
    return this.table;
  }

  /** Whether the table is that of the cursor. */
  get isCurrent() {
    return this.loadedAt === this.app.at;
  }

  /** @param {number | null} at */
  async #load(at) {
    this.loading = `${at}`;
    this.problem = "";
    try {
      const pages = await this.app.provider.objects(at);
      if (this.loading !== `${at}`) return;
      const table = this.app.store.objectTable();
      for (const rows of pages) table.add(rows);
      this.table = table;
      this.loadedAt = at;
      this.#index();
    } catch (error) {
      this.problem = String(/** @type {any} */ (error)?.message ?? error);
      this.loadedAt = at;
    }
    this.loading = undefined;
    this.app.render();
  }

  #index() {
    this.rowOfUid.clear();
    const { uid } = /** @type {import("fk/store").Table} */ (this.table).columns;
    for (let row = 0; row < /** @type {any} */ (this.table).count; row++) this.rowOfUid.set(uid[row], row);
    this.version++;
  }

  /** Takes over the changes of the stream. @param {import("fk/store").Rows} rows */
  changed(rows) {
    if (!this.table || this.loadedAt !== null) return;
    const { strings, columns } = rows;
    if (!columns.state) return this.#later();
    const latest = new Map();
    columns.uid.forEach((uid, index) => latest.set(strings[uid], index));
    const gone = [];
    for (const [uid, index] of latest) {
      const known = this.rowOfUid.get(this.app.store.strings.intern(uid));
      if (strings[columns.type[index]] === "DELETED") {
        if (known !== undefined) gone.push(known);
      } else this.#put(rows, index, known);
    }
    if (gone.length) this.#remove(gone);
    this.version++;
  }

  /** @param {import("fk/store").Rows} rows @param {number} index @param {number | undefined} known */
  #put(rows, index, known) {
    const table = /** @type {import("fk/store").Table} */ (this.table);
    const columns = Object.fromEntries(Object.keys(table.types).filter((name) => rows.columns[name]).map((name) => [name, [rows.columns[name][index]]]));
    if (known === undefined) {
      table.add({ strings: rows.strings, columns });
      this.rowOfUid.set(table.columns.uid[table.count - 1], table.count - 1);
    } else table.replace(known, { strings: rows.strings, columns });
  }

  /** @param {number[]} gone */
  #remove(gone) {
    const table = /** @type {import("fk/store").Table} */ (this.table);
    table.remove(new Set(gone));
    this.#index();
  }

  /** Lists again soon: the rows of this cluster do not tell the state of objects. */
  #later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.reset(), 500);
  }

  /**
   * The children of each row, and the rows without an owner in the table.
   * @returns {{roots: number[], children: Map<number, number[]>}}
   */
  get forest() {
    if (this.forestVersion !== this.version) {
      this.forestVersion = this.version;
      this.forestValue = this.#forest();
    }
    return /** @type {any} */ (this.forestValue);
  }

  #forest() {
    const table = /** @type {import("fk/store").Table} */ (this.table);
    /** @type {Map<number, number[]>} */
    const children = new Map();
    const roots = [];
    const { owner } = table.columns;
    for (let row = 0; row < table.count; row++) {
      const parent = owner[row] ? this.rowOfUid.get(owner[row]) : undefined;
      if (parent === undefined || this.#isAncestor(row, parent)) roots.push(row);
      else if (children.has(parent)) /** @type {number[]} */ (children.get(parent)).push(row);
      else children.set(parent, [row]);
    }
    return { roots, children };
  }

  /** Owners may form a circle; then the object is a root. @param {number} row @param {number} parent */
  #isAncestor(row, parent) {
    const { owner } = /** @type {import("fk/store").Table} */ (this.table).columns;
    for (let steps = 0, one = /** @type {number | undefined} */ (parent); one !== undefined && steps < 50; steps++) {
      if (one === row) return true;
      one = owner[one] ? this.rowOfUid.get(owner[one]) : undefined;
    }
    return false;
  }
}
