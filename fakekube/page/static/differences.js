/** Differences of two versions as a table: path, old value, new value; texts of several lines line by line. */

import { stringifyExact } from "fk/exact_json";
import { html, nothing } from "lit";
import { diffLines } from "jsdiff";
import { diff, withoutNoise } from "fk/diff";
import { visible, visibleLines } from "fk/escape";
import { inline } from "fk/format";
import { yamlText } from "fk/yaml_lines";

/**
 * @param {import("fk/app").App} app
 * @param {{before?: any, after?: any, changed?: import("fk/diff").Difference[]}} change
 * @param {import("fk/provider_live").ObjectId | null} id links the paths to the history of the object
 * @param {{raw?: boolean}} [options]
 */
export function differencesTable(app, change, id, { raw = false } = {}) {
  if (!change.before && change.after) return html`<p class="muted">The object is new.</p>`;
  if (change.before && !change.after) return html`<p class="muted">The object was deleted.</p>`;
  const all = diff(change.before, change.after);
  const shown = raw ? all : withoutNoise(all);
  if (!shown.length) return html`<p class="muted">${all.length ? "Only managedFields, resourceVersion and generation differ." : "Nothing differs."}</p>`;
  return html`<table class="plain diff"><caption class="visually-hidden">Changed fields</caption><thead><tr><th scope="col">path</th><th scope="col">old</th><th scope="col">new</th></tr></thead>
    <tbody>${shown.slice(0, 300).map((one) => differenceRow(app, one, id))}</tbody></table>${shown.length > 300 ? html`<p class="muted">and ${shown.length - 300} more fields</p>` : nothing}`;
}

/** @param {import("fk/app").App} app @param {import("fk/diff").Difference} one @param {import("fk/provider_live").ObjectId | null} id */
function differenceRow(app, one, id) {
  const path = id ? html`<button type="button" class="link" title="History of this path" @click=${() => app.openObject(id, { tab: "history", path: one.path })}>${visible(one.path)}</button>` : visible(one.path);
  if (isLong(one.old) || isLong(one.new)) {
    return html`<tr><th scope="row">${path}</th><td colspan="2">${textDiff(one.old, one.new)}</td></tr>`;
  }
  return html`<tr><th scope="row">${path}</th><td class="old">${valueCell(one, "old")}</td><td class="new">${valueCell(one, "new")}</td></tr>`;
}

/** @param {import("fk/diff").Difference} one @param {"old" | "new"} side */
function valueCell(one, side) {
  return Object.hasOwn(one, side) && one[side] !== undefined ? visible(inline(one[side], 200)) : html`<span class="muted">—</span>`;
}

/** @param {unknown} value */
function isLong(value) {
  if (typeof value === "string") return value.includes("\n");
  return typeof value === "object" && value !== null && stringifyExact(value).length > 80;
}

/** @param {unknown} old @param {unknown} now */
function textDiff(old, now) {
  const parts = diffLines(asText(old), asText(now));
  return html`<pre class="line-diff">${parts.map((/** @type {any} */ part) => {
    const lines = part.value.replace(/\n$/, "").split("\n");
    const sign = part.added ? "+" : part.removed ? "-" : " ";
    const shown = sign === " " && lines.length > 6 ? [...lines.slice(0, 2), `… ${lines.length - 4} equal lines`, ...lines.slice(-2)] : lines;
    return html`<span class=${part.added ? "added" : part.removed ? "removed" : "equal"}>${shown.map((/** @type {string} */ line) => `${sign} ${visibleLines(line)}\n`)}</span>`;
  })}</pre>`;
}

/** @param {unknown} value */
function asText(value) {
  if (value === undefined) return "";
  return typeof value === "string" ? value : yamlText(value);
}
