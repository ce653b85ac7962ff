/**
 * The Timeline: lanes of actors on the one axis, and below the same rows as a table, which is the accessible form of the drawing:
 * all that the canvas does can be done in the table.
 */

import { html, nothing, ref } from "lit";
import { visible } from "fk/escape";
import { count, milliseconds, plural } from "fk/format";
import { begin, end } from "fk/measure";
import { isChange, rowOf } from "fk/order";
import { pin } from "fk/object_panel";
import { digits } from "fk/revisions";
import { SHAPES, actorCell, changeKind, changeLine, codeClass, markKind, nameOf, requestLine, timeCell, wroteText } from "fk/rows";
import { Grid } from "fk/table";
import { HEAD_HEIGHT, LABEL_WIDTH, LANE_HEIGHT, Painter, drawMinimap, layout, palette } from "fk/timeline_canvas";
import { TimelineModel } from "fk/timeline_model";
import { changeDetail, deliveredTo, emptyRequests, requestPanel } from "fk/view_requests";

/** @typedef {import("fk/app").App} App */

const grid = new Grid();
/** How near a mark the pointer must be, in pixels. */
const REACH = 10;

/** The state of the drawing, which is not part of the address. */
const state = {
  /** @type {TimelineModel | undefined} */ model: undefined,
  /** @type {Int32Array | undefined} */ entries: undefined,
  axis: "order",
  /** @type {{from: number, to: number} | null} */ view: null,
  follow: true,
  hovered: -1,
  /** @type {[number, number] | null} */ drag: null,
  /** @type {Painter | undefined} */ painter: undefined,
  /** @type {HTMLCanvasElement | undefined} */ canvas: undefined,
  /** @type {HTMLCanvasElement | undefined} */ minimap: undefined,
  rangeStart: -1,
};

/** @type {import("fk/app").View} */
export const timelineView = {
  render(app) {
    const model = modelOf(app);
    grid.onResize = () => app.render();
    queueMicrotask(() => draw(app));
    const selected = selectedIndex(app, model);
    return html`<div class="timeline">
      <div class="toolbar">
        <span class="buttons" role="group" aria-label="Zoom">
          <button type="button" class="icon" aria-label="Zoom in" title="Zoom in (+)" @click=${() => zoom(app, 0.5)}>+</button>
          <button type="button" class="icon" aria-label="Zoom out" title="Zoom out (−)" @click=${() => zoom(app, 2)}>−</button>
          <button type="button" title="Show all (0)" @click=${() => showAll(app)}>All</button>
        </span>
        <label class="check"><input type="checkbox" .checked=${model.axis === "clock"} @change=${(/** @type {any} */ event) => app.set({ axis: event.target.checked ? "clock" : undefined })}> clock time</label>
        <span class="legend muted" aria-hidden="true">▲ create ■ update ◧ status ▼ delete ◆ bind · read ✕ refused ★ fault</span>
      </div>
      <div class="canvas-frame"><canvas class="lanes" role="img" aria-label=${label(model)} ${ref((element) => attach(app, element))}></canvas></div>
      <canvas class="minimap" aria-hidden="true" ${ref((element) => attachMinimap(app, element))}></canvas>
      ${sentence(app)}
      ${grid.template({
        label: "Requests and changes in order",
        count: model.size,
        columns: columns(app, model),
        active: selected,
        onActive: (index) => select(app, model, index),
        onOpen: (index) => openEntry(app, model, index),
        onClick: (index, event) => event.shiftKey && compareWith(app, model, index),
        rowClass: (index) => ({ refused: !isChange(model.entries[index]) && app.store.requests.value("code", model.entries[index]) >= 400, future: app.at !== null && model.revisions[index] > app.at }),
        follow: true,
        address: app.route.params.sel,
        empty: emptyRequests(app),
      })}
    </div>`;
  },
  panel(app) {
    const model = modelOf(app);
    const index = selectedIndex(app, model);
    if (index < 0) return app.findings.length ? findings(app) : undefined;
    const entry = model.entries[index];
    if (!isChange(entry)) return requestPanel(app, app.store.requests.value("number", entry));
    const { changes } = app.store;
    const row = rowOf(entry);
    const revision = changes.value("revision", row);
    return html`<div class="panel-head"><h2>${changeLine(changes, row)}</h2><div class="panel-actions">
        <button type="button" @click=${() => app.openObject(idOf(changes, row))}>Object</button>
        <button type="button" @click=${() => app.setCursor(revision)}>Stand here</button>
        <button type="button" class="quiet icon" aria-label="Close the panel" @click=${() => app.set({ sel: undefined })}>×</button></div></div>
      ${changeDetail(app, revision)}`;
  },
  key(app, event) {
    const model = modelOf(app);
    const action = KEYS[event.key];
    if (!action) return false;
    action(app, model, event);
    return true;
  },
  focusTarget: () => grid.element,
};

