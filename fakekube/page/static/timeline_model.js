/**
 * What the Timeline draws: entries with their place on the axis and their lane, watches as bars, marks. Made once for each set of
 * rows; drawing a frame only reads typed arrays.
 */

import { isChange, positionOf, rowOf } from "fk/order";

/** The others are folded into one lane. */
export const MAX_LANES = 30;
/** Gaps of the clock that are longer than this part of the whole are cut. */
const IDLE_PART = 0.1;

/**
 * @typedef {object} Lane
 * @property {string} label
 * @property {"client" | "cluster" | "fault" | "pin" | "more"} side
 * @property {string} actor
 * @property {number} count
 */

export class TimelineModel {
  /** @type {Lane[]} */ lanes = [];
  /** The lane of each entry. */
  laneOf = new Int16Array(0);
  /** The place of each entry. */
  xs = new Float64Array(0);
  /** Gaps that were cut. @type {{x: number, seconds: number}[]} */
  gaps = [];
  /** @type {{index: number, from: number, to: number, open: boolean, ended: string}[]} */
  watches = [];
  /** @type {{x: number, kind: string, text: string, row: number}[]} */
  marks = [];

  /**
   * @param {import("fk/app").App} app
   * @param {"order" | "clock"} axis
   */
  constructor(app, axis) {
    this.app = app;
    this.axis = axis;
    const { entries, revisions } = app.rows;
    this.entries = entries;
    this.revisions = revisions;
    this.#lanes();
    this.#places();
    this.#watches();
    this.#marks();
  }

  get size() {
    return this.entries.length;
  }

  /** The end of the axis. */
  get end() {
    return this.size ? this.xs[this.size - 1] + this.step : 1;
  }

  /** The room of an entry on the axis. */
  get step() {
    return this.axis === "order" ? 1 : Math.max(0.001, (this.size ? this.xs[this.size - 1] : 0) / Math.max(1, this.size));
  }

  // ---------------------------------------------------------------- lanes

  #lanes() {
    const { requests, changes, strings } = this.app.store;
    const { entries } = this;
    const clients = new Map();
    const pins = this.app.pins;
    const actorOf = new Int32Array(entries.length);
    entries.forEach((entry, index) => {
      const row = rowOf(entry);
      const table = isChange(entry) ? changes : requests;
      actorOf[index] = table.columns.actor[row] || (isChange(entry) ? table.columns.reason[row] : 0);
      const known = clients.get(actorOf[index]);
      if (known) known.count++;
      else clients.set(actorOf[index], { label: strings.list[actorOf[index]] || "(unknown)", actor: strings.list[actorOf[index]], side: sideOf(table.text("side", row)), count: 1, key: actorOf[index] });
    });
    const lanes = [...clients.values()].sort((one, other) => SIDES[one.side] - SIDES[other.side] || other.count - one.count);
    const shown = lanes.length > MAX_LANES ? lanes.slice(0, MAX_LANES - 1) : lanes;
    const folded = lanes.slice(shown.length);
    const laneOfActor = new Map(shown.map((lane, index) => [lane.key, index]));
    this.lanes = [...shown];
    if (folded.length) this.lanes.push({ label: `+ ${folded.length} more actors`, actor: "", side: "more", count: folded.reduce((sum, lane) => sum + lane.count, 0) });
    const rest = shown.length;
    const firstPin = this.lanes.length;
    for (const pin of pins) this.lanes.push({ label: `${pin.resource.split(".")[0]} ${pin.name}`, actor: "", side: "pin", count: 0 });
    this.laneOf = new Int16Array(entries.length);
    entries.forEach((entry, index) => {
      const pin = isChange(entry) ? this.#pinOf(rowOf(entry)) : -1;
      this.laneOf[index] = pin >= 0 ? firstPin + pin : (laneOfActor.get(actorOf[index]) ?? rest);
    });
  }

  /** @param {number} row of a change */
  #pinOf(row) {
    const { pins, store } = this.app;
    if (!pins.length) return -1;
    const { changes } = store;
    return pins.findIndex((pin) => changes.text("name", row) === pin.name && changes.text("resource", row) === pin.resource && changes.text("namespace", row) === pin.namespace);
  }

  // ---------------------------------------------------------------- axis

  #places() {
    const { entries } = this;
    this.xs = new Float64Array(entries.length);
    this.gaps = [];
    if (this.axis === "order") {
      for (let index = 0; index < entries.length; index++) this.xs[index] = index;
      return;
    }
    const times = Float64Array.from(entries, (entry) => this.timeOf(entry));
    const limit = entries.length ? Math.max(0.5, (times[times.length - 1] - times[0]) * IDLE_PART) : 1;
    let x = 0;
    for (let index = 1; index < entries.length; index++) {
      const pause = Math.max(0, times[index] - times[index - 1]);
      x += Math.min(pause, limit);
      this.xs[index] = x;
      if (pause > limit) this.gaps.push({ x: x - limit / 2, seconds: pause });
    }
  }

  /** @param {number} entry */
  timeOf(entry) {
    const { requests, changes } = this.app.store;
    return (isChange(entry) ? changes : requests).columns.time[rowOf(entry)];
  }

  /** The first entry whose place is not before x. @param {number} x */
  indexAt(x) {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.xs[middle] < x) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The place between the past of a revision and what follows. @param {number} revision */
  placeOf(revision) {
    const position = positionOf(this.revisions, revision);
    return position >= this.size ? this.end : this.xs[position] - this.step * 0.5;
  }

  /** The newest revision at a place. @param {number} x */
  revisionAt(x) {
    if (!this.size) return 0;
    return this.revisions[Math.max(0, Math.min(this.size - 1, this.indexAt(x + this.step * 0.5) - 1))];
  }

  /** The first entry after a request of a number. @param {number} number */
  indexAfterRequest(number) {
    const { requests, changes } = this.app.store;
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      const entry = this.entries[middle];
      const key = isChange(entry) ? changes.columns.after[rowOf(entry)] : requests.columns.number[rowOf(entry)];
      if (key <= number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The place of an entry, or NaN. @param {number} index */
  xOf(index) {
    return index >= 0 && index < this.size ? this.xs[index] : this.end;
  }

  // ---------------------------------------------------------------- watches and marks

  #watches() {
    const { requests, strings } = this.app.store;
    const watch = strings.indexes.get("watch") ?? -1;
    const { verb, began, ms, number } = requests.columns;
    this.watches = [];
    this.entries.forEach((entry, index) => {
      if (isChange(entry) || verb[entry] !== watch) return;
      const open = !Number.isFinite(ms[entry]);
      const after = open ? requests.count : firstAfter(began, requests.count, began[entry] + ms[entry]);
      const to = after >= requests.count ? this.end : this.xOf(this.indexAfterRequest(number[after] - 1));
      this.watches.push({ index, from: this.xs[index], to, open, ended: requests.text("ended", entry) });
    });
  }

  #marks() {
    const { marks } = this.app.store;
    this.marks = [];
    for (let row = 0; row < marks.count; row++) {
      const index = this.indexAfterRequest(marks.value("after", row));
      this.marks.push({ x: this.xOf(index) - this.step * 0.5, kind: marks.text("kind", row), text: marks.text("text", row), row });
    }
  }
}

const SIDES = /** @type {Record<string, number>} */ ({ client: 0, fault: 1, cluster: 2 });

/** @param {string} side @returns {"client" | "cluster" | "fault"} */
function sideOf(side) {
  return side === "client" || side === "fault" ? side : "cluster";
}

/** @param {Float64Array} began ascending @param {number} count @param {number} time */
function firstAfter(began, count, time) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (began[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
