/** The Objects view: a tree of owners, or lists by kind or flat; and the object of the address beside it. */

import { html, live, nothing } from "lit";
import { compileFilter, parseFilter, withTerm } from "fk/filter";
import { visible } from "fk/escape";
import { focusPanel } from "fk/focus";
import { count, duration } from "fk/format";
import { begin } from "fk/measure";
import { objectPanel } from "fk/object_panel";
import { digits } from "fk/revisions";
import { Grid } from "fk/table";

/** @typedef {import("fk/app").App} App */
/** @typedef {{row: number, level: number, children: number, open: boolean, group: string}} Line a row of -1 is a group */

const grid = new Grid();
/** Rows that were opened or closed by hand, by uid or group. @type {Map<string, boolean>} */
const toggled = new Map();
/** The place of the selection, if it is a group or the object is not in the address. */
let active = -1;
/** @type {{key: string, lines: Line[]}} */
let cached = { key: "", lines: [] };

const MANY_CHILDREN = 200;
const CHIPS = [
  ["not healthy", "health:bad,waiting"],
  ["bad only", "health:bad"],
  ["mine", "-own:true"],
];

/** @type {import("fk/app").View} */
export const objectsView = {
  render(app) {
    grid.onResize = () => app.render();
    const table = app.objects.current;
    if (!table) return html`<p class="muted pad">${app.objects.problem ? html`<span class="error">${visible(app.objects.problem)}</span> <button type="button" @click=${() => app.objects.reset()}>Retry</button>` : "Reading the objects …"}</p>`;
    const lines = linesOf(app, table);
    return html`${toolbar(app, table, lines)}${grid.template({
      label: app.at === null ? "Objects" : `Objects at revision ${digits(app.at)}`,
      count: lines.length,
      columns: columns(app, table, lines),
      active: activeLine(app, table, lines),
      onActive: (index) => select(app, table, lines, index),
      onOpen: (index) => (lines[index].row < 0 ? toggle(app, table, lines[index]) : focusPanel(app)),
      onKey: (index, event) => treeKey(app, table, lines, index, event),
      rowClass: (index) => ({ group: lines[index].row < 0, deleting: lines[index].row >= 0 && table.value("deleting", lines[index].row) === 1 }),
      tree: mode(app) === "flat" ? undefined : (index) => ({ level: lines[index].level, expanded: lines[index].children ? lines[index].open : undefined }),
      address: app.route.parts.length >= 3 ? app.route.parts.join("/") : undefined,
      empty: html`<p>No object matches <code>${visible(app.query)}</code>. ${count(table.count)} objects without it.</p><p><button type="button" @click=${() => app.setQuery("")}>Show all</button></p>`,
    })}`;
  },
  panel: (app) => (app.route.parts.length >= 3 ? objectPanel(app, idOf(app.route.parts)) : undefined),
  focusTarget: () => grid.element,
};

/** @param {string[]} parts */
function idOf([resource, namespace, ...name]) {
  return { resource, namespace: namespace === "-" ? "" : namespace, name: name.join("/") };
}

/** @param {App} app */
function mode(app) {
  const by = app.route.params.by;
  return by === "kind" || by === "flat" ? by : "owner";
}

// ---------------------------------------------------------------- lines

/** @param {App} app @param {import("fk/store").Table} table */
function linesOf(app, table) {
  const range = app.range;
  const key = [app.objects.version, table.version, mode(app), app.query, app.route.params.range ?? "", [...toggled].join(";")].join("|");
  if (cached.key === key && cachedTable === table) return cached.lines;
  const passes = compileFilter(objectFilter(app.query), table);
  const { revision } = table.columns;
  const shown = (/** @type {number} */ row) => passes(row) && (!range || (revision[row] >= range[0] && revision[row] <= range[1]));
  cached = { key, lines: { owner: byOwner, kind: byKind, flat }[mode(app)](app, table, shown) };
  cachedTable = table;
  return cached.lines;
}

/** @type {import("fk/store").Table | undefined} */
let cachedTable;

/** The terms that say something about objects. @param {string} query */
function objectFilter(query) {
  const { terms } = parseFilter(query);
  const keys = new Set(["actor", "resource", "kind", "ns", "name", "rev", "health", "own"]);
  return { terms: terms.filter((one) => (one.key === "" ? true : keys.has(one.key)) && !(one.key === "own" && /reads|writes/.test(one.values[0]))), error: "" };
}

