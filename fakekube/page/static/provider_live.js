/**
 * Reads a living cluster over /fakekube/v1/: rows in pages from the newest backwards, then the live stream, which it opens again
 * after each break from the last rows that it has.
 *
 * Invariant: every row of the cluster arrives once and in order, or the store has a gap that names what is missing.
 */

import { parseExact, stringifyExact } from "fk/exact_json";
import { digits, setBase } from "fk/revisions";

const PAGE_ROWS = 5000;
/** Real milliseconds before a new attempt. */
const BACK_OFF = [500, 1000, 2000, 3000, 5000];
/** The server writes a line at least every 15 s. */
const SILENCE = 40_000;

export class ApiError extends Error {
  /** @param {number} code @param {string} message @param {any} [body] */
  constructor(code, message, body) {
    super(message);
    this.code = code;
    this.body = body;
  }
}

/**
 * What a provider tells the page.
 * @typedef {object} Listener
 * @property {(state: string, text: string) => void} connection
 * @property {() => void} rows
 * @property {(what: string, value: any) => void} event
 */

export class LiveProvider {
  /** @param {string} base */
  constructor(base) {
    this.base = base;
    this.live = true;
    /** @type {any} */
    this.info = {};
    this.stopped = false;
    /** Counts complete loads: another cluster may come to the address. */
    this.loads = 0;
  }

  /**
   * @param {string} path @param {{method?: string, body?: any, raw?: boolean}} [options]
   * @returns {Promise<any>} the decoded answer
   */
  async call(path, { method = "GET", body, raw = false } = {}) {
    const headers = /** @type {Record<string, string>} */ (method === "GET" ? {} : { "X-Fakekube": "page", "Content-Type": raw ? "application/yaml" : "application/json" });
    let answer;
    try {
      answer = await fetch(this.base + path, { method, headers, body: body === undefined ? undefined : raw ? body : stringifyExact(body) });
    } catch {
      throw new ApiError(0, "the cluster does not answer");
    }
    const text = await answer.text();
    const value = parsed(text);
    if (!answer.ok) throw new ApiError(answer.status, value?.error ?? value?.message ?? (text || `the cluster answered ${answer.status}`), value);
    return value === undefined ? text : value;
  }

  /** Loads the newest rows, and returns; older rows and the stream follow. @param {import("fk/store").Store} store @param {Listener} listener */
  async start(store, listener) {
    this.store = store;
    this.listener = listener;
    await this.#load();
    this.#follow();
  }

