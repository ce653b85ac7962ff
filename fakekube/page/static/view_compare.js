/** Compares two revisions: objects that were added, removed and changed, with fields, values, and who wrote them. */

import { html, live, nothing } from "lit";
import { copy } from "fk/dialog";
import { visible } from "fk/escape";
import { duration, inline, plural, qualified } from "fk/format";
import { Lazy } from "fk/lazy";
import { digits, revisionOf } from "fk/revisions";
import { failed } from "fk/view_requests";

/** @typedef {import("fk/app").App} App */

/** @type {Lazy | undefined} */
let compared;
/** The objects of each sort, and the fields of an object, that are shown. */
const MAX_ROWS = 500;
const MAX_FIELDS = 50;

/** @type {import("fk/app").View} */
export const compareView = {
  render(app) {
    compared ??= new Lazy(app, 10);
    const range = app.range;
    const from = app.route.params.from ?? (range ? digits(range[0]) : "");
    const to = app.route.params.to ?? (range ? digits(range[1]) : digits(app.newest));
    const known = from && to ? compared.get(`${from}..${to}`, () => app.provider.compare(from, to)) : undefined;
    const writers = Object.keys(known?.value?.actors ?? {}).sort();
    return html`<div class="compare pad">
      <form class="toolbar" @submit=${(/** @type {Event} */ event) => submit(app, event)}>
        <label>from <input name="from" inputmode="numeric" pattern="[0-9]+" required .value=${from}></label>
        <label>to <input name="to" inputmode="numeric" pattern="[0-9]+" required .value=${to}></label>
        <button type="submit" class="primary">Compare</button>
        <button type="button" @click=${() => app.set({ from: to, to: from })}>Swap</button>
        <label>only actor <select @change=${(/** @type {any} */ event) => app.set({ actor: event.target.value || undefined })}>${["", ...writers].map((name) => html`<option value=${name} .selected=${live(name === (app.route.params.actor ?? ""))}>${name ? visible(name) : "all"}</option>`)}</select></label>
        <label>only path <input type="text" .value=${app.route.params.path ?? ""} @change=${(/** @type {any} */ event) => app.set({ path: event.target.value || undefined })}></label>
      </form>
      ${from && to ? result(app, from, to) : html`<p class="muted">Two revisions are needed: select a range in the Timeline, or type them.</p>`}
    </div>`;
  },
  focusTarget: () => document.querySelector(".compare input"),
};

/** @param {App} app @param {Event} event */
function submit(app, event) {
  event.preventDefault();
  const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
  app.set({ from: String(data.get("from")), to: String(data.get("to")) });
}

/** @param {App} app @param {string} from @param {string} to */
function result(app, from, to) {
  const key = `${from}..${to}`;
  const entry = /** @type {Lazy} */ (compared).get(key, () => app.provider.compare(from, to));
  if (entry.state === "loading") return html`<p class="muted">Comparing …</p>`;
  if (entry.state === "failed") return failed(entry, () => compared?.forget(key));
  const value = narrowed(entry.value, app.route.params.path ?? "", app.route.params.actor ?? "");
  const { added, removed, changed, reverted = [], actors = {} } = value;
  const who = Object.entries(actors).map(([name, writes]) => `${name} ${writes}`).join(", ");
  const size = added.length + removed.length + changed.length;
  return html`<p class="summary">${plural(Number(BigInt(to) > BigInt(from) ? BigInt(to) - BigInt(from) : BigInt(from) - BigInt(to)), "revision")}${span(app, from, to)}${who ? html`, by ${visible(who)}` : nothing}</p>
    <p><strong>+ ${added.length} added</strong> · <strong>− ${removed.length} removed</strong> · <strong>~ ${changed.length} changed</strong>${reverted.length ? html` · ${plural(reverted.length, "object")} written and equal again` : nothing}
      <button type="button" @click=${() => copy(app, markdown(value), "Copied as Markdown")}>Copy as Markdown</button></p>
    ${size ? nothing : html`<p class="muted">Nothing differs.${reverted.length ? html` What changed in between was reverted: ${reverted.map((/** @type {any} */ one) => objectLink(app, one))}` : nothing}</p>`}
    <table class="plain compare-table"><caption class="visually-hidden">Differences</caption><thead><tr><th scope="col"></th><th scope="col">object</th><th scope="col">what</th></tr></thead><tbody>
      ${changed.slice(0, MAX_ROWS).map((/** @type {any} */ one) => html`<tr><td class="sign">~</td><th scope="row">${objectLink(app, one)}</th><td>${fields(app, one)}</td></tr>`)}
      ${added.slice(0, MAX_ROWS).map((/** @type {any} */ one) => html`<tr><td class="sign">+</td><th scope="row">${objectLink(app, one)}</th><td>created at ${visible(one.revision)}${one.actor ? html` by ${visible(one.actor)}` : nothing}</td></tr>`)}
      ${removed.slice(0, MAX_ROWS).map((/** @type {any} */ one) => html`<tr><td class="sign">−</td><th scope="row">${objectLink(app, one)}</th><td>deleted at ${visible(one.revision)}${one.actor ? html` by ${visible(one.actor)}` : nothing}</td></tr>`)}
    </tbody></table>
    ${value.more || [changed, added, removed].some((one) => one.length > MAX_ROWS) ? html`<p class="muted">There are more objects than are shown; a filter of paths or a smaller range shows them.</p>` : nothing}`;
}

