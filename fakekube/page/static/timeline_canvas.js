/**
 * Draws the Timeline: lanes on the axis, marks with shape and colour, density where marks are closer than two pixels, the minimap.
 * A frame reads the model's arrays and nothing else.
 */

import { pixelRatio } from "fk/printing";
import { clockTime, duration } from "fk/format";
import { isChange, rowOf } from "fk/order";
import { digits } from "fk/revisions";
import { changeKind, colourClass, markKind } from "fk/rows";
import { visible } from "fk/escape";

export const LABEL_WIDTH = 168;
export const LANE_HEIGHT = 24;
export const HEAD_HEIGHT = 24;
const GROUP_HEIGHT = 20;
const GROUPS = /** @type {Record<string, string>} */ ({ client: "Clients", fault: "Faults", cluster: "Cluster", more: "Cluster", pin: "Objects (pinned)" });
/** Below this distance marks are drawn as density. */
const DENSE = 2;

/** @typedef {{from: number, to: number}} Viewport in places of the axis */

/**
 * The rows of the drawing: group titles and lanes with their vertical places.
 * @param {import("fk/timeline_model").TimelineModel} model
 */
export function layout(model) {
  /** @type {number[]} */
  const tops = [];
  const groups = [];
  let y = HEAD_HEIGHT;
  let group = "";
  model.lanes.forEach((lane) => {
    const title = GROUPS[lane.side];
    if (title !== group) {
      group = title;
      groups.push({ title, y });
      y += GROUP_HEIGHT;
    }
    tops.push(y);
    y += LANE_HEIGHT;
  });
  const marks = model.marks.length ? y : -1;
  if (marks >= 0) {
    groups.push({ title: "Marks", y });
    y += GROUP_HEIGHT + LANE_HEIGHT;
  }
  return { tops, groups, marks, height: y + 6 };
}

/** The colours of the theme. @param {HTMLElement} element */
export function palette(element) {
  const style = getComputedStyle(element);
  const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const hues = Object.fromEntries(["hue-0", "hue-1", "hue-2", "hue-3", "hue-4", "hue-5", "hue-6", "hue-more", "hue-own", "hue-fault"].map((name) => [name, read(name)]));
  return { ...hues, text: read("text"), muted: read("muted"), line: read("line"), band: read("band"), bad: read("bad"), accent: read("accent"), then: read("then"), background: read("surface"), font: style.getPropertyValue("--mono") || "monospace", ui: style.fontFamily };
}

/** @typedef {ReturnType<typeof palette>} Palette */

