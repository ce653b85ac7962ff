/** Tabs: one tab stop, arrows choose. */

import { html } from "lit";
import { focusAfterRendering } from "fk/focus";

/**
 * @param {{label: string, items: {id: string, title: string}[], chosen: string, choose: (id: string) => void, body: any}} options
 */
export function tabs({ label, items, chosen, choose, body }) {
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = items.findIndex((item) => item.id === chosen);
    const next = items[(index + step + items.length) % items.length];
    const list = /** @type {HTMLElement} */ (event.currentTarget);
    choose(next.id);
    focusAfterRendering(() => list.querySelector("[aria-selected=true]"));
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} @keydown=${keys}>
      ${items.map((item) => html`<button type="button" role="tab" id=${`tab-${item.id}`} aria-controls="tab-body" aria-selected=${item.id === chosen ? "true" : "false"} tabindex=${item.id === chosen ? "0" : "-1"} @click=${() => choose(item.id)}>${item.title}</button>`)}
    </div>
    <div id="tab-body" class="tab-body" role="tabpanel" aria-labelledby=${`tab-${chosen}`}>${body}</div>`;
}