  async #load() {
    const store = /** @type {import("fk/store").Store} */ (this.store);
    this.info = await this.call("info");
    setBase(this.info.oldest ?? this.info.revision);
    store.clear();
    const [requests, changes, marks] = await Promise.all([
      this.call(`rows/requests?before=${Number.MAX_SAFE_INTEGER}&limit=${PAGE_ROWS}&own=true`),
      this.call(`rows/changes?before=${lastRevision(this.info.revision)}&limit=${PAGE_ROWS}`),
      this.call("marks"),
    ]);
    store.addRequests(requests);
    store.addChanges(changes);
    store.marks.add(marks);
    this.#older("requests", requests.more);
    this.#older("changes", changes.more);
    this.listener?.rows();
  }

  /** Reads older pages in the background. @param {"requests" | "changes"} name @param {boolean} more */
  async #older(name, more) {
    const store = /** @type {import("fk/store").Store} */ (this.store);
    const table = store[name];
    const load = this.loads;
    try {
      while (more && load === this.loads && table.count && table.count < 200_000) {
        const first = table.columns[table.key][0];
        const rows = await this.call(`rows/${name}?before=${name === "changes" ? digits(first) : first}&limit=${PAGE_ROWS}${name === "requests" ? "&own=true" : ""}`);
        if (!(rows.columns[table.key]?.length > 0)) return;
        table.addOlder(rows);
        more = rows.more;
        this.listener?.rows();
      }
    } catch (error) {
      this.listener?.event("problem", error);
    }
  }

  async #follow() {
    for (let failures = 0; !this.stopped; ) {
      const began = performance.now();
      try {
        await this.#stream();
      } catch {
        if (this.stopped) return;
      }
      failures = performance.now() - began > 5000 ? 0 : failures + 1;
      const pause = BACK_OFF[Math.min(failures, BACK_OFF.length) - 1] ?? BACK_OFF[0];
      this.listener?.connection(failures > 4 ? "stopped" : "reconnecting", failures > 4 ? "cluster stopped" : `reconnecting (${Math.ceil(pause / 1000)} s)`);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  async #stream() {
    const { requests, changes, marks } = /** @type {import("fk/store").Store} */ (this.store);
    const from = `requests=${lastKey(requests)}&changes=${digits(lastKey(changes))}&marks=${lastKey(marks)}`;
    const abort = new AbortController();
    const answer = await fetch(`${this.base}live?${from}`, { signal: abort.signal });
    if (!answer.ok || !answer.body) throw new ApiError(answer.status, "no live stream");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const timer = setTimeout(() => abort.abort(), SILENCE);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line) await this.#line(JSON.parse(line));
      this.listener?.rows();
    }
  }

  /** @param {any} line */
  async #line(line) {
    const store = /** @type {import("fk/store").Store} */ (this.store);
    if (line.hello) {
      const another = this.info.started && line.hello.started !== this.info.started;
      this.info = line.hello;
      this.listener?.connection("live", "live");
      if (another) await this.#restarted();
      this.listener?.event("info", this.info);
    }
    if (line.gap) this.#gap(line.gap);
    if (line.requests) store.addRequests(line.requests);
    if (line.changes) {
      store.addChanges(line.changes);
      this.listener?.event("changes", line.changes);
    }
    if (line.marks) store.marks.add(line.marks);
    if (line.faults) this.listener?.event("faults", line.faults);
    if (line.clock) this.listener?.event("clock", line.clock);
    if (line.scenario) this.listener?.event("scenario", line.scenario);
    if (line.findings !== undefined) this.listener?.event("findings", line.findings);
    if (line.reset !== undefined) this.listener?.event("reset", line.reset);
  }

  /** Another cluster has the address now: its rows replace all others. */
  async #restarted() {
    this.loads++;
    await this.#load();
    this.listener?.event("restarted", this.info);
  }

  /** @param {Record<string, [number, number]>} gap */
  #gap(gap) {
    for (const [table, [first, last]] of Object.entries(gap)) this.store?.gaps.push([table, first, last]);
  }

  // ---------------------------------------------------------------- details

  /** @param {number | null} at */
  async objects(at) {
    const pages = [];
    for (let after = ""; ; ) {
      const rows = await this.call(`rows/objects?${query({ at: at === null ? undefined : digits(at), after: after || undefined, limit: String(PAGE_ROWS) })}`);
      pages.push(rows);
      if (!rows.more) return pages;
      after = String(rows.next);
    }
  }

  /** @param {ObjectId} id @param {number | null} at */
  object({ resource, namespace, name }, at) {
    return this.call(`objects/${[resource, namespace || "-", name].map(encodeURIComponent).join("/")}${at === null ? "" : `?at=${digits(at)}`}`);
  }

  /** @param {ObjectId} id @returns {Promise<Version[]>} */
  async history({ resource, namespace, name }) {
    return (await this.call(`history/${[resource, namespace || "-", name].map(encodeURIComponent).join("/")}`)).items;
  }

  /** @param {number} number */
  request(number) {
    return this.call(`requests/${number}`);
  }

  /** @param {number} revision */
  change(revision) {
    return this.call(`changes/${digits(revision)}`);
  }

  /** Changed paths of the changes within two revisions. @param {number} first @param {number} last */
  async paths(first, last) {
    this.store?.changes.add(await this.call(`rows/changes?since=${digits(first - 1)}&until=${digits(last)}&paths=true&limit=1000`));
  }

  /** @param {string} from @param {string} to */
  compare(from, to) {
    return this.call(`compare?from=${from}&to=${to}`);
  }

  async findings() {
    return (await this.call("findings")).items;
  }
}

/**
 * @typedef {{resource: string, namespace: string, name: string}} ObjectId
 * @typedef {{request: number, actor: string, time: number}} Delivered a watch that got a change
 * @typedef {{revision: number | string, time: string, type: string, object: any, changed?: string[], request?: number | null, actor?: string, verb?: string}} Version
 */

/** @param {string} text */
function parsed(text) {
  try {
    return parseExact(text);
  } catch {
    return undefined;
  }
}

/** @param {number | string} revision one that is later than all that exist */
function lastRevision(revision) {
  return String(BigInt(revision) + 1_000_000n);
}

/** @param {import("fk/store").Table} table */
function lastKey(table) {
  return table.count ? table.columns[table.key][table.count - 1] : table.key === "number" ? -1 : 0;
}

/** @param {Record<string, string | undefined>} values */
function query(values) {
  return Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(/** @type {string} */ (value))}`)
    .join("&");
}