export class Painter {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import("fk/app").App} app
   */
  constructor(canvas, app) {
    this.canvas = canvas;
    this.app = app;
    /** Where density is drawn. @type {HTMLCanvasElement | undefined} */ this.offscreen = undefined;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  }

  /** Fits the canvas to its place. @param {number} width @param {number} height */
  resize(width, height) {
    const ratio = pixelRatio();
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.setProperty("width", `${width}px`);
      this.canvas.style.setProperty("height", `${height}px`);
    }
    this.width = width;
    this.height = height;
    this.ratio = ratio;
  }

  /**
   * @param {import("fk/timeline_model").TimelineModel} model
   * @param {Viewport} view
   * @param {{selected: number, delivered: Set<number>, hovered: number, at: number | null, range: [number, number] | null, drag: [number, number] | null}} state indexes of entries; revisions; places
   */
  draw(model, view, state) {
    const { context, width = 0, height = 0, ratio = 1 } = this;
    this.colours = palette(this.canvas);
    this.plan = layout(model);
    this.model = model;
    this.view = view;
    this.scale = (width - LABEL_WIDTH) / Math.max(1e-9, view.to - view.from);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.#drawBands();
    this.#drawRange(state.range, state.drag);
    context.save();
    context.beginPath();
    context.rect(LABEL_WIDTH, 0, width - LABEL_WIDTH, height);
    context.clip();
    this.#drawGaps();
    this.#drawWatches();
    if (this.scale * model.step < DENSE) this.#drawDensity();
    else this.#drawMarks();
    this.#drawLinks(state.selected);
    this.#drawDeliveries(state.selected, state.delivered);
    this.#drawControls();
    this.#drawFuture(state.at);
    this.#outline(state.hovered, false);
    this.#outline(state.selected, true);
    context.restore();
    this.#drawAxis();
    this.#drawLabels();
  }

  /** @param {number} place */
  x(place) {
    return LABEL_WIDTH + (place - /** @type {Viewport} */ (this.view).from) * /** @type {number} */ (this.scale);
  }

  /** @param {number} index of an entry */
  y(index) {
    const { model, plan } = this;
    return /** @type {any} */ (plan).tops[/** @type {any} */ (model).laneOf[index]] + LANE_HEIGHT / 2;
  }

  #drawBands() {
    const { context, plan, colours, width = 0 } = this;
    context.fillStyle = /** @type {Palette} */ (colours).band;
    /** @type {any} */ (plan).tops.forEach((/** @type {number} */ top, /** @type {number} */ index) => {
      if (index % 2) context.fillRect(0, top, width, LANE_HEIGHT);
    });
  }

  /** @param {[number, number] | null} range revisions @param {[number, number] | null} drag places */
  #drawRange(range, drag) {
    const { context, model, height = 0 } = this;
    const places = drag ?? (range && [/** @type {any} */ (model).placeOf(range[0] - 1), /** @type {any} */ (model).placeOf(range[1])]);
    if (!places) return;
    const [from, to] = places.map((/** @type {number} */ place) => Math.max(LABEL_WIDTH, this.x(place)));
    context.globalAlpha = 0.14;
    context.fillStyle = /** @type {Palette} */ (this.colours).accent;
    context.fillRect(Math.min(from, to), 0, Math.abs(to - from), height);
    context.globalAlpha = 1;
  }

  #drawGaps() {
    const { context, model, colours, height = 0 } = this;
    context.fillStyle = /** @type {Palette} */ (colours).muted;
    context.font = `11px ${/** @type {Palette} */ (colours).ui}`;
    context.textAlign = "center";
    for (const gap of /** @type {any} */ (model).gaps) {
      const x = this.x(gap.x);
      context.globalAlpha = 0.35;
      for (let y = HEAD_HEIGHT; y < height; y += 8) context.fillRect(x, y, 1, 4);
      context.globalAlpha = 1;
      context.fillText(`idle ${duration(gap.seconds)}`, x, HEAD_HEIGHT + 12);
    }
    context.textAlign = "left";
  }

  /** The colour of an entry. @param {number} index */
  #colour(index) {
    const { app, model, colours } = this;
    const entry = /** @type {any} */ (model).entries[index];
    const table = isChange(entry) ? app.store.changes : app.store.requests;
    const row = rowOf(entry);
    return /** @type {any} */ (colours)[colourClass(app, table.text("actor", row), table.text("side", row))];
  }

  #drawWatches() {
    const { context, model, view, colours } = this;
    for (const watch of /** @type {any} */ (model).watches) {
      if (watch.to < /** @type {any} */ (view).from || watch.from > /** @type {any} */ (view).to) continue;
      const from = Math.max(LABEL_WIDTH, this.x(watch.from));
      const to = this.x(watch.to);
      const y = this.y(watch.index) + 5;
      context.globalAlpha = 0.45;
      context.fillStyle = this.#colour(watch.index);
      context.fillRect(from, y, Math.max(2, to - from), 3);
      context.globalAlpha = 1;
      if (!watch.open) this.#watchEnd(watch, to, y, /** @type {Palette} */ (colours));
    }
  }

  /** ✕ expired, ‖ ended, ⚡ cut. @param {any} watch @param {number} x @param {number} y @param {Palette} colours */
  #watchEnd(watch, x, y, colours) {
    const { context } = this;
    const expired = /410|expired|gone/i.test(watch.ended);
    const sign = expired ? "✕" : /cut|reset|drop|lost/i.test(watch.ended) ? "⚡" : "‖";
    context.fillStyle = expired ? colours.bad : colours.muted;
    context.font = `10px ${colours.ui}`;
    context.fillText(sign, x + 1, y + 5);
  }

  // ---------------------------------------------------------------- marks

  #drawDensity() {
    const { context, model, view, colours, width = 0, height = 0, ratio = 1, app } = this;
    const m = /** @type {import("fk/timeline_model").TimelineModel} */ (model);
    const columns = Math.round((width - LABEL_WIDTH) * ratio);
    const lanes = m.lanes.length;
    const counts = new Uint16Array(columns * lanes);
    const errors = new Uint8Array(columns * lanes);
    const scale = columns / (/** @type {any} */ (view).to - /** @type {any} */ (view).from);
    const { code } = app.store.requests.columns;
    const last = m.indexAt(/** @type {any} */ (view).to);
    for (let index = m.indexAt(/** @type {any} */ (view).from); index < last; index++) {
      const column = ((m.xs[index] - /** @type {any} */ (view).from) * scale) | 0;
      if (column < 0 || column >= columns) continue;
      const cell = m.laneOf[index] * columns + column;
      counts[cell]++;
      const entry = m.entries[index];
      if (entry >= 0 && code[entry] >= 400) errors[cell] = 1;
    }
    const image = context.createImageData(columns, Math.round(height * ratio));
    const pixels = new Uint32Array(image.data.buffer);
    const bad = rgba(/** @type {any} */ (colours).bad, 255);
    for (let lane = 0; lane < lanes; lane++) this.#paintLane(pixels, columns, lane, counts, errors, bad);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    const offscreen = (this.offscreen ??= document.createElement("canvas"));
    offscreen.width = columns;
    offscreen.height = Math.round(height * ratio);
    /** @type {CanvasRenderingContext2D} */ (offscreen.getContext("2d")).putImageData(image, 0, 0);
    context.drawImage(offscreen, Math.round(LABEL_WIDTH * ratio), 0);
    context.restore();
  }

  /** @param {Uint32Array} pixels @param {number} columns @param {number} lane @param {Uint16Array} counts @param {Uint8Array} errors @param {number} bad */
  #paintLane(pixels, columns, lane, counts, errors, bad) {
    const { ratio = 1, plan, model, app, colours } = this;
    const { actor, side } = /** @type {any} */ (model).lanes[lane];
    const name = side === "pin" || side === "more" ? "hue-more" : colourClass(app, actor, side);
    const colour = /** @type {any} */ (colours)[name];
    const shades = Array.from({ length: 9 }, (_, level) => rgba(colour, 90 + level * 20));
    const top = Math.round((/** @type {any} */ (plan).tops[lane] + 3) * ratio);
    const full = Math.round((LANE_HEIGHT - 6) * ratio);
    for (let column = 0; column < columns; column++) {
      const amount = counts[lane * columns + column];
      if (!amount) continue;
      const high = Math.min(full, Math.round(full * (0.3 + 0.175 * Math.log2(amount + 1))));
      const error = errors[lane * columns + column];
      const shade = error ? bad : shades[Math.min(8, amount)];
      for (let y = top + full - high; y < top + full; y++) pixels[y * columns + column] = shade;
      if (error && column + 1 < columns && !counts[lane * columns + column + 1]) for (let y = top + full - high; y < top + full; y++) pixels[y * columns + column + 1] = bad;
    }
  }

  #drawMarks() {
    const { model, view, context, colours } = this;
    const m = /** @type {import("fk/timeline_model").TimelineModel} */ (model);
    const room = /** @type {number} */ (this.scale) * m.step;
    const size = Math.max(3, Math.min(7, room * 0.8));
    const last = Math.min(m.size, m.indexAt(/** @type {any} */ (view).to) + 2);
    for (let index = Math.max(0, m.indexAt(/** @type {any} */ (view).from) - 2); index < last; index++) this.#drawMark(index, size, room);
    context.fillStyle = /** @type {any} */ (colours).text;
  }

  /** @param {number} index @param {number} size @param {number} room */
  #drawMark(index, size, room) {
    const { model, app, context, colours } = this;
    const entry = /** @type {any} */ (model).entries[index];
    const row = rowOf(entry);
    const x = this.x(/** @type {any} */ (model).xs[index]);
    const y = this.y(index) - 1;
    if (isChange(entry)) {
      const { changes } = app.store;
      context.fillStyle = this.#colour(index);
      shape(context, changeKind(changes.text("type", row), changes.text("sub", row)), x, y, size);
      if (/** @type {any} */ (model).lanes[/** @type {any} */ (model).laneOf[index]].side === "pin" && room > 30) this.#label(digits(changes.value("revision", row)), x, y, size);
      return;
    }
    const { requests } = app.store;
    const code = requests.value("code", row);
    const fault = requests.columns.fault[row] !== 0;
    if (code >= 400) {
      context.strokeStyle = /** @type {any} */ (colours).bad;
      context.lineWidth = 2;
      cross(context, x, y, Math.min(4.5, size * 0.8));
      if (room > 40) this.#label(String(code), x, y, size);
    } else {
      context.fillStyle = this.#colour(index);
      shape(context, markKind(requests.text("verb", row), requests.text("resource", row)), x, y, size);
    }
    if (fault) {
      context.fillStyle = /** @type {any} */ (colours)["hue-fault"];
      context.font = `11px ${/** @type {any} */ (colours).ui}`;
      context.fillText("★", x - 5, y - 4);
    }
  }

  /** @param {string} text @param {number} x @param {number} y @param {number} size */
  #label(text, x, y, size) {
    const { context, colours } = this;
    context.fillStyle = /** @type {any} */ (colours).muted;
    context.font = `10px ${/** @type {any} */ (colours).font}`;
    context.fillText(text, x + size + 2, y + 4);
  }

  /** Lines from a selected request to its changes in other lanes. @param {number} selected */
  #drawLinks(selected) {
    const { model, app, context, colours } = this;
    const m = /** @type {import("fk/timeline_model").TimelineModel} */ (model);
    const entry = selected >= 0 ? m.entries[selected] : -1;
    if (entry < 0 || !app.store.requests.value("writes", entry)) return;
    const number = app.store.requests.value("number", entry);
    const { request, after } = app.store.changes.columns;
    context.strokeStyle = /** @type {any} */ (colours).accent;
    context.lineWidth = 1;
    for (let index = selected + 1; index < Math.min(m.size, selected + 2000); index++) {
      const other = m.entries[index];
      if (!isChange(other) || request[rowOf(other)] !== number) continue;
      if (after[rowOf(other)] > number + 1000) break;
      context.beginPath();
      context.moveTo(this.x(m.xs[selected]), this.y(selected));
      context.bezierCurveTo(this.x(m.xs[selected]), this.y(index), this.x(m.xs[index]), this.y(selected), this.x(m.xs[index]), this.y(index));
      context.stroke();
    }
  }

  /** Lines from a selected change to the watches that delivered it. @param {number} selected @param {Set<number>} delivered request numbers */
  #drawDeliveries(selected, delivered) {
    if (!delivered.size) return;
    const { model, app, context, colours } = this;
    const m = /** @type {import("fk/timeline_model").TimelineModel} */ (model);
    const { number } = app.store.requests.columns;
    const [x, y] = [this.x(m.xs[selected]), this.y(selected)];
    context.strokeStyle = context.fillStyle = /** @type {any} */ (colours).accent;
    context.lineWidth = 1;
    for (const watch of m.watches) {
      if (!delivered.has(number[m.entries[watch.index]])) continue;
      const [to, bar] = [Math.max(this.x(watch.from), x + 10), this.y(watch.index) + 6];
      context.beginPath();
      context.setLineDash([3, 2]);
      context.moveTo(x, y);
      context.lineTo(to, bar);
      context.stroke();
      context.setLineDash([]);
      context.beginPath();
      context.arc(to, bar, 3, 0, 2 * Math.PI);
      context.fill();
    }
  }

  #drawControls() {
    const { context, model, plan, colours, width = 0, height = 0 } = this;
    const top = /** @type {any} */ (plan).marks;
    if (top < 0) return;
    const y = top + GROUP_HEIGHT + LANE_HEIGHT / 2;
    let free = -Infinity;
    context.font = `11px ${/** @type {any} */ (colours).ui}`;
    for (const mark of /** @type {any} */ (model).marks) {
      const x = this.x(mark.x);
      if (x < LABEL_WIDTH - 200 || x > width) continue;
      context.globalAlpha = 0.4;
      context.fillStyle = /** @type {any} */ (colours).then;
      context.fillRect(x, HEAD_HEIGHT, 1, height - HEAD_HEIGHT);
      context.globalAlpha = 1;
      context.fillText(MARK_SIGNS[mark.kind] ?? "◇", x - 5, y + 4);
      const text = visible(mark.text || mark.kind);
      if (x + 8 > free) {
        context.fillStyle = /** @type {any} */ (colours).muted;
        const shown = text.length > 40 ? `${text.slice(0, 39)}…` : text;
        context.fillText(shown, x + 9, y + 4);
        free = x + 14 + context.measureText(shown).width;
      }
    }
  }

  /** What lies after the cursor is paler. @param {number | null} at */
  #drawFuture(at) {
    if (at === null) return;
    const { context, model, colours, width = 0, height = 0 } = this;
    const x = Math.max(LABEL_WIDTH, this.x(/** @type {any} */ (model).placeOf(at)));
    context.globalAlpha = 0.72;
    context.fillStyle = /** @type {any} */ (colours).background;
    context.fillRect(x, HEAD_HEIGHT, width - x, height);
    context.globalAlpha = 1;
    context.fillStyle = /** @type {any} */ (colours).then;
    context.fillRect(x - 1, 0, 2, height);
  }

  /** @param {number} index @param {boolean} strong */
  #outline(index, strong) {
    const { context, model, colours } = this;
    if (index < 0 || index >= /** @type {any} */ (model).size) return;
    const x = this.x(/** @type {any} */ (model).xs[index]);
    const y = this.y(index) - 1;
    context.strokeStyle = strong ? /** @type {any} */ (colours).accent : /** @type {any} */ (colours).muted;
    context.lineWidth = strong ? 2 : 1;
    context.beginPath();
    context.arc(x, y, 9, 0, Math.PI * 2);
    context.stroke();
  }

  // ---------------------------------------------------------------- axis and labels

  #drawAxis() {
    const { context, model, view, colours, width = 0 } = this;
    const m = /** @type {import("fk/timeline_model").TimelineModel} */ (model);
    context.fillStyle = /** @type {any} */ (colours).background;
    context.fillRect(0, 0, width, HEAD_HEIGHT - 1);
    context.fillStyle = /** @type {any} */ (colours).line;
    context.fillRect(0, HEAD_HEIGHT - 1, width, 1);
    context.font = `11px ${/** @type {any} */ (colours).font}`;
    let last = "";
    for (let x = LABEL_WIDTH; x < width - 60; x += 110) {
      const place = /** @type {any} */ (view).from + (x - LABEL_WIDTH) / /** @type {number} */ (this.scale);
      const index = Math.min(m.size - 1, m.indexAt(place));
      if (index < 0 || place > m.end) break;
      const text = m.axis === "clock" ? clockTime(m.timeOf(m.entries[index])) : digits(m.revisions[index]);
      if (text === last) continue;
      last = text;
      const at = Math.max(LABEL_WIDTH, this.x(m.xs[index]));
      context.fillStyle = /** @type {any} */ (colours).line;
      context.fillRect(at, HEAD_HEIGHT - 7, 1, 6);
      context.fillStyle = /** @type {any} */ (colours).muted;
      context.fillText(text, at + 4, 15);
    }
    if (this.app.provider.live && /** @type {any} */ (view).from <= 0 && Number(this.app.info.oldest ?? 0) > 1) this.#hatch();
  }

  /** Before the oldest revision that is kept nothing is known. */
  #hatch() {
    const { context, colours, height = 0 } = this;
    const end = Math.max(LABEL_WIDTH + 6, this.x(0) - 4);
    context.save();
    context.beginPath();
    context.rect(LABEL_WIDTH, HEAD_HEIGHT, end - LABEL_WIDTH, height);
    context.clip();
    context.strokeStyle = /** @type {any} */ (colours).line;
    context.lineWidth = 1;
    for (let offset = -height; offset < end; offset += 6) {
      context.beginPath();
      context.moveTo(offset, height);
      context.lineTo(offset + height, 0);
      context.stroke();
    }
    context.restore();
  }

  #drawLabels() {
    const { context, model, plan, colours, height = 0, app } = this;
    context.fillStyle = /** @type {any} */ (colours).background;
    context.fillRect(0, HEAD_HEIGHT, LABEL_WIDTH - 1, height);
    context.fillStyle = /** @type {any} */ (colours).line;
    context.fillRect(LABEL_WIDTH - 1, 0, 1, height);
    context.fillStyle = /** @type {any} */ (colours).muted;
    context.font = `600 10px ${/** @type {any} */ (colours).ui}`;
    for (const group of /** @type {any} */ (plan).groups) context.fillText(group.title.toUpperCase(), 12, group.y + 14);
    context.fillText(/** @type {any} */ (model).axis === "clock" ? "TIME" : "REVISION", 12, 15);
    context.font = `12px ${/** @type {any} */ (colours).ui}`;
    /** @type {any} */ (model).lanes.forEach((/** @type {any} */ lane, /** @type {number} */ index) => {
      const top = /** @type {any} */ (plan).tops[index];
      const hue = lane.side === "pin" || lane.side === "more" ? "hue-more" : colourClass(app, lane.actor, lane.side);
      context.fillStyle = /** @type {any} */ (colours)[hue];
      context.fillRect(12, top + 8, 3, LANE_HEIGHT - 16);
      context.fillStyle = lane.side === "client" || lane.side === "pin" ? /** @type {any} */ (colours).text : /** @type {any} */ (colours).muted;
      context.fillText(clipped(context, visible(lane.label), LABEL_WIDTH - 30), 21, top + LANE_HEIGHT / 2 + 4);
    });
  }
}

