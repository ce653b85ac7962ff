/**
 * Reads a trace file: rows are in the document, bodies and the state with its history in compressed sections that are decoded when
 * they are first needed. Nothing is asked of a server.
 */

import { parseExact } from "fk/exact_json";
import { diff, withoutNoise } from "fk/diff";
import { digits, revisionOf, setBase } from "fk/revisions";

/**
 * @typedef {import("fk/provider_live").ObjectId} ObjectId
 * @typedef {{revision: number, object: any | null, time: number}} Kept a version of an object; without object it was deleted
 */

export class FileProvider {
  /**
   * @param {any} trace
   * @param {(section: string) => string | undefined} section the base64 text of a section
   */
  constructor(trace, section) {
    this.trace = trace;
    this.section = section;
    this.live = false;
    this.info = { ...trace.info, test: trace.test ?? trace.info?.test };
  }

  /** @param {import("fk/store").Store} store @param {import("fk/provider_live").Listener} listener */
  async start(store, listener) {
    this.store = store;
    setBase(this.info.oldest ?? this.info.revision ?? 0);
    store.clear();
    store.addRequests(this.trace.requests);
    store.addChanges(this.trace.changes);
    if (this.trace.marks) store.marks.add(this.trace.marks);
    listener.connection("file", "file");
    listener.rows();
  }

  async call() {
    throw new Error("this is a file: there is no cluster that could be changed");
  }

  // ---------------------------------------------------------------- sections