/** @type {Record<string, (app: App, model: TimelineModel, event: KeyboardEvent) => void>} */
const KEYS = {
  "+": (app) => zoom(app, 0.5),
  "=": (app) => zoom(app, 0.5),
  "-": (app) => zoom(app, 2),
  0: (app) => showAll(app),
  ArrowLeft: (app, model) => selectAlong(app, model, -1),
  ArrowRight: (app, model) => selectAlong(app, model, 1),
  p: pinSelected,
  r: markRange,
};

// ---------------------------------------------------------------- model and selection

/** @param {App} app */
function modelOf(app) {
  const axis = app.route.params.axis === "clock" ? "clock" : "order";
  const { entries } = app.rows;
  if (!state.model || state.entries !== entries || state.axis !== axis) {
    state.model = new TimelineModel(app, /** @type {"order" | "clock"} */ (axis));
    state.entries = entries;
    if (state.axis !== axis) state.view = null;
    state.axis = axis;
  }
  return state.model;
}

/** The index of the entry that the address selects: `r118` or `c520`. @param {App} app @param {TimelineModel} model */
function selectedIndex(app, model) {
  const match = /^([rc])(\d{1,40})$/.exec(app.route.params.sel ?? "");
  if (!match) return -1;
  const { requests, changes } = app.store;
  if (match[1] === "r") return model.entries.indexOf(requests.find(Number(match[2])));
  const row = changes.find(Number(match[2]));
  if (row < 0) return -1;
  const alone = model.entries.indexOf(-1 - row);
  return alone >= 0 ? alone : model.entries.indexOf(requests.find(changes.value("request", row)));
}

/** @param {App} app @param {TimelineModel} model @param {number} index */
function select(app, model, index) {
  const entry = model.entries[index];
  const { requests, changes } = app.store;
  app.set({ sel: isChange(entry) ? `c${digits(changes.value("revision", rowOf(entry)))}` : `r${requests.value("number", entry)}` });
  reveal(app, model, index);
}

/** @param {import("fk/store").Table} changes @param {number} row */
function idOf(changes, row) {
  return { resource: changes.text("resource", row), namespace: changes.text("namespace", row), name: changes.text("name", row) };
}

/** The object of an entry; null for a request about none. @param {App} app @param {number} entry */
function objectOf(app, entry) {
  const { requests, changes } = app.store;
  const row = rowOf(entry);
  if (isChange(entry)) return idOf(changes, row);
  const name = requests.text("name", row);
  return name ? { resource: requests.text("resource", row).split("/")[0], namespace: requests.text("namespace", row), name } : null;
}

/** @param {App} app @param {TimelineModel} model @param {number} index */
function openEntry(app, model, index) {
  const entry = model.entries[index];
  if (isChange(entry)) app.openObject(idOf(app.store.changes, rowOf(entry)), { tab: "history" });
  else app.open("requests", [String(app.store.requests.value("number", entry))]);
}

/** Moves the selection along its lane. @param {App} app @param {TimelineModel} model @param {number} step */
function selectAlong(app, model, step) {
  const selected = selectedIndex(app, model);
  if (selected < 0) return model.size ? select(app, model, step > 0 ? 0 : model.size - 1) : undefined;
  for (let index = selected + step; index >= 0 && index < model.size; index += step) {
    if (model.laneOf[index] === model.laneOf[selected]) return select(app, model, index);
  }
  return undefined;
}

/** @param {App} app @param {TimelineModel} model */
function pinSelected(app, model) {
  const selected = selectedIndex(app, model);
  const id = selected < 0 ? null : objectOf(app, model.entries[selected]);
  if (id) pin(app, id);
  else app.notice("Select a row of an object first.");
}

/** Starts a range at the selection, and ends it there. @param {App} app @param {TimelineModel} model */
function markRange(app, model) {
  const selected = selectedIndex(app, model);
  if (selected < 0) return app.notice("Select a row first: the range begins there.");
  const revision = model.revisions[selected];
  if (state.rangeStart < 0) {
    state.rangeStart = revision;
    return app.notice(`The range begins at revision ${digits(revision)}; r at another row ends it.`);
  }
  setRange(app, state.rangeStart, revision);
  state.rangeStart = -1;
  return undefined;
}

