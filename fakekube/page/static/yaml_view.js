/** Shows a JSON value as lines of YAML; long lists and texts are folded until all is asked for. */

import { html, nothing } from "lit";
import { visible, visibleLines } from "fk/escape";
import { place } from "fk/place";
import { yamlLines } from "fk/yaml_lines";

/** An object with more lines is folded. */
export const MAX_LINES = 3000;

const unfolded = new WeakSet();
const printed = new WeakMap();

/** @param {any} value @returns {import("fk/yaml_lines").Line[]} */
export function linesOf(value) {
  if (typeof value !== "object" || value === null) return yamlLines(value);
  const known = printed.get(value);
  if (known) return known;
  let lines = yamlLines(value);
  if (lines.length > MAX_LINES && !unfolded.has(value)) lines = yamlLines(value, { fold: true });
  printed.set(value, lines);
  return lines;
}

/** Whether lines are folded. @param {import("fk/yaml_lines").Line[]} lines */
export function isFolded(lines) {
  return lines.length > MAX_LINES || lines.some((line) => line.kind === "folded");
}

/** @param {import("fk/app").App} app @param {any} value @param {import("fk/yaml_lines").Line[]} lines */
export function unfoldButton(app, value, lines) {
  if (!isFolded(lines) || unfolded.has(value)) return nothing;
  return html`<p class="fold"><button type="button" @click=${() => {
    unfolded.add(value);
    printed.delete(value);
    app.render();
  }}>Show all lines</button> Long lists and texts are folded.</p>`;
}

/** One line of YAML. @param {import("fk/yaml_lines").Line} line */
export function lineTemplate(line) {
  return html`<span class="yaml" ${place({ "--depth": String(line.depth) })}>${line.dash ? html`<span class="y-dash">${line.dash}</span>` : nothing}${line.key ? html`<span class="y-key">${visible(line.key)}</span> ` : nothing}<span class="y-${line.kind}">${visibleLines(line.text)}</span></span>`;
}

/** @param {import("fk/app").App} app @param {any} value @param {{label?: string, marked?: (path: string) => boolean}} [options] */
export function yamlBlock(app, value, { label = "YAML", marked } = {}) {
  const lines = linesOf(value);
  return html`<div class="yaml-block" role="region" tabindex="0" aria-label=${label}>${lines.slice(0, unfolded.has(value) ? Infinity : MAX_LINES).map((line) => html`<div class=${marked?.(line.path) ? "line marked" : "line"}>${lineTemplate(line)}</div>`)}</div>${unfoldButton(app, value, lines)}`;
}