/** The time of the clock between two revisions, as far as their changes are known. @param {App} app @param {string} from @param {string} to */
function span(app, from, to) {
  const { changes } = app.store;
  const [first, last] = [from, to].map((one) => changes.find(revisionOf(one)));
  if (first < 0 || last < 0) return "";
  return `, ${duration(Math.abs(changes.value("time", last) - changes.value("time", first)))} of the clock`;
}

/** What has a path, and was written by an actor last; "" stands for all. @param {any} value @param {string} path @param {string} actor */
function narrowed(value, path, actor) {
  const fits = (/** @type {any} */ part) => (!path || part.path.includes(path)) && (!actor || part.actor === actor);
  const whole = (/** @type {any[]} */ objects) => (path ? [] : objects.filter((one) => !actor || one.actor === actor));
  const changed = value.changed.map((/** @type {any} */ one) => ({ ...one, changed: one.changed.filter(fits) }));
  return { ...value, added: whole(value.added), removed: whole(value.removed), changed: changed.filter((/** @type {any} */ one) => one.changed.length) };
}

/** @param {App} app @param {any} one */
function objectLink(app, one) {
  return html`<button type="button" class="link" @click=${() => app.openObject(one, { tab: "history" })}>${visible(one.kind ?? one.resource)} ${visible(qualified(one.namespace, one.name))}</button> `;
}

/** @param {App} app @param {any} one */
function fields(app, one) {
  return html`<ul class="fields-list">${one.changed.slice(0, MAX_FIELDS).map((/** @type {any} */ part) => html`<li><button type="button" class="link" @click=${() => app.openObject(one, { tab: "history", path: part.path })}><code>${visible(part.path)}</code></button>
    <span class="old">${visible(inline(part.old))}</span> → <span class="new">${visible(inline(part.new))}</span>
    <span class="muted">${part.actor ? visible(part.actor) : ""}${part.writes > 1 ? `, ${plural(part.writes, "write")} between` : ""}</span></li>`)}${one.changed.length > MAX_FIELDS ? html`<li class="muted">and ${plural(one.changed.length - MAX_FIELDS, "field")} more</li>` : nothing}</ul>`;
}

/** @param {any} value */
function markdown({ added, removed, changed }) {
  const cell = (/** @type {unknown} */ text) => String(text).replaceAll("|", "\\|").replaceAll("\n", " ");
  const name = (/** @type {any} */ one) => cell(`${one.kind ?? one.resource} ${qualified(one.namespace, one.name)}`);
  return ["| | object | what |", "|---|---|---|",
    ...changed.map((/** @type {any} */ one) => `| ~ | ${name(one)} | ${cell(one.changed.map((/** @type {any} */ part) => `${part.path} ${inline(part.old)} → ${inline(part.new)}`).join("; "))} |`),
    ...added.map((/** @type {any} */ one) => `| + | ${name(one)} | created at ${one.revision} |`),
    ...removed.map((/** @type {any} */ one) => `| - | ${name(one)} | deleted at ${one.revision} |`)].join("\n");
}
