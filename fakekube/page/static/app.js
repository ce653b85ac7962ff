/**
 * The state of the page, and its only place: route, rows, selection, what the cluster says. Views are functions of it. A change of
 * state asks for a rendering, which happens once a frame; what a person does is shown before the next event, so that each key and
 * each click finds the page as the one before it has left it.
 */

import { onPrinting } from "fk/printing";
import { render } from "lit";
import { copy } from "fk/dialog";
import { visible } from "fk/escape";
import { DEFAULT_FILTER, compileFilter, filteredRows, parseFilter } from "fk/filter";
import { entryRevisions, mergedEntries, positionOf } from "fk/order";
import { FileProvider } from "fk/provider_file";
import { LiveProvider } from "fk/provider_live";
import { Preferences } from "fk/preferences";
import { digits, revisionOf } from "fk/revisions";
import { formatRoute, parseRange, parseRoute, toView } from "fk/router";
import { Store } from "fk/store";
import { shell } from "fk/shell";
import { focusAfterRendering, keepFocus, moveFocus } from "fk/focus";
import { handleKey } from "fk/keyboard";
import { begin, end } from "fk/measure";
import { createPlay } from "fk/play";
import { ChangedPaths } from "fk/changed_paths";
import { ObjectsModel } from "fk/objects_model";
import { controlsView } from "fk/view_controls";
import { compareView } from "fk/view_compare";
import { objectsView } from "fk/view_objects";
import { reportView } from "fk/view_report";
import { scenarioView } from "fk/view_scenario";
import { requestsView } from "fk/view_requests";
import { timelineView } from "fk/view_timeline";

/**
 * A view of the page.
 * @typedef {object} View
 * @property {(app: App) => any} render
 * @property {(app: App) => any} [panel] the panel beside it
 * @property {(app: App, event: KeyboardEvent) => boolean} [key] returns whether it handled the key
 * @property {(app: App) => Element | null | undefined} [focusTarget] what has the focus first; nothing before it is shown
 * @property {(app: App, event: string, value: any) => void} [event]
 */

/** @type {Record<string, View>} */
const VIEW_OF = { timeline: timelineView, objects: objectsView, requests: requestsView, controls: controlsView, compare: compareView, report: reportView, scenario: scenarioView };

/** @typedef {{requests: Int32Array, changes: Int32Array, entries: Int32Array, revisions: Float64Array, total: number}} Rows */

