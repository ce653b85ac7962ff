/** Dialogs, notices and copying. One dialog at a time; it is a <dialog>, so that focus stays inside and returns. */

import { html, nothing } from "lit";
import { visible, visibleLines } from "fk/escape";

/**
 * @typedef {object} DialogState
 * @property {string} title
 * @property {any} body a template, or a function that makes one
 * @property {string} [confirm] the label of the button that acts; without it there is only Close
 * @property {boolean} [danger] Enter cancels; a field of the body that has the focus first has `autofocus`
 * @property {() => (void | Promise<void>)} [act]
 * @property {string} [error]
 * @property {boolean} [acting] while the answer is awaited
 * @property {boolean} [wide]
 */

/**
 * @param {import("fk/app").App} app
 * @param {DialogState | null} state
 */
export function dialogTemplate(app, state) {
  return html`<dialog id="dialog" class=${state?.wide ? "wide" : ""} aria-labelledby="dialog-title" @close=${(/** @type {Event} */ event) => {
    if (!(/** @type {HTMLDialogElement} */ (event.target).open) && app.dialog) app.closeDialog(); // not that of a dialog before it
  }} @click=${(/** @type {MouseEvent} */ event) => {
    if (event.target === event.currentTarget) app.closeDialog();
  }}>
    ${state ? dialogBody(app, state) : nothing}
  </dialog>`;
}

/** @param {import("fk/app").App} app @param {DialogState} state */
function dialogBody(app, state) {
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    app.confirmDialog();
  };
  return html`<form method="dialog" @submit=${submit}>
    <h2 id="dialog-title">${visible(state.title)}</h2>
    <div class="dialog-body">${typeof state.body === "function" ? state.body() : state.body}</div>
    ${state.error ? html`<p class="error" role="alert">${visibleLines(state.error)}</p>` : nothing}
    <div class="buttons">
      ${state.confirm
        ? html`<button type=${state.danger ? "button" : "submit"} class=${state.danger ? "danger" : "primary"} @click=${state.danger ? () => app.confirmDialog() : nothing}>${state.confirm}</button>`
        : nothing}
      <button type="button" ?autofocus=${state.danger ?? false} @click=${() => app.closeDialog()}>${state.confirm ? "Cancel" : "Close"}</button>
    </div>
  </form>`;
}

/**
 * Copies a text; browsers refuse the clipboard for files and plain addresses, then the text is shown to be copied by hand.
 * @param {import("fk/app").App} app @param {string} text @param {string} [what]
 */
export async function copy(app, text, what = "Copied") {
  try {
    await navigator.clipboard.writeText(text);
    app.notice(`${what}: ${text.length > 60 ? `${text.slice(0, 59)}…` : text}`);
  } catch {
    app.openDialog({ title: "Copy", wide: true, body: html`<textarea class="code" readonly rows="8" aria-label="Text to copy" .value=${text} @focus=${selectAll}></textarea>` });
  }
}

/** @param {Event} event */
function selectAll(event) {
  /** @type {HTMLTextAreaElement} */ (event.target).select();
}

/**
 * A button with a menu of texts to copy.
 * @param {import("fk/app").App} app @param {[string, () => string][]} items @param {string} [label]
 */
export function copyMenu(app, items, label = "Copy") {
  return menu("", label, items.map(([name, text]) => html`<li><button type="button" @click=${() => copy(app, text(), name)}>${name}</button></li>`));
}

/**
 * A button with a menu: an entry closes it before it acts, arrows move between the entries.
 * @param {string} kind a class @param {any} label @param {any} entries items of a list, with buttons
 */
export function menu(kind, label, entries) {
  return html`<details class="menu ${kind}" @toggle=${onlyOne} @keydown=${menuKey} @click=${CLOSE_BEFORE_ENTRY}>
    <summary class="button">${label}<span aria-hidden="true"> ▾</span></summary>
    <ul>${entries}</ul>
  </details>`;
}

/** The button of the menu has the focus when an entry acts: a dialog that it opens gives the focus back to it. */
const CLOSE_BEFORE_ENTRY = {
  capture: true,
  /** @param {Event} event */
  handleEvent(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const menu = target.closest("li button") && target.closest("details");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
  },
};

/** @param {Event} event */
function onlyOne(event) {
  const menu = /** @type {HTMLDetailsElement} */ (event.target);
  if (menu.open) document.querySelectorAll("details.menu[open]").forEach((other) => other !== menu && other.removeAttribute("open"));
}

/** @param {KeyboardEvent} event */
function menuKey(event) {
  const menu = /** @type {HTMLDetailsElement} */ (event.currentTarget);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!menu.open || !(step || event.key === "Escape")) return;
  event.stopPropagation();
  event.preventDefault(); // what a dialog around it would do
  const stops = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll("summary, li button")]);
  if (step) stops[(stops.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + step + stops.length) % stops.length]?.focus();
  else {
    menu.open = false;
    stops[0]?.focus();
  }
}
