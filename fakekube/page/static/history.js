/** History: one row a version, the difference of two versions, and the values of one path over all versions. */

import { html, live, nothing } from "lit";
import { copyMenu } from "fk/dialog";
import { diff, withoutNoise } from "fk/diff";
import { differencesTable } from "fk/differences";
import { visible } from "fk/escape";
import { inline, time } from "fk/format";
import { Lazy } from "fk/lazy";
import { isWithin, valueAt } from "fk/paths";
import { digits, revisionOf } from "fk/revisions";
import { parseRange } from "fk/router";
import { actorCell } from "fk/rows";

/** @typedef {import("fk/app").App} App */
/** @typedef {import("fk/provider_live").Version & {number: number, before: any, differences: import("fk/diff").Difference[]}} Row */

/** @type {Lazy | undefined} */
let histories;
let raw = false;
/** @type {Map<string, Row[]>} the last rows of each object, shown while newer ones are read */
const shownRows = new Map();

/** @param {App} app @param {import("fk/provider_live").ObjectId} id */
export function historyTab(app, id) {
  histories ??= new Lazy(app, 20);
  const key = Object.values(id).join("|");
  const version = `${key}|${lastChange(app, id)}`;
  const entry = histories.get(version, async () => rowsOf(await app.provider.history(id)));
  if (entry.state === "failed") return html`<p class="error" role="alert">${visible(entry.error?.message)} <button type="button" @click=${() => histories?.forget(version)}>Retry</button></p>`;
  if (entry.state === "done") shownRows.set(key, entry.value);
  const rows = shownRows.get(key);
  if (!rows) return html`<p class="muted">Reading …</p>`;
  const until = app.at;
  return body(app, id, until === null ? rows : rows.filter((row) => row.number <= until));
}

/** @param {App} app @param {import("fk/provider_live").ObjectId} id */
function lastChange(app, id) {
  const { changes } = app.store;
  for (let row = changes.count - 1; row >= 0; row--) if (changes.text("name", row) === id.name && changes.text("resource", row) === id.resource && changes.text("namespace", row) === id.namespace) return changes.value("revision", row);
  return 0;
}

/** @param {import("fk/provider_live").Version[]} versions @returns {Row[]} */
export function rowsOf(versions) {
  return versions.map((one, index) => {
    const before = index && versions[index - 1].type !== "DELETED" ? versions[index - 1].object : undefined;
    const differences = before && one.type !== "DELETED" ? diff(before, one.object) : [];
    return { ...one, number: revisionOf(one.revision), before, differences };
  });
}

/** @param {App} app @param {import("fk/provider_live").ObjectId} id @param {Row[]} rows */
function body(app, id, rows) {
  const path = app.route.params.path ?? "";
  const shown = rows.filter((row) => !path || row.type !== "MODIFIED" || row.differences.some((one) => touches(one.path, path)));
  const range = parseRange(app.route.params.versions);
  const [from, to] = range ? range.map(revisionOf) : [rows.at(-2)?.number ?? 0, rows.at(-1)?.number ?? 0];
  return html`<div class="toolbar">
      <label>versions <select aria-label="Older version" @change=${(/** @type {any} */ event) => app.set({ versions: `${event.target.value}..${digits(to)}` })}>${options(rows, from)}</select></label> …
      <select aria-label="Newer version" @change=${(/** @type {any} */ event) => app.set({ versions: `${digits(from)}..${event.target.value}` })}>${options(rows, to)}</select>
      <label>only path <input type="text" size="24" spellcheck="false" .value=${path} placeholder="spec.replicas" @change=${(/** @type {any} */ event) => app.set({ path: event.target.value || undefined })}></label>
      <label class="check"><input type="checkbox" .checked=${raw} @change=${() => { raw = !raw; app.render(); }}> raw</label></div>
    ${path ? fieldStrip(app, rows, path) : nothing}
    ${versionTable(app, shown, path, from, to)}
    ${versionDiff(app, id, rows, from, to)}`;
}

/** @param {Row[]} rows @param {number} chosen */
function options(rows, chosen) {
  return rows.map((row) => html`<option value=${digits(row.number)} .selected=${live(row.number === chosen)}>${digits(row.number)}</option>`);
}

/** Whether a changed path says something about another one. @param {string} changed @param {string} path */
export function touches(changed, path) {
  return isWithin(changed, path) || isWithin(path, changed);
}