export class App {
  /**
   * @param {HTMLElement} root
   * @param {LiveProvider | FileProvider} provider
   * @param {any} report the report of `check`; null on other pages
   */
  constructor(root, provider, report) {
    this.root = root;
    this.provider = provider;
    this.report = report;
    this.store = new Store();
    this.preferences = new Preferences();
    this.connection = { state: "connecting", text: "connecting" };
    /** @type {any[]} */ this.faults = [];
    /** @type {any} */ this.clock = null;
    /** @type {any[]} */ this.findings = [];
    /** The incident that is practised in this cluster, with its tasks. @type {any} */ this.scenario = null;
    /** @type {{text: string, problem: boolean} | null} */ this.message = null;
    /** @type {import("fk/dialog").DialogState | null} */ this.dialog = null;
    this.commandOpen = false;
    this.announcement = "";
    /** Pinned objects of the Timeline. @type {import("fk/provider_live").ObjectId[]} */
    this.pins = [];
    this.presenting = false;
    this.filterError = "";
    /** The text of the parsed filter. @type {string | undefined} */ this.filterText = undefined;
    /** What the derived rows were derived from. @type {string | undefined} */ this.rowsKey = undefined;
    /** The revisions of the changes in the filter, of these entries (fk/play). @type {{entries: Int32Array, revisions: number[]} | undefined} */
    this.filtered = undefined;
    this.objects = new ObjectsModel(this);
    this.paths = new ChangedPaths(this);
    /** Actors of clients in the order of their appearance: each has a hue. @type {Map<string, number> | undefined} */
    this.hues = undefined;
    /** What the document says about itself. @type {any} */
    this.settings = {};
    this.play = createPlay(this);
    this.loaded = false;
    /** The trial of the report whose rows are shown. @type {string | undefined} */ this.shownTrial = undefined;
    /** @type {any} */ this.failure = null;
    this.route = parseRoute(location.hash, this.home);
    addEventListener("hashchange", () => this.#routed());
    /** Whether a key or a click is being handled. */
    this.handling = false;
    for (const kind of ["keydown", "click"]) addEventListener(kind, () => this.#handlesEvent(), { capture: true });
    addEventListener("input", keepFocus, { capture: true });
    addEventListener("keydown", (event) => handleKey(this, event));
    addEventListener("resize", () => this.render());
    addEventListener("storage", () => {
      this.preferences.reload();
      this.render();
    });
    onPrinting(() => this.render());
  }

  get home() {
    if (this.report) return "report";
    return this.scenario ? "scenario" : "timeline";
  }

  /** The trial of a report that the address names; else the run in which nothing was provoked. @returns {string | undefined} */
  get trial() {
    const named = this.route.params.trial ?? "";
    return Object.hasOwn(this.report?.trials ?? {}, named) ? named : this.report?.baseline;
  }

  get view() {
    return VIEW_OF[this.route.view];
  }

  get info() {
    return this.provider.info;
  }

  /** Whether the cluster can be changed from here, and if not, why. @returns {string} empty if it can */
  get readOnly() {
    if (!this.provider.live) return "This is a file: there is no cluster that could be changed.";
    if (this.info.readOnly) return "The page is read-only.";
    if (this.at !== null) return `The page stands in the past, at revision ${digits(this.at)}.`;
    return "";
  }

  async start() {
    if (this.report) {
      this.shownTrial = this.trial;
      this.provider = new FileProvider(this.report.trials?.[this.trial ?? ""] ?? EMPTY, sections(`-${this.trial}`));
    }
    begin("fk:load");
    this.preferences.apply();
    this.render();
    try {
      await this.provider.start(this.store, { connection: (state, text) => this.#connected(state, text), rows: () => this.#rowsCame(), event: (what, value) => this.#event(what, value) });
      this.loaded = true;
      this.scenario = this.info.scenario ?? null;
      this.route = parseRoute(location.hash, this.home);
      document.title = `${visible(this.info.test?.id ?? this.info.name ?? "fakekube")} · fakekube`;
      await this.#loadState();
    } catch (error) {
      this.failure = error;
    }
    this.render();
    await new Promise((resolve) => requestAnimationFrame(() => resolve(undefined)));
    end("fk:load");
  }

  async #loadState() {
    this.findings = await this.provider.findings();
    this.clock = this.info.clock ?? null;
    if (!this.provider.live) return;
    const before = { faults: this.faults, clock: this.clock };
    const [faults, clock] = await Promise.all([this.provider.call("faults"), this.provider.call("clock")]);
    if (this.faults === before.faults) this.faults = faults.items; // else the stream has told of newer ones meanwhile
    if (this.clock === before.clock) this.clock = clock;
  }

  /** Shows the rows of the trial of the address, like those of a trace. */
  async #showTrial() {
    if (!this.report || this.trial === this.shownTrial) return;
    this.objects.reset();
    await this.start();
  }

  // ---------------------------------------------------------------- what the cluster says

  /** @param {string} state @param {string} text */
  #connected(state, text) {
    const isBack = state === "live" && this.connection.state !== "live";
    this.connection = { state, text };
    if (isBack && this.loaded && this.failure) this.#loadStateAgain();
    this.render();
  }

  /** Reads what could not be read while the network was away. */
  async #loadStateAgain() {
    try {
      await this.#loadState();
      this.failure = null;
    } catch (error) {
      this.failure = error;
    }
    this.render();
  }

