/** Values that are fetched when they are first shown, kept by key. */

export class Lazy {
  /** @param {import("fk/app").App} app @param {number} [limit] of kept values */
  constructor(app, limit = 50) {
    this.app = app;
    this.limit = limit;
    /** @type {Map<string, {value?: any, error?: any, state: "loading" | "done" | "failed"}>} */
    this.kept = new Map();
  }

  /**
   * @param {string} key @param {() => Promise<any>} fetch
   * @returns {{value?: any, error?: any, state: "loading" | "done" | "failed"}}
   */
  get(key, fetch) {
    const known = this.kept.get(key);
    if (known) return known;
    /** @type {{value?: any, error?: any, state: "loading" | "done" | "failed"}} */
    const entry = { state: "loading" };
    this.kept.set(key, entry);
    if (this.kept.size > this.limit) this.kept.delete(/** @type {string} */ (this.kept.keys().next().value));
    fetch().then(
      (value) => Object.assign(entry, { state: "done", value }),
      (error) => Object.assign(entry, { state: "failed", error }),
    ).finally(() => this.app.render());
    return entry;
  }

  /** @param {string} key */
  forget(key) {
    this.kept.delete(key);
    this.app.render();
  }
}