/** @param {App} app @param {import("fk/store").Table} table @param {(row: number) => boolean} shown @returns {Line[]} */
function byOwner(app, table, shown) {
  const { roots, children } = app.objects.forest;
  const visibleRows = new Uint8Array(table.count);
  const mark = (/** @type {number} */ row) => {
    let any = shown(row);
    for (const child of children.get(row) ?? []) any = mark(child) || any;
    visibleRows[row] = any ? 1 : 0;
    return any;
  };
  for (const row of roots) mark(row);
  /** @type {Line[]} */
  const lines = [];
  const add = (/** @type {number} */ row, /** @type {number} */ level) => {
    if (!visibleRows[row]) return;
    const inner = (children.get(row) ?? []).filter((child) => visibleRows[child]);
    const open = toggled.get(table.text("uid", row)) ?? inner.length <= MANY_CHILDREN;
    lines.push({ row, level, children: inner.length, open, group: "" });
    if (open) for (const child of sorted(table, inner)) add(child, level + 1);
  };
  for (const row of sorted(table, roots.filter((one) => visibleRows[one]))) add(row, 1);
  return lines;
}

/** @param {App} _app @param {import("fk/store").Table} table @param {(row: number) => boolean} shown @returns {Line[]} */
function byKind(_app, table, shown) {
  /** @type {Map<string, number[]>} */
  const groups = new Map();
  for (let row = 0; row < table.count; row++) {
    if (!shown(row)) continue;
    const resource = table.text("resource", row);
    const rows = groups.get(resource);
    if (rows) rows.push(row);
    else groups.set(resource, [row]);
  }
  return [...groups.keys()].sort().flatMap((group) => {
    const rows = sorted(table, /** @type {number[]} */ (groups.get(group)));
    const open = toggled.get(group) ?? rows.length <= 20;
    return [{ row: -1, level: 1, children: rows.length, open, group }, ...(open ? rows.map((row) => ({ row, level: 2, children: 0, open: false, group: "" })) : [])];
  });
}

/** @param {App} _app @param {import("fk/store").Table} table @param {(row: number) => boolean} shown @returns {Line[]} */
function flat(_app, table, shown) {
  const rows = Array.from({ length: table.count }, (_, row) => row).filter(shown);
  return sorted(table, rows).map((row) => ({ row, level: 1, children: 0, open: false, group: "" }));
}

/** By namespace, kind and name; a sort key is built once for each row. @param {import("fk/store").Table} table @param {number[]} rows */
function sorted(table, rows) {
  if (rows.length < 2) return rows;
  const keyed = rows.map((row) => /** @type {[string, number]} */ ([`${weight(table.text("kind", row))}${table.text("namespace", row)}\u0000${table.text("kind", row)}\u0000${table.text("name", row)}`, row]));
  return keyed.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0)).map(([, row]) => row);
}

