/** Filters with names: those that everybody has, and those that a reader has saved. */

import { html, nothing } from "lit";
import { menu } from "fk/dialog";
import { visible } from "fk/escape";
import { DEFAULT_FILTER, parseFilter } from "fk/filter";
import { MAX_FILTERS, MAX_NAME, MAX_TEXT } from "fk/preferences";

/** @typedef {import("fk/app").App} App */
/** @typedef {import("fk/preferences").NamedFilter} NamedFilter */

/** @type {NamedFilter[]} */
export const PRESET_FILTERS = [
  { name: "defaults", text: DEFAULT_FILTER },
  { name: "everything", text: "" },
  { name: "clients", text: "own:false" },
  { name: "writes", text: "verb:create,update,patch,apply,delete,deletecollection -heartbeats" },
  { name: "errors", text: "code>399" },
  { name: "conflicts", text: "code:409" },
  { name: "faults", text: "fault:*" },
  { name: "slow", text: "ms>100 -verb:watch" },
  { name: "not healthy", text: "health:bad,waiting" },
];

/** The presets, then the saved ones. @param {App} app @returns {NamedFilter[]} */
export function namedFilters(app) {
  return [...PRESET_FILTERS, ...app.preferences.get("filters")];
}

/** Puts a filter in force; a view without one is left for the Timeline. @param {App} app @param {NamedFilter} one */
export function applyFilter(app, { text }) {
  if (!app.isFiltered) app.open("timeline");
  app.setQuery(text);
}

/**
 * Saves the filter in force under a name; an older one of the name is replaced.
 * @param {App} app @param {string} typed
 * @throws {Error} with the reason why it is not saved
 */
export function saveFilter(app, typed) {
  const name = typed.trim();
  const { query } = app;
  if (!name || name.length > MAX_NAME) throw new Error(`A name has 1 to ${MAX_NAME} characters.`);
  if (PRESET_FILTERS.some((one) => one.name === name)) throw new Error(`${name} is the name of a filter that everybody has.`);
  if (query.length > MAX_TEXT) throw new Error(`A saved filter has at most ${MAX_TEXT} characters.`);
  const others = app.preferences.get("filters").filter((one) => one.name !== name);
  if (others.length >= MAX_FILTERS) throw new Error(`${MAX_FILTERS} filters are saved; delete one first.`);
  const problem = app.preferences.change("filters", (saved) => [...saved.filter((one) => one.name !== name), { name, text: query }]);
  if (problem) throw new Error(`The filter is not saved. ${problem}`);
  app.notice(`Saved the filter ${name}.`);
}

/** @param {App} app @param {string} name */
export function deleteFilter(app, name) {
  const problem = app.preferences.change("filters", (saved) => saved.filter((one) => one.name !== name));
  app.notice(problem ? `${name} is not deleted. ${problem}` : `Deleted the filter ${name}.`, problem !== "");
}

/** The menu beside the filter; it shows the name of the filter in force. @param {App} app */
export function savedMenu(app) {
  const query = app.query.trim();
  const current = namedFilters(app).find((one) => one.text.trim() === query)?.name ?? "none";
  const saved = app.preferences.get("filters");
  const entry = (/** @type {NamedFilter} */ one) => html`<button type="button" aria-current=${one.name === current ? "true" : "false"} @click=${() => { applyFilter(app, one); app.focusView(); }}>${visible(one.name)} <code class="muted">${visible(one.text)}</code></button>`;
  return menu("saved", html`saved: ${visible(current)}`, html`${PRESET_FILTERS.map((one) => html`<li>${entry(one)}</li>`)}
    ${saved.map((one) => html`<li class="own">${entry(one)}<button type="button" class="icon" aria-label="Delete ${visible(one.name)}" title="Delete" @click=${() => deleteFilter(app, one.name)}>×</button></li>`)}
    ${saved.some((one) => one.name === current) ? nothing : html`<li class="save"><button type="button" @click=${() => saveDialog(app)}>Save this filter…</button></li>`}`);
}

/** Opens the menu, and moves to its first entry. */
export function openSavedMenu() {
  const element = /** @type {HTMLDetailsElement | null} */ (document.querySelector("details.saved"));
  if (!element) return;
  element.open = true;
  /** @type {HTMLElement | null} */ (element.querySelector("li button"))?.focus();
}

/** @param {App} app */
function saveDialog(app) {
  const problem = app.preferences.readOnly;
  let name = "";
  app.openDialog({
    title: "Save this filter",
    confirm: problem ? undefined : "Save",
    body: () => html`<p><code>${visible(app.query) || "everything"}</code></p>
      ${problem ? html`<p class="error" role="alert">Filters cannot be saved. ${problem}</p>` : html`<label class="field"><span>name</span><input type="text" required maxlength=${MAX_NAME} .value=${name} @input=${(/** @type {Event} */ event) => { name = /** @type {HTMLInputElement} */ (event.target).value; app.render(); }}></label>
        <p class="muted" role="status">${app.preferences.get("filters").some((one) => one.name === name.trim()) ? html`It replaces the saved filter ${visible(name)}.` : "It is kept in this browser, for all clusters and files of this address."}</p>`}`,
    act: () => saveFilter(app, name),
  });
}

/**
 * What the command line offers for `filter`, `save` and `forget`.
 * @param {App} app @param {string} typed
 * @returns {{text: string, about: string, run: (() => void) | null}[]}
 */
export function filterSuggestions(app, typed) {
  const match = /^(filter|save|forget)(?: (.*))?$/.exec(typed);
  if (!match) return [];
  const [, verb, name = ""] = match;
  if (verb === "save") return name ? [{ text: typed, about: `save this filter: ${app.query || "everything"}`, run: () => trySaving(app, name) }] : [];
  const found = (verb === "filter" ? namedFilters(app) : app.preferences.get("filters")).filter((one) => one.name.includes(name));
  found.sort((one, other) => Number(other.name === name) - Number(one.name === name));
  const direct = verb === "filter" && name && !found.length && !parseFilter(name).error ? [{ text: typed, about: "filter by this text", run: () => applyFilter(app, { name: "", text: name }) }] : [];
  return [...direct, ...found.map((one) => ({ text: `${verb} ${one.name}`, about: one.text || "everything", run: () => (verb === "filter" ? applyFilter(app, one) : deleteFilter(app, one.name)) }))];
}

/** @param {App} app @param {string} name */
function trySaving(app, name) {
  try {
    saveFilter(app, name);
  } catch (error) {
    app.problem(error);
  }
}