  #rowsCame() {
    this.#announce();
    this.render();
  }

  /** New rows are announced at most every 5 s. */
  #announce() {
    const count = this.store.changes.count ? this.store.changes.value("revision", this.store.changes.count - 1) : 0;
    const now = performance.now();
    if (!this.loaded || now - (this.announcedTime ?? 0) < 5000) return;
    const fresh = count - (this.announcedRevision ?? count);
    this.announcedTime = now;
    this.announcedRevision = count;
    if (fresh > 0) this.announcement = `${fresh} new change${fresh === 1 ? "" : "s"}`;
  }

  /** @param {string} what @param {any} value */
  #event(what, value) {
    if (what === "faults") this.faults = value.items ?? value;
    else if (what === "clock") this.clock = value;
    else if (what === "scenario") this.scenario = value;
    else if (what === "findings") this.#refreshFindings();
    else if (what === "changes") this.objects.changed(value);
    else if (what === "reset" || what === "restarted") this.objects.reset();
    else if (what === "problem") this.notice(String(value.message ?? value), true);
    for (const view of Object.values(VIEW_OF)) view.event?.(this, what, value);
    this.render();
  }

  async #refreshFindings() {
    try {
      this.findings = await this.provider.findings();
    } catch (error) {
      this.problem(error);
    }
    this.render();
  }

  // ---------------------------------------------------------------- route

  #routed() {
    this.route = parseRoute(location.hash, this.home);
    if (this.route.unknown) this.notice(`There is no view ${this.route.unknown}.`, true);
    this.#showTrial();
    this.render();
  }

  /**
   * Changes members of the route; undefined removes one.
   * @param {Record<string, string | undefined>} params
   */
  set(params) {
    this.#goTo({ view: this.route.view, parts: this.route.parts, params: { ...this.route.params, ...params } }, true);
  }

  /** Opens a view; cursor, range and filter stay. @param {string} view @param {string[]} [parts] @param {Record<string, string | undefined>} [params] */
  open(view, parts = [], params = {}) {
    this.#goTo(toView(this.route, view, parts, params), false);
  }

  /** @param {import("fk/provider_live").ObjectId} id @param {Record<string, string | undefined>} [params] */
  openObject({ resource, namespace, name }, params = {}) {
    this.open("objects", [resource, namespace || "-", name], params);
  }

  /** @param {{view: string, parts?: string[], params?: Record<string, string | undefined>}} route @param {boolean} replace */
  #goTo(route, replace) {
    const hash = formatRoute(route);
    if (hash === location.hash) return;
    const url = new URL(location.href);
    url.hash = hash;
    history[replace ? "replaceState" : "pushState"](null, "", url);
    this.route = parseRoute(hash, this.home);
    this.#showTrial();
    this.render();
  }

  get link() {
    const { view, parts, params } = this.route;
    return new URL(formatRoute({ view, parts, params }), location.href).href;
  }

  // ---------------------------------------------------------------- cursor, range, filter

  /** The revision at which the page stands; null means now. @returns {number | null} */
  get at() {
    const text = this.route.params.at;
    return text && /^\d{1,40}$/.test(text) ? revisionOf(text) : null;
  }

  /** @param {number | null} revision */
  setCursor(revision) {
    this.set({ at: revision === null ? undefined : digits(revision) });
  }

  /** @returns {[number, number] | null} */
  get range() {
    const range = parseRange(this.route.params.range);
    return range && [revisionOf(range[0]), revisionOf(range[1])];
  }

  get newest() {
    const { changes } = this.store;
    return Math.max(this.info.revision === undefined ? 0 : revisionOf(this.info.revision), changes.count ? changes.value("revision", changes.count - 1) : 0);
  }

  /** Whether the view has the filter. */
  get isFiltered() {
    return !["controls", "report", "scenario"].includes(this.route.view);
  }

  get query() {
    return this.route.params.q ?? DEFAULT_FILTER;
  }

  /** Sets the filter; one with an error of syntax leaves the last valid one in force. @param {string} text */
  setQuery(text) {
    begin("fk:filter");
    const { error } = parseFilter(text);
    this.filterError = error;
    this.filterDraft = error ? text : undefined;
    if (!error) this.set({ q: text === DEFAULT_FILTER ? undefined : text });
    this.measureFilter = true;
    this.render();
  }

  get filter() {
    if (this.filterText !== this.query) {
      this.filterText = this.query;
      this.filterValue = parseFilter(this.query);
    }
    return /** @type {import("fk/filter").Filter} */ (this.filterValue);
  }

  /**
   * The rows that the filter, the range and the cursor let through.
   * @returns {Rows}
   */
  get rows() {
    const { requests, changes } = this.store;
    const key = [this.query, requests.version, changes.version, this.route.params.range, this.route.view === "timeline", this.pins.map((pin) => Object.values(pin).join("/")).join()].join("|");
    if (this.rowsKey !== key) {
      this.rowsKey = key;
      this.rowsValue = this.#derived();
    }
    return /** @type {Rows} */ (this.rowsValue);
  }

  /** @returns {Rows} */
  #derived() {
    const { requests, changes } = this.store;
    if (this.filter.terms.some((one) => one.key === "path")) this.paths.wantNewest();
    let requestRows = filteredRows(this.filter, requests);
    let changeRows = filteredRows(this.filter, changes);
    const pinned = this.#pinTest();
    if (this.pins.length) {
      const passes = compileFilter(this.filter, changes);
      changeRows = Int32Array.from({ length: changes.count }, (_, row) => row).filter((row) => pinned(row) || passes(row));
    }
    let entries = mergedEntries(this.store, requestRows, changeRows, pinned);
    let revisions = entryRevisions(this.store, entries);
    const total = requests.count + changes.count;
    const range = this.range;
    if (range && this.route.view !== "timeline") {
      const first = positionOf(revisions, range[0] - 1);
      const last = positionOf(revisions, range[1]);
      entries = entries.subarray(first, last);
      revisions = revisions.subarray(first, last);
      requestRows = entries.filter((entry) => entry >= 0);
      changeRows = changeRows.filter((row) => changes.value("revision", row) >= range[0] && changes.value("revision", row) <= range[1]);
    }
    return { requests: requestRows, changes: changeRows, entries, revisions, total };
  }

  #pinTest() {
    if (!this.pins.length) return () => false;
    const { strings, changes } = this.store;
    const wanted = this.pins.map((pin) => [pin.resource, pin.namespace, pin.name].map((text) => strings.indexes.get(text) ?? -1));
    const { resource, namespace, name } = changes.columns;
    return (/** @type {number} */ row) => wanted.some(([a, b, c]) => resource[row] === a && namespace[row] === b && name[row] === c);
  }

  // ---------------------------------------------------------------- messages

  /** @param {string} text @param {boolean} [problem] */
  notice(text, problem = false) {
    this.message = { text, problem };
    clearTimeout(this.messageTimer);
    if (!problem) this.messageTimer = setTimeout(() => this.dismiss(), 6000);
    this.render();
  }

  /** @param {any} error */
  problem(error) {
    this.notice(String(error?.message ?? error), true);
  }

  dismiss() {
    this.message = null;
    this.render();
  }

  /** Opens the command line at once: the next key belongs to it. */
  openCommand() {
    this.commandOpen = true;
    this.#renderNow();
  }

  /** Closes the command line: the next key belongs to the view. */
  closeCommand() {
    this.commandOpen = false;
    this.focusView();
  }

  /** Moves the focus into the view, as soon as it is shown. */
  focusView() {
    focusAfterRendering(() => this.view.focusTarget?.(this));
    this.render();
  }

  /** @param {import("fk/dialog").DialogState} state */
  openDialog(state) {
    this.dialog = state;
    this.#renderNow();
  }

  closeDialog() {
    this.dialog = null;
    this.#renderNow();
  }

  /** Does what the dialog asks for, once: a second click before the answer does nothing. */
  async confirmDialog() {
    const state = this.dialog;
    if (!state || state.acting) return;
    state.acting = true;
    state.error = "";
    try {
      await state.act?.();
      if (this.dialog === state) this.closeDialog();
    } catch (error) {
      state.error = String(/** @type {any} */ (error)?.message ?? error);
    }
    state.acting = false;
    this.render();
  }

  /**
   * Changes the cluster, and shows what went wrong.
   * @param {string} path @param {{method?: string, body?: any, raw?: boolean}} [options]
   * @returns {Promise<any>} undefined after an error
   */
  async act(path, options = { method: "POST", body: {} }) {
    try {
      return await this.provider.call(path, options);
    } catch (error) {
      this.problem(error);
      return undefined;
    }
  }

  copyLink() {
    copy(this, this.link, "Link copied");
  }

  // ---------------------------------------------------------------- rendering

  /** Asks for a rendering: in the next frame, or, while a key or a click is handled, as soon as its handler is done. */
  render() {
    if (this.handling && !this.rendering) {
      if (!this.answered) queueMicrotask(() => this.#renderIfAsked());
      this.answered = true;
    } else if (!this.scheduled) {
      this.scheduled = true;
      requestAnimationFrame(() => this.#renderIfAsked());
    }
  }

  #renderIfAsked() {
    if (this.scheduled || this.answered) this.#renderNow();
  }

  /** A key or a click meets what was asked for before it; what it asks for is rendered before the next one, which is a later task. */
  #handlesEvent() {
    if (this.scheduled) this.#renderNow();
    this.handling = true;
    setTimeout(() => {
      this.handling = false;
    });
  }

  #renderNow() {
    if (this.rendering) return this.render();
    this.scheduled = false;
    this.answered = false;
    this.rendering = true;
    try {
      render(shell(this), this.root);
    } finally {
      this.rendering = false;
    }
    const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("dialog"));
    if (dialog && this.dialog && !dialog.open) dialog.showModal();
    else if (dialog && !this.dialog && dialog.open) dialog.close();
    moveFocus();
    if (this.measureFilter) {
      this.measureFilter = false;
      end("fk:filter");
    }
  }
}

/** @param {string} id */
function json(id) {
  const text = document.getElementById(id)?.textContent;
  return text ? JSON.parse(text) : null;
}

/** @param {string} [suffix] @returns {(name: string) => string | undefined} */
function sections(suffix = "") {
  return (name) => document.getElementById(`${name}${suffix}`)?.textContent ?? undefined;
}

/** Starts the page in its document. */
export function main() {
  const root = /** @type {HTMLElement} */ (document.getElementById("app"));
  root.replaceChildren();
  const settings = json("fakekube") ?? { mode: "live", base: "/fakekube/v1/" };
  const report = json("report");
  const provider = settings.mode === "live" ? new LiveProvider(settings.base) : new FileProvider(json("trace") ?? EMPTY, sections());
  const app = new App(root, provider, report);
  app.settings = settings;
  Object.assign(globalThis, { fakekube: app });
  app.start();
}

const EMPTY = { info: {}, requests: { strings: [""], columns: {} }, changes: { strings: [""], columns: {} }, findings: [] };

main();