  /** @param {string} name @returns {Promise<any>} */
  async #decoded(name) {
    const text = this.section(name);
    if (!text) throw new Error(`the file has no section ${name}`);
    const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return parseExact(await new Response(stream).text());
  }

  /** @type {Promise<any> | undefined} */ bodiesPromise;
  /** @type {Promise<Map<string, Kept[]>> | undefined} */ versionsPromise;

  bodies() {
    this.bodiesPromise ??= this.#decoded("bodies");
    return this.bodiesPromise;
  }

  /** All kept versions by resource, namespace and name. @returns {Promise<Map<string, Kept[]>>} */
  versions() {
    this.versionsPromise ??= this.#decoded("state").then((state) => this.#indexed(state));
    return this.versionsPromise;
  }

  /** @param {any} state */
  #indexed(state) {
    /** @type {Map<string, Kept[]>} */
    const found = new Map();
    const kinds = new Map((this.info.resources ?? []).map((/** @type {any} */ one) => [one.name, one]));
    const end = this.#endTime();
    const put = (/** @type {string} */ resource, /** @type {any} */ row, /** @type {number} */ time) => {
      const key = `${resource}|${row.key}`;
      const versions = found.get(key) ?? [];
      found.set(key, versions);
      const kind = /** @type {any} */ (kinds.get(resource));
      const object = row.object ? { ...(kind?.apiVersion && !row.object.apiVersion ? { apiVersion: kind.apiVersion, kind: kind.kind } : {}), ...row.object } : null;
      const revision = revisionOf(row.revision);
      if (!versions.some((one) => one.revision === revision)) versions.push({ revision, object, time });
    };
    for (const [resource, past] of Object.entries(state.history?.resources ?? {})) {
      for (const row of past.before ?? []) put(resource, row, NaN);
      for (const row of past.events ?? []) put(resource, row, end - row.age);
    }
    for (const [resource, rows] of Object.entries(state.resources ?? {})) for (const row of rows) put(resource, row, NaN);
    for (const versions of found.values()) versions.sort((one, other) => one.revision - other.revision);
    return found;
  }

  /** The time of the cluster's clock at which the file was made. */
  #endTime() {
    const now = Date.parse(this.info.clock?.now ?? this.trace.made ?? "");
    return Number.isFinite(now) ? now / 1000 : 0;
  }

  // ---------------------------------------------------------------- details

  /**
   * Rows of objects at a revision, from the rows of the end and the changes.
   * @param {number | null} at
   */
  async objects(at) {
    const end = this.trace.objects;
    if (at === null && end) return [end];
    return [this.#objectsAt(at ?? Infinity, end)];
  }

  /** @param {number} at @param {any} end */
  #objectsAt(at, end) {
    const strings = [...(end?.strings ?? [""])];
    const columns = /** @type {Record<string, any[]>} */ (Object.fromEntries(Object.keys(end?.columns ?? {}).map((name) => [name, []])));
    const changes = this.trace.changes;
    const last = lastChanges(changes, at);
    const indexes = new Map(strings.map((text, index) => [text, index]));
    const intern = (/** @type {string} */ text) => {
      if (!indexes.has(text)) indexes.set(text, strings.push(text) - 1);
      return /** @type {number} */ (indexes.get(text));
    };
    const size = end?.columns.revision.length ?? 0;
    for (let row = 0; row < size; row++) {
      if (revisionOf(end.columns.revision[row]) > at) continue;
      for (const name of Object.keys(columns)) columns[name].push(end.columns[name][row]);
    }
    const kept = new Set(end?.columns.uid.filter((/** @type {any} */ _, /** @type {number} */ row) => revisionOf(end.columns.revision[row]) <= at).map((/** @type {number} */ index) => strings[index]));
    for (const row of last.values()) {
      if (changes.strings[changes.columns.type[row]] === "DELETED" || kept.has(changes.strings[changes.columns.uid[row]])) continue;
      for (const name of Object.keys(columns)) {
        const value = changes.columns[name]?.[row];
        columns[name].push(typeof value === "number" && TEXTS.has(name) ? intern(changes.strings[value]) : value);
      }
    }
    return { strings, columns };
  }

  /** @param {ObjectId} id @param {number | null} at */
  async object(id, at) {
    const versions = await this.#versionsOf(id);
    const found = versions.filter((one) => at === null || one.revision <= at).at(-1);
    const object = found?.object ?? (at === null ? versions.at(-2)?.object : null);
    if (!object) throw new Error(`there was no ${id.resource} ${id.name}${at === null ? "" : ` at revision ${digits(at)}`}`);
    return { object: withRevision(object, found?.object ? found.revision : (versions.at(-2)?.revision ?? 0)) };
  }

  /** @param {ObjectId} id */
  async #versionsOf({ resource, namespace, name }) {
    const key = `${resource}|${namespace ? `${namespace}/` : ""}${name}`;
    const versions = (await this.versions()).get(key);
    if (!versions) throw new Error(`the file has no versions of ${resource} ${name}`);
    return versions;
  }

  /** @param {ObjectId} id @returns {Promise<import("fk/provider_live").Version[]>} */
  async history(id) {
    const versions = await this.#versionsOf(id);
    return versions.map((one, index) => {
      const before = versions[index - 1]?.object;
      const type = one.object === null ? "DELETED" : before || !this.#isCreation(one) ? "MODIFIED" : "ADDED";
      return { revision: digits(one.revision), time: this.#timeOf(one), type, object: one.object ? withRevision(one.object, one.revision) : before, ...this.#changeOf(one.revision) };
    });
  }

  /** @param {Kept} version */
  #isCreation(version) {
    const changes = /** @type {import("fk/store").Store} */ (this.store).changes;
    const row = changes.find(version.revision);
    return row < 0 || changes.text("type", row) === "ADDED";
  }

  /** @param {Kept} version */
  #timeOf(version) {
    const changes = /** @type {import("fk/store").Store} */ (this.store).changes;
    const row = changes.find(version.revision);
    const time = row >= 0 ? changes.value("time", row) : version.time;
    return Number.isFinite(time) ? new Date(time * 1000).toISOString() : String(version.object?.metadata?.creationTimestamp ?? "");
  }

  /** @param {number} revision */
  #changeOf(revision) {
    const changes = /** @type {import("fk/store").Store} */ (this.store).changes;
    const row = changes.find(revision);
    if (row < 0) return { request: null, actor: "", verb: "" };
    const request = changes.value("request", row);
    return { request: request < 0 ? null : request, actor: changes.text("actor", row), verb: changes.text("verb", row), sentence: changes.text("sentence", row) };
  }

  /** @param {number} number */
  async request(number) {
    const store = /** @type {import("fk/store").Store} */ (this.store);
    const row = store.requests.find(number);
    const bodies = this.section("bodies") ? await this.bodies() : {};
    return { ...(row >= 0 ? store.requests.row(row) : {}), ...bodies[String(number)] };
  }

  /** @param {number} revision */
  async change(revision) {
    const changes = /** @type {import("fk/store").Store} */ (this.store).changes;
    const row = changes.find(revision);
    if (row < 0) throw new Error(`the file has no change ${digits(revision)}`);
    const id = { resource: changes.text("resource", row), namespace: changes.text("namespace", row), name: changes.text("name", row) };
    const versions = await this.#versionsOf(id);
    const position = versions.findIndex((one) => one.revision === revision);
    const before = versions[position - 1]?.object ?? null;
    const after = versions[position]?.object ?? null;
    return { before, after, changed: diff(before ?? undefined, after ?? undefined), delivered: await this.#deliveredTo(revision), ...this.#changeOf(revision) };
  }

  /** The watches that got a change. @param {number} revision @returns {Promise<import("fk/provider_live").Delivered[]>} */
  async #deliveredTo(revision) {
    const bodies = this.section("bodies") ? await this.bodies() : {};
    const { requests } = /** @type {import("fk/store").Store} */ (this.store);
    return Object.entries(bodies).flatMap(([number, one]) => {
      const found = one.deliveries?.find((/** @type {[number | string, number]} */ [delivered]) => revisionOf(delivered) === revision);
      const row = found ? requests.find(Number(number)) : -1;
      return row < 0 ? [] : [{ request: Number(number), actor: requests.text("actor", row), time: found[1] }];
    });
  }

  async paths() {}

  /** @param {string} from @param {string} to */
  async compare(from, to) {
    const [one, other] = [revisionOf(from), revisionOf(to)];
    const [first, last] = [Math.min(one, other), Math.max(one, other)];
    const result = { from, to, added: /** @type {any[]} */ ([]), removed: /** @type {any[]} */ ([]), changed: /** @type {any[]} */ ([]), reverted: /** @type {any[]} */ ([]), actors: /** @type {Record<string, number>} */ ({}) };
    const changes = /** @type {import("fk/store").Store} */ (this.store).changes;
    const versions = await this.versions();
    const touched = new Map();
    for (let row = changes.lowerBound(first + 1); row < changes.count && changes.value("revision", row) <= last; row++) {
      if (changes.value("heartbeat", row) === 1) continue;
      const key = `${changes.text("resource", row)}|${changes.text("namespace", row) ? `${changes.text("namespace", row)}/` : ""}${changes.text("name", row)}`;
      touched.set(key, [...(touched.get(key) ?? []), row]);
      const actor = changes.text("actor", row) || changes.text("reason", row);
      result.actors[actor] = (result.actors[actor] ?? 0) + 1;
    }
    for (const [key, rows] of touched) compareOne(result, changes, rows, versions.get(key) ?? [], one, other);
    return result;
  }

  async findings() {
    return this.trace.findings ?? [];
  }
}