const MARK_SIGNS = /** @type {Record<string, string>} */ ({ fault: "★", hit: "✶", clock: "◷", snapshot: "▣", restore: "↺", reset: "⟲", load: "⇩", compaction: "⌫", restart: "↻", outage: "⏻", phase: "▸", mark: "◆" });

/**
 * Draws all entries into a strip, with the viewport.
 * @param {HTMLCanvasElement} canvas @param {import("fk/timeline_model").TimelineModel} model @param {Viewport} view @param {Palette} colours
 */
export function drawMinimap(canvas, model, view, colours) {
  const ratio = pixelRatio();
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (!width || !height) return;
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const counts = new Uint32Array(width);
  const scale = (width - 1) / Math.max(1e-9, model.end);
  for (let index = 0; index < model.size; index++) counts[(model.xs[index] * scale) | 0]++;
  const most = counts.reduce((one, other) => Math.max(one, other), 1);
  context.clearRect(0, 0, width, height);
  context.fillStyle = colours.muted;
  context.globalAlpha = 0.55;
  for (let x = 0; x < width; x++) if (counts[x]) context.fillRect(x, height - Math.max(2, (counts[x] / most) * height), Math.max(1, Math.min(3, scale)), height);
  context.globalAlpha = 0.18;
  context.fillStyle = colours.accent;
  const from = view.from * scale;
  const to = view.to * scale;
  context.fillRect(from, 0, to - from, height);
  context.globalAlpha = 1;
  context.fillRect(from, 0, ratio, height);
  context.fillRect(to - ratio, 0, ratio, height);
}