/** @param {App} app @param {Row[]} rows @param {string} path @param {number} from @param {number} to */
function versionTable(app, rows, path, from, to) {
  const newest = [...rows].reverse().slice(0, 300);
  return html`<table class="plain versions"><caption class="visually-hidden">Versions, newest first</caption>
    <thead><tr><th scope="col">rev</th><th scope="col">time</th><th scope="col">by</th><th scope="col">request</th><th scope="col">changed</th></tr></thead>
    <tbody>${newest.map((row) => html`<tr class=${row.number === to ? "to" : row.number === from ? "from" : ""}>
      <th scope="row"><button type="button" class="link" title="Show what this version changed" @click=${() => app.set({ versions: `${previous(rows, row)}..${digits(row.number)}` })}>${digits(row.number)}</button></th>
      <td>${time(timeOf(app, row))}</td><td>${actorCell(app, row.actor ?? "", sideOf(app, row))}</td>
      <td>${(row.request ?? -1) >= 0 ? html`<button type="button" class="link" @click=${() => app.open("requests", [String(row.request)])}>#${row.request}</button>` : ""}</td>
      <td>${changedCell(row, path)}</td></tr>`)}</tbody></table>${rows.length > 300 ? html`<p class="muted">and ${rows.length - 300} older versions</p>` : nothing}`;
}

/** @param {Row[]} rows @param {Row} row */
function previous(rows, row) {
  const index = rows.indexOf(row);
  return digits(index > 0 ? rows[index - 1].number : row.number);
}

/** @param {Row} row @param {string} path */
function changedCell(row, path) {
  if (row.type === "ADDED") return html`<span class="tag">created</span>`;
  if (row.type === "DELETED") return html`<span class="tag">deleted</span>`;
  const shown = (raw ? row.differences : withoutNoise(row.differences)).filter((one) => !path || touches(one.path, path));
  if (!row.before) return html`<span class="muted">the oldest version that is kept</span>`;
  if (!shown.length) return html`<span class="muted">nothing</span>`;
  const [first] = shown;
  return html`<code>${visible(first.path)}</code> ${small(first)}${shown.length > 1 ? html` <span class="muted">+${shown.length - 1}</span>` : nothing}`;
}

/** @param {import("fk/diff").Difference} one */
function small(one) {
  const side = (/** @type {"old" | "new"} */ name) => (one[name] === undefined ? "–" : visible(inline(one[name], 40)));
  return html`<span class="old">${side("old")}</span> → <span class="new">${side("new")}</span>`;
}

/** The values of a path over all versions: one cell for each value. @param {App} app @param {Row[]} rows @param {string} path */
function fieldStrip(app, rows, path) {
  /** @type {{text: string, row: Row}[]} */
  const cells = [];
  for (const row of rows) {
    const value = row.type === "DELETED" ? undefined : valueAt(row.object, path);
    const text = value === undefined ? "–" : inline(value, 24);
    if (!cells.length || cells[cells.length - 1].text !== text) cells.push({ text, row });
  }
  return html`<div class="strip" role="list" aria-label="Values of ${visible(path)}"><code>${visible(path)}</code>${cells.slice(-60).map(({ text, row }) => html`<span role="listitem"><button type="button" title=${visible(`revision ${digits(row.number)} by ${row.actor ?? ""}`)} @click=${() => app.setCursor(row.number)}>${visible(text)}</button></span>`)}</div>`;
}

/** @param {App} app @param {import("fk/provider_live").ObjectId} id @param {Row[]} rows @param {number} from @param {number} to */
function versionDiff(app, id, rows, from, to) {
  const before = rows.find((row) => row.number === from);
  const after = rows.find((row) => row.number === to);
  if (!before || !after || before === after) return nothing;
  const change = { before: before.type === "DELETED" ? null : before.object, after: after.type === "DELETED" ? null : after.object };
  const text = () => diff(change.before ?? undefined, change.after ?? undefined).map((one) => `${one.path}: ${inline(one.old)} → ${inline(one.new)}`).join("\n");
  return html`<section class="change"><h3>${digits(from)} → ${digits(to)} ${copyMenu(app, [["differences", text]])}</h3>${differencesTable(app, change, id, { raw })}</section>`;
}

/** The precise time of a version, if its row is kept. @param {App} app @param {Row} row */
function timeOf(app, row) {
  const at = app.store.changes.find(row.number);
  return at >= 0 ? app.store.changes.value("time", at) : Date.parse(row.time) / 1000;
}

/** @param {App} app @param {Row} row */
function sideOf(app, row) {
  const at = app.store.changes.find(row.number);
  return at >= 0 ? app.store.changes.text("side", at) : "";
}