/** @param {App} app @param {number} one @param {number} other */
function setRange(app, one, other) {
  app.set({ range: `${digits(Math.min(one, other))}..${digits(Math.max(one, other))}` });
}

/** Shift+click compares with the selection. @param {App} app @param {TimelineModel} model @param {number} index */
function compareWith(app, model, index) {
  const selected = selectedIndex(app, model);
  if (selected < 0) return false;
  const [from, to] = [model.revisions[selected], model.revisions[index]].sort((one, other) => one - other);
  app.open("compare", [], { from: digits(from), to: digits(to) });
  return true;
}

// ---------------------------------------------------------------- viewport

/** @param {TimelineModel} model */
function viewport(model) {
  if (!state.view || state.follow) {
    const span = state.view ? state.view.to - state.view.from : Math.min(model.end, model.axis === "order" ? 400 : model.end) || 1;
    state.view = { from: Math.max(-model.step, model.end - span), to: Math.max(model.end, span) + model.step };
  }
  return state.view;
}

/** @param {App} app @param {number} factor @param {number} [centre] */
function zoom(app, factor, centre) {
  const model = modelOf(app);
  const view = viewport(model);
  const middle = centre ?? (view.from + view.to) / 2;
  const from = middle - (middle - view.from) * factor;
  move(app, model, from, from + Math.max(model.step * 4, (view.to - view.from) * factor));
}

/** @param {App} app */
function showAll(app) {
  const model = modelOf(app);
  move(app, model, -model.step, model.end + model.step);
}

/** @param {App} app @param {TimelineModel} model @param {number} from @param {number} to */
function move(app, model, from, to) {
  const span = Math.min(to - from, model.end + 2 * model.step);
  const start = Math.max(-model.step, Math.min(from, model.end + model.step - span));
  state.view = { from: start, to: start + span };
  state.follow = start + span >= model.end;
  begin("fk:pan");
  draw(app);
  end("fk:pan");
}

/** @param {App} app @param {TimelineModel} model @param {number} index */
function reveal(app, model, index) {
  const view = viewport(model);
  const x = model.xs[index];
  if (x < view.from || x > view.to) move(app, model, x - (view.to - view.from) / 2, x + (view.to - view.from) / 2);
  grid.reveal(index);
}

// ---------------------------------------------------------------- drawing

/** @param {App} app @param {Element | undefined} element */
function attach(app, element) {
  const canvas = /** @type {HTMLCanvasElement | undefined} */ (element);
  if (canvas === state.canvas) return;
  state.canvas = canvas;
  state.painter = canvas ? new Painter(canvas, app) : undefined;
  if (canvas) listen(app, canvas);
}

/** @param {App} app @param {Element | undefined} element */
function attachMinimap(app, element) {
  const canvas = /** @type {HTMLCanvasElement | undefined} */ (element);
  if (canvas === state.minimap) return;
  state.minimap = canvas;
  canvas?.addEventListener("pointerdown", (event) => {
    const model = modelOf(app);
    const view = viewport(model);
    const middle = (event.offsetX / canvas.clientWidth) * model.end;
    move(app, model, middle - (view.to - view.from) / 2, middle + (view.to - view.from) / 2);
  });
}

/** @param {App} app */
function draw(app) {
  const { painter, canvas, minimap } = state;
  if (!painter || !canvas?.isConnected) return;
  const model = modelOf(app);
  const view = viewport(model);
  painter.resize(/** @type {HTMLElement} */ (canvas.parentElement).clientWidth, layout(model).height);
  const selected = selectedIndex(app, model);
  painter.draw(model, view, { selected, delivered: deliveries(app, model, selected), hovered: state.hovered, at: app.at, range: app.range, drag: state.drag });
  if (minimap) drawMinimap(minimap, model, view, /** @type {any} */ (palette(canvas)));
}

/** The requests of the watches that got the selected change. @param {App} app @param {TimelineModel} model @param {number} selected @returns {Set<number>} */
function deliveries(app, model, selected) {
  const entry = selected < 0 ? undefined : model.entries[selected];
  if (entry === undefined || !(isChange(entry) || app.store.requests.value("writes", entry) > 0)) return new Set();
  const revision = isChange(entry) ? app.store.changes.value("revision", rowOf(entry)) : app.store.requests.value("rev", entry);
  return new Set(deliveredTo(app, revision).map((one) => one.request));
}