/** @param {CanvasRenderingContext2D} context @param {string} kind @param {number} x @param {number} y @param {number} size */
function shape(context, kind, x, y, size) {
  context.beginPath();
  if (kind === "create") triangle(context, x, y, size, -1);
  else if (kind === "delete" || kind === "deletecollection") triangle(context, x, y, size, 1);
  else if (kind === "bind") {
    context.moveTo(x, y - size);
    context.lineTo(x + size, y);
    context.lineTo(x, y + size);
    context.lineTo(x - size, y);
  } else if (kind === "status") {
    context.rect(x - size * 0.8, y - size * 0.8, size * 0.8, size * 1.6);
    context.fill();
    context.lineWidth = 1;
    context.strokeStyle = context.fillStyle;
    context.strokeRect(x - size * 0.8, y - size * 0.8, size * 1.6, size * 1.6);
    return;
  } else if (kind === "read" || kind === "other") context.arc(x, y, Math.max(1.5, size * 0.3), 0, Math.PI * 2);
  else if (kind === "watch") context.rect(x - size * 0.5, y + 4, size, 5);
  else context.rect(x - size * 0.8, y - size * 0.8, size * 1.6, size * 1.6);
  context.fill();
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} size @param {number} down */
function triangle(context, x, y, size, down) {
  context.moveTo(x - size, y - down * size * 0.8);
  context.lineTo(x + size, y - down * size * 0.8);
  context.lineTo(x, y + down * size);
  context.closePath();
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} size */
function cross(context, x, y, size) {
  context.beginPath();
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x + size, y - size);
  context.lineTo(x - size, y + size);
  context.stroke();
}

/** A pixel of ImageData. @param {string} colour `#rrggbb` @param {number} alpha */
function rgba(colour, alpha) {
  const value = /^#[0-9a-f]{6}$/i.test(colour) ? Number.parseInt(colour.slice(1), 16) : 0x808080;
  return ((Math.min(255, alpha) << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/** @param {CanvasRenderingContext2D} context @param {string} text @param {number} width */
function clipped(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let shown = text;
  while (shown.length > 1 && context.measureText(`${shown}…`).width > width) shown = shown.slice(0, -1);
  return `${shown}…`;
}