const TEXTS = new Set(["kind", "resource", "namespace", "name", "uid", "owner", "state", "text", "actor"]);

/** The last change of each object up to a revision. @param {any} changes @param {number} at @returns {Map<string, number>} */
function lastChanges(changes, at) {
  const last = new Map();
  const { revision, uid } = changes.columns;
  for (let row = 0; row < revision.length; row++) if (revisionOf(revision[row]) <= at) last.set(changes.strings[uid[row]], row);
  return last;
}

/** Stored objects do not have their revision. @param {any} object @param {number} revision */
function withRevision(object, revision) {
  return { ...object, metadata: { ...object.metadata, resourceVersion: digits(revision) } };
}

/**
 * Adds what differs of one object, as `powers/comparison.py` does.
 * @param {any} result @param {import("fk/store").Table} changes @param {number[]} rows its changes between the revisions
 * @param {Kept[]} versions @param {number} from @param {number} to the earlier revision may be either
 */
function compareOne(result, changes, rows, versions, from, to) {
  const at = (/** @type {number} */ revision) => versions.filter((one) => one.revision <= revision).at(-1)?.object ?? null;
  const [before, after] = [at(from), at(to)];
  const row = rows[rows.length - 1];
  const described = {
    resource: changes.text("resource", row), kind: changes.text("kind", row), namespace: changes.text("namespace", row), name: changes.text("name", row), uid: changes.text("uid", row),
    revision: digits(changes.value("revision", row)), actor: changes.text("actor", row), writes: rows.length,
  };
  if (!before && !after) result.reverted.push(described);
  else if (!before) {
    const made = from > to ? row : (rows.findLast((one) => changes.text("type", one) === "ADDED") ?? row);
    result.added.push({ ...described, revision: digits(changes.value("revision", made)), actor: changes.text("actor", made) });
  } else if (!after) result.removed.push(described);
  else {
    const parts = withoutNoise(diff(before, after));
    if (parts.length) result.changed.push({ ...described, changed: parts.map((one) => writtenBy(one, changes, rows)) });
    else result.reverted.push(described);
  }
}

/** Who wrote a path last, and how often it was written. @param {import("fk/diff").Difference} part @param {import("fk/store").Table} changes @param {number[]} rows */
function writtenBy(part, changes, rows) {
  const writers = rows.filter((row) => (changes.columns.paths[row] ?? []).includes(part.path));
  return { ...part, actor: writers.length ? changes.text("actor", /** @type {number} */ (writers.at(-1))) : "", writes: writers.length };
}