/** @param {App} app @param {HTMLCanvasElement} canvas */
function listen(app, canvas) {
  canvas.addEventListener("wheel", (event) => {
    const model = modelOf(app);
    const view = viewport(model);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(app, event.deltaY > 0 ? 1.25 : 0.8, placeAt(canvas, view, event.offsetX));
    } else if (event.deltaX || event.shiftKey) {
      event.preventDefault();
      const by = ((event.deltaX || event.deltaY) * (view.to - view.from)) / canvas.clientWidth;
      move(app, model, view.from + by, view.to + by);
    }
  }, { passive: false });
  canvas.addEventListener("pointermove", (event) => {
    const found = event.buttons ? -1 : entryAt(app, canvas, event);
    if (found === state.hovered) return;
    state.hovered = found;
    canvas.title = found < 0 ? "" : lineOf(app, modelOf(app).entries[found]);
    draw(app);
  });
  canvas.addEventListener("pointerdown", (event) => startDrag(app, canvas, event));
  canvas.addEventListener("dblclick", (event) => {
    const index = entryAt(app, canvas, event);
    if (index >= 0) openEntry(app, modelOf(app), index);
  });
}

/** A drag selects a range, a click an entry; one that the browser takes for a scroll selects nothing. @param {App} app @param {HTMLCanvasElement} canvas @param {PointerEvent} event */
function startDrag(app, canvas, event) {
  if (event.button !== 0) return;
  const start = event.offsetX;
  const moved = (/** @type {PointerEvent} */ at) => {
    const view = viewport(modelOf(app));
    state.drag = Math.abs(at.offsetX - start) < 4 ? null : [placeAt(canvas, view, start), placeAt(canvas, view, at.offsetX)];
    draw(app);
  };
  canvas.setPointerCapture(event.pointerId);
  const finish = (/** @type {PointerEvent} */ at) => {
    canvas.removeEventListener("pointermove", moved);
    canvas.removeEventListener("pointerup", finish);
    canvas.removeEventListener("pointercancel", finish);
    const model = modelOf(app);
    if (at.type === "pointerup" && state.drag) setRange(app, model.revisionAt(state.drag[0]) + 1, model.revisionAt(state.drag[1]));
    else if (at.type === "pointerup") click(app, canvas, at);
    state.drag = null;
    app.render();
  };
  canvas.addEventListener("pointermove", moved);
  canvas.addEventListener("pointerup", finish);
  canvas.addEventListener("pointercancel", finish);
}

/** @param {App} app @param {HTMLCanvasElement} canvas @param {PointerEvent} event */
function click(app, canvas, event) {
  const model = modelOf(app);
  const index = entryAt(app, canvas, event);
  if (index >= 0 && event.shiftKey && compareWith(app, model, index)) return;
  if (index >= 0) select(app, model, index);
  else if (event.offsetY < HEAD_HEIGHT) app.setCursor(model.revisionAt(placeAt(canvas, viewport(model), event.offsetX)));
}

/** @param {HTMLCanvasElement} canvas @param {{from: number, to: number}} view @param {number} x */
function placeAt(canvas, view, x) {
  return view.from + ((x - LABEL_WIDTH) * (view.to - view.from)) / Math.max(1, canvas.clientWidth - LABEL_WIDTH);
}

/** The entry below the pointer, or -1. @param {App} app @param {HTMLCanvasElement} canvas @param {MouseEvent} event */
function entryAt(app, canvas, event) {
  const model = modelOf(app);
  const view = viewport(model);
  const lane = layout(model).tops.findIndex((top) => event.offsetY >= top && event.offsetY < top + LANE_HEIGHT);
  if (lane < 0 || event.offsetX < LABEL_WIDTH) return -1;
  const scale = (canvas.clientWidth - LABEL_WIDTH) / (view.to - view.from);
  const place = placeAt(canvas, view, event.offsetX);
  let best = -1;
  let distance = REACH / scale;
  for (let index = model.indexAt(place - REACH / scale); index < model.size && model.xs[index] <= place + REACH / scale; index++) {
    if (model.laneOf[index] === lane && Math.abs(model.xs[index] - place) < distance) {
      best = index;
      distance = Math.abs(model.xs[index] - place);
    }
  }
  return best;
}