/** Workloads come first, what every cluster has comes last. */
const FIRST = new Set(["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "Pod", "Service", "Ingress"]);
const LAST = new Set(["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "APIService", "FlowSchema", "PriorityLevelConfiguration", "PriorityClass", "Lease", "Event", "ServiceAccount", "Node", "Namespace", "CSINode", "ServiceCIDR", "IPAddress"]);

/** @param {string} kind */
function weight(kind) {
  return FIRST.has(kind) ? "0" : LAST.has(kind) ? "2" : "1";
}

// ---------------------------------------------------------------- table

/** @param {App} app @param {import("fk/store").Table} table @param {Line[]} lines @returns {import("fk/table").Column[]} */
function columns(app, table, lines) {
  const now = Date.parse(app.clock?.now ?? "") / 1000 || (table.count ? Math.max(...Array.from(table.columns.created.subarray(0, Math.min(table.count, 5000))).filter(Number.isFinite)) : 0);
  const text = (/** @type {string} */ name) => (/** @type {number} */ index) => (lines[index].row < 0 ? "" : visible(table.text(name, lines[index].row)));
  return [
    { title: "Object", width: "minmax(160px, 2.4fr)", class: "object", cell: (index) => objectCell(app, table, lines[index]) },
    { title: "Namespace", width: "minmax(70px, 0.8fr)", min: 620, cell: text("namespace") },
    { title: "State", width: "minmax(90px, 1.2fr)", cell: (index) => stateCell(table, lines[index]) },
    { title: "Rev", width: "64px", class: "number", min: 420, cell: (index) => (lines[index].row < 0 ? "" : digits(table.value("revision", lines[index].row))) },
    { title: "Last change by", width: "minmax(80px, 1fr)", min: 760, cell: text("actor") },
    { title: "Age", width: "52px", class: "number", min: 520, cell: (index) => (lines[index].row < 0 ? "" : duration(Math.max(0, now - table.value("created", lines[index].row)))) },
  ];
}

/** @param {App} app @param {import("fk/store").Table} table @param {Line} line */
function objectCell(app, table, line) {
  const indent = html`<span class="indent" data-level=${line.level}></span>`;
  const twist = line.children
    ? html`<button type="button" class="twist" tabindex="-1" aria-label=${line.open ? "Close" : "Open"} @click=${() => toggle(app, table, line)}>${line.open ? "▾" : "▸"}</button>`
    : html`<span class="twist"></span>`;
  if (line.row < 0) return html`${indent}${twist}<strong>${visible(line.group)}</strong> <span class="muted">${count(line.children)}</span>`;
  return html`${indent}${twist}<span class="kind">${visible(table.text("kind", line.row))}</span> ${visible(table.text("name", line.row))}${line.children && !line.open ? html` <span class="muted">(${count(line.children)})</span>` : nothing}${table.value("deleting", line.row) ? html` <span class="tag">deleting</span>` : nothing}`;
}

const SIGNS = /** @type {Record<string, string>} */ ({ ok: "●", waiting: "◌", bad: "▲", unknown: "·" });

/** @param {import("fk/store").Table} table @param {Line} line */
function stateCell(table, line) {
  if (line.row < 0) return "";
  const state = table.text("state", line.row) || "unknown";
  const text = table.text("text", line.row);
  return html`<span class="state ${state in SIGNS ? state : "unknown"}"><span aria-hidden="true">${SIGNS[state] ?? "·"}</span> ${visible(text || (state === "unknown" ? "–" : state))}</span>`;
}

/** @param {App} app @param {import("fk/store").Table} table @param {Line[]} lines */
function activeLine(app, table, lines) {
  const { parts } = app.route;
  if (parts.length < 3) return Math.min(active, lines.length - 1);
  const id = idOf(parts);
  const fits = (/** @type {Line | undefined} */ line) => line !== undefined && line.row >= 0 && table.text("name", line.row) === id.name && table.text("resource", line.row) === id.resource && table.text("namespace", line.row) === id.namespace;
  if (!fits(lines[active])) active = lines.findIndex(fits);
  return active;
}

/** @param {App} app @param {import("fk/store").Table} table @param {Line[]} lines @param {number} index */
function select(app, table, lines, index) {
  active = index;
  const { row } = lines[index];
  if (row < 0) {
    app.open("objects", [], viewParams(app));
    app.render();
    return;
  }
  begin("fk:select");
  app.openObject({ resource: table.text("resource", row), namespace: table.text("namespace", row), name: table.text("name", row) }, { ...viewParams(app), tab: app.route.params.tab });
}

/** @param {App} app */
function viewParams(app) {
  return { by: app.route.params.by };
}

/** @param {App} app @param {import("fk/store").Table} table @param {Line} line */
function toggle(app, table, line) {
  if (!line.children) return;
  toggled.set(line.row < 0 ? line.group : table.text("uid", line.row), !line.open);
  app.render();
}

/** @param {App} app @param {import("fk/store").Table} table @param {Line[]} lines @param {number} index @param {KeyboardEvent} event */
function treeKey(app, table, lines, index, event) {
  const line = lines[index];
  if (event.key === "ArrowRight" && line.children) {
    if (!line.open) toggle(app, table, line);
    else select(app, table, lines, index + 1);
    return true;
  }
  if (event.key === "ArrowLeft" && mode(app) !== "flat") {
    if (line.children && line.open) toggle(app, table, line);
    else {
      const parent = lines.slice(0, index).findLastIndex((one) => one.level < line.level);
      if (parent >= 0) select(app, table, lines, parent);
    }
    return true;
  }
  if (event.key === "*") {
    for (const one of lines) if (one.children) toggled.set(one.row < 0 ? one.group : table.text("uid", one.row), true);
    app.render();
    return true;
  }
  return false;
}

/** @param {App} app @param {import("fk/store").Table} table @param {Line[]} lines */
function toolbar(app, table, lines) {
  const objects = lines.filter((line) => line.row >= 0).length;
  const by = mode(app);
  return html`<div class="toolbar" role="toolbar" aria-label="Objects">
    <label>by <select @change=${(/** @type {Event} */ event) => app.set({ by: /** @type {HTMLSelectElement} */ (event.target).value })}>
      ${["owner", "kind", "flat"].map((one) => html`<option value=${one} .selected=${live(one === by)}>${one}</option>`)}</select></label>
    ${CHIPS.map(([title, added]) => html`<button type="button" class="chip" aria-pressed=${app.query.includes(added) ? "true" : "false"} @click=${() => app.setQuery(app.query.includes(added) ? app.query.replace(added, "").trim() : withTerm(app.query, added))}>${title}</button>`)}
    ${app.objects.isCurrent ? nothing : html`<span class="muted">reading …</span>`}
    <span class="spacer"></span><span class="count">${count(objects)} of ${count(table.count)} objects</span>
  </div>`;
}
