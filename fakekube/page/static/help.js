/** The help: keys, filter language, marks. */

import { html } from "lit";
import { KEYS } from "fk/filter";

const KEYBOARD = [
  ["g t, g o, g r, g c", "Timeline, Objects, Requests, Controls"],
  ["g e, g s", "the report of a check, the tasks of a scenario"],
  ["g f", "the first finding"],
  ["/", "filter"],
  ["s", "saved filters"],
  ["Ctrl+K or :", "command line"],
  ["[ and ]", "previous and next change in the filter"],
  ["n", "back to now"],
  ["Space", "play or pause"],
  ["y", "copy the link of this view"],
  [".", "menu of the selection"],
  ["f", "presenter mode"],
  ["Esc", "close the panel, leave a field"],
  ["arrows, Home, End, PageUp, PageDown", "move in tables and trees; Right and Left open and close"],
  ["Enter", "open; * opens all children"],
  ["Timeline: ← → ↑ ↓", "along a lane, between lanes"],
  ["Timeline: + − 0", "zoom in, zoom out, all"],
  ["Timeline: p", "pin the object of the selection as a lane"],
  ["Timeline: r", "start a range at the selection, and end it there"],
];

/** @param {import("fk/app").App} app @returns {import("fk/dialog").DialogState} */
export function helpDialog(app) {
  const body = () => html`<div class="help">
    <section><h3>Keyboard</h3><dl>${KEYBOARD.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl>
      <label class="check"><input type="checkbox" .checked=${app.preferences.get("shortcuts") !== "off"} @change=${(/** @type {Event} */ event) => {
        app.preferences.set("shortcuts", /** @type {HTMLInputElement} */ (event.target).checked ? "on" : "off");
        app.render();
      }}> single-key shortcuts</label></section>
    <section><h3>Filter</h3><p>Terms are joined by AND. <code>a,b</code> is OR, <code>-term</code> is NOT, <code>key&gt;n</code> and <code>key&lt;n</code> compare. Other words match names, resources, paths and actors. <code>-heartbeats</code> hides leases, Events and idle status of nodes.</p>
      <dl>${Object.entries(KEYS).map(([key, text]) => html`<dt><code>${key}:</code></dt><dd>${text}</dd>`)}</dl></section>
  </div>`;
  return { title: "Help", body, wide: true };
}