/** @param {TimelineModel} model */
function label(model) {
  const names = model.lanes.slice(0, 8).map((lane) => `${lane.label} ${lane.count}`);
  return `Timeline with ${plural(model.size, "row")} in ${plural(model.lanes.length, "lane")}: ${names.join(", ")}. The table below has the same rows.`;
}

// ---------------------------------------------------------------- table, sentence, findings

/** @param {App} app @param {number} entry */
function lineOf(app, entry) {
  return isChange(entry) ? changeLine(app.store.changes, rowOf(entry)) : requestLine(app.store.requests, entry);
}

/** @param {App} app @param {TimelineModel} model @returns {import("fk/table").Column[]} */
function columns(app, model) {
  const { requests, changes } = app.store;
  const pick = (/** @type {(row: number) => any} */ ofRequest, /** @type {(row: number) => any} */ ofChange) => (/** @type {number} */ index) => {
    const entry = model.entries[index];
    return isChange(entry) ? ofChange(rowOf(entry)) : ofRequest(entry);
  };
  return [
    { title: "", width: "24px", class: "sign", cell: pick((row) => (requests.value("code", row) >= 400 ? "✕" : SHAPES[markKind(requests.text("verb", row), requests.text("resource", row))]), (row) => SHAPES[changeKind(changes.text("type", row), changes.text("sub", row))]) },
    { title: "#", width: "58px", class: "number", cell: pick((row) => requests.value("number", row), () => "") },
    { title: "time", width: "104px", class: "mono", min: 700, help: "the cluster's clock, UTC", cell: pick((row) => timeCell(requests.value("time", row)), (row) => timeCell(changes.value("time", row))) },
    { title: "actor", width: "minmax(90px, 1fr)", cell: pick((row) => actorCell(app, requests.text("actor", row), requests.text("side", row)), (row) => actorCell(app, changes.text("actor", row), changes.text("side", row)) || visible(changes.text("reason", row))) },
    { title: "verb", width: "74px", cell: pick((row) => visible(requests.text("verb", row)), (row) => visible(changes.text("type", row).toLowerCase())) },
    { title: "resource", width: "minmax(90px, 1.1fr)", cell: pick((row) => visible(requests.text("resource", row) || requests.text("path", row)), (row) => visible(changes.text("resource", row))) },
    { title: "namespace/name", width: "minmax(90px, 1.6fr)", min: 420, cell: pick((row) => visible(nameOf(requests, row)), (row) => visible(nameOf(changes, row))) },
    { title: "code", width: "48px", class: "number", cell: pick((row) => html`<span class=${codeClass(requests.value("code", row))}>${requests.value("code", row) || "…"}</span>`, () => "") },
    { title: "ms", width: "56px", class: "number", min: 620, cell: pick((row) => milliseconds(requests.value("ms", row)), () => "") },
    { title: "→ rev", width: "84px", class: "number", cell: pick((row) => wroteText(requests, row), (row) => digits(changes.value("revision", row))) },
    { title: "changed", width: "minmax(60px, 1fr)", min: 900, cell: pick((row) => app.paths.text(requests.value("writes", row) ? changes.find(requests.value("rev", row)) : -1), (row) => app.paths.text(row)) },
  ];
}

/** One sentence about the change at the cursor: Explain. @param {App} app */
function sentence(app) {
  if (app.at === null) return nothing;
  const row = app.store.changes.find(app.at);
  if (row < 0) return nothing;
  const told = app.store.changes.text("sentence", row);
  return html`<p class="sentence" role="status">${told ? visible(told) : changeLine(app.store.changes, row)}</p>`;
}

/** @param {App} app */
function findings(app) {
  return html`<div class="panel-head"><h2>Findings (${count(app.findings.length)})</h2></div>
    <p class="muted">Patterns that are often mistakes. They are hints, not verdicts.</p>
    <ul class="findings">${app.findings.map((one) => html`<li class="finding"><span class="tag">${visible(one.kind)}</span>
      <button type="button" class="link" @click=${() => openFinding(app, one)}>${visible(one.sentence)}</button></li>`)}</ul>`;
}

/** @param {App} app @param {any} one */
function openFinding(app, one) {
  if (one.name && one.resource) return app.openObject({ resource: one.resource.split("/")[0], namespace: one.namespace, name: one.name }, { tab: "history", path: one.path || undefined });
  const [first] = one.rows?.requests ?? [];
  if (first !== undefined) return app.open("requests", [String(first)]);
  return app.open("controls");
}
