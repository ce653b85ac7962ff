/**
 * The changed paths of changes, which a living cluster computes when they are asked for: those of the rows in view, and of the newest
 * changes if the filter has a `path:` term. A trace has them in its rows.
 */

import { pathsText } from "fk/rows";

/** Changes of one call. */
const WINDOW = 1000;
/** Real milliseconds in which wishes are collected. */
const PAUSE = 60;

export class ChangedPaths {
  /** @param {import("fk/app").App} app */
  constructor(app) {
    this.app = app;
    /** Rows by revision that are wanted, and that were asked for. @type {Set<number>} */
    this.wanted = new Set();
    /** @type {Set<number>} */
    this.asked = new Set();
    this.timer = 0;
  }

  /** The changed paths of a change in one line; they come later if they are not known yet. @param {number} row */
  text(row) {
    if (row < 0) return "";
    this.want(row);
    return pathsText(this.app.store.changes.value("paths", row));
  }

  /** Asks for the newest changes, so that a filter can look at their paths. */
  wantNewest() {
    const { count } = this.app.store.changes;
    for (let row = Math.max(0, count - WINDOW); row < count; row++) this.want(row);
  }

  /** @param {number} row */
  want(row) {
    const { changes } = this.app.store;
    const revision = changes.value("revision", row);
    if (!this.app.provider.live || changes.value("paths", row) || this.asked.has(revision)) return;
    this.wanted.add(revision);
    this.timer ||= setTimeout(() => this.#ask(), PAUSE);
  }

  async #ask() {
    const revisions = [...this.wanted].sort((one, other) => one - other);
    this.wanted.clear();
    for (const revision of revisions) this.asked.add(revision);
    try {
      for (let start = 0; start < revisions.length; ) {
        const first = revisions[start];
        let end = start;
        while (end + 1 < revisions.length && revisions[end + 1] < first + WINDOW) end++;
        await this.app.provider.paths(first, revisions[end]);
        start = end + 1;
      }
    } catch (error) {
      this.app.problem(error);
    }
    this.timer = 0;
    this.app.render();
  }
}
