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
  return html`<details class="menu" @toggle=${onlyOne} @keydown=${closeOnEscape}>
    <summary class="button">${label}<span aria-hidden="true"> ▾</span></summary>
    <ul>
      ${items.map(([name, text]) => html`<li><button type="button" @click=${(/** @type {Event} */ event) => {
        /** @type {HTMLElement} */ (event.target).closest("details")?.removeAttribute("open");
        copy(app, text(), name);
      }}>${name}</button></li>`)}
    </ul>
  </details>`;
}

/** @param {Event} event */
function onlyOne(event) {
  const menu = /** @type {HTMLDetailsElement} */ (event.target);
  if (menu.open) document.querySelectorAll("details.menu[open]").forEach((other) => other !== menu && other.removeAttribute("open"));
}

/** @param {KeyboardEvent} event */
function closeOnEscape(event) {
  const menu = /** @type {HTMLDetailsElement} */ (event.currentTarget);
  if (event.key !== "Escape" || !menu.open) return;
  event.stopPropagation();
  event.preventDefault(); // of a dialog around it
  menu.open = false;
  menu.querySelector("summary")?.focus();
}
