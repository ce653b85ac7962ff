/** The command line: views, objects, revisions, clock, faults. Everything that it does has a visible control as well. */

import { html, nothing } from "lit";
import { visible } from "fk/escape";
import { resourceMatches } from "fk/filter";
import { qualified } from "fk/format";
import { PRESETS, arm } from "fk/presets";
import { filterSuggestions } from "fk/saved_filters";

/** @typedef {import("fk/app").App} App */
/** @typedef {{text: string, about: string, run: (() => void) | null}} Suggestion without `run` the text is completed */

/** The pattern of commands that are only listed: `filterSuggestions` says what they mean with a name. */
const NEVER = /(?!)/;

/** @type {{syntax: string, about: string, pattern: RegExp, run: (app: App, match: RegExpExecArray) => void, live?: boolean}[]} */
const COMMANDS = [
  ...["timeline", "objects", "requests", "controls"].map((view) => ({ syntax: view, about: `open ${view}`, pattern: new RegExp(`^${view}$`), run: (/** @type {App} */ app) => app.open(view) })),
  { syntax: "REVISION", about: "stand at a revision: 512", pattern: /^(\d{1,40})$/, run: (app, [, at]) => app.set({ at }) },
  { syntax: "now", about: "back to now", pattern: /^now$/, run: (app) => app.setCursor(null) },
  { syntax: "range A..B", about: "show what happened between two revisions", pattern: /^range (\d+)\.\.(\d+)$/, run: (app, [, from, to]) => app.open("timeline", [], { range: `${from}..${to}` }) },
  { syntax: "diff A..B", about: "compare two revisions", pattern: /^diff (\d+)\.\.(\d+)$/, run: (app, [, from, to]) => app.open("compare", [], { from, to }) },
  { syntax: "clock +1h", about: "advance the held clock: 30s, 5m, 1h, 1d", pattern: /^clock \+?(\d+(?:\.\d+)?)(s|m|h|d)$/, live: true, run: (app, [, amount, unit]) => advance(app, Number(amount) * { s: 1, m: 60, h: 3600, d: 86400 }[/** @type {"s"} */ (unit)]) },
  { syntax: "clock hold", about: "hold the clock", pattern: /^clock hold$/, live: true, run: (app) => void app.act("clock/hold") },
  { syntax: "clock release", about: "let the clock run", pattern: /^clock release$/, live: true, run: (app) => void app.act("clock/release") },
  { syntax: "settle", about: "wait until no controller has work", pattern: /^settle$/, live: true, run: (app) => settle(app) },
  { syntax: "theme dark", about: "light, dark, system", pattern: /^theme (light|dark|system)$/, run: (app, [, theme]) => app.preferences.set("theme", theme) },
  ...[["filter NAME", "use a saved filter, or filter by a text"], ["save NAME", "save this filter under a name"], ["forget NAME", "delete a saved filter"]].map(([syntax, about]) => ({ syntax, about, pattern: NEVER, run: () => {} })),
  { syntax: "link", about: "copy the link of this view", pattern: /^link$/, run: (app) => app.copyLink() },
  ...PRESETS.map((preset) => ({ syntax: `${preset.command} RESOURCE`, about: `arm the fault: ${preset.title}`, pattern: new RegExp(`^${preset.command}(?: ([a-z0-9./*-]+))?$`), live: true, run: (/** @type {App} */ app, /** @type {RegExpExecArray} */ match) => void arm(app, preset, match[1]) })),
];

/** Moves the clock; one that runs is held first. @param {App} app @param {number} seconds */
export async function advance(app, seconds) {
  if (!app.clock?.held) app.clock = (await app.act("clock/hold")) ?? app.clock;
  const clock = await app.act("clock/advance", { method: "POST", body: { seconds } });
  if (clock) app.clock = { ...app.clock, ...clock };
  app.render();
}

/** @param {App} app */
export async function settle(app) {
  app.notice("Waiting until no controller has work …");
  if (await app.act("settle", { method: "POST", body: {} })) app.notice("Settled: no controller has work now.");
}

/**
 * What a text means, and how it could go on.
 * @param {App} app @param {string} text
 * @returns {Suggestion[]}
 */
export function suggestions(app, text) {
  const typed = withoutColon(text);
  const found = [...commandSuggestions(app, typed), ...objectSuggestions(app, typed)];
  const starts = COMMANDS.filter((command) => !command.pattern.test(typed) && (!typed || command.syntax.startsWith(typed.split(" ")[0]) || command.about.includes(typed)));
  found.push(...starts.map((command) => ({ text: command.syntax, about: command.about, run: /[A-Z]/.test(command.syntax) ? null : command.live && app.readOnly ? () => app.notice(app.readOnly, true) : () => runSyntax(app, command) })));
  return found.slice(0, 12);
}

/** @param {string} text */
function withoutColon(text) {
  return text.trim().replace(/^:/, "");
}

/** What a text means without the objects: they come after these. @param {App} app @param {string} typed @returns {Suggestion[]} */
function commandSuggestions(app, typed) {
  /** @type {Suggestion[]} */
  const found = [];
  for (const command of COMMANDS) {
    const match = command.pattern.exec(typed);
    const reason = command.live ? app.readOnly : "";
    if (match) found.push({ text: typed, about: reason || command.about, run: reason ? () => app.notice(reason, true) : () => command.run(app, match) });
  }
  return [...found, ...filterSuggestions(app, typed)];
}

/** Whether the first meaning of a text is known only when the objects have been read. @param {App} app @param {string} text */
function needsObjects(app, text) {
  const typed = withoutColon(text);
  return typed !== "" && !app.objects.isCurrent && !commandSuggestions(app, typed).length;
}

/** @param {App} app @param {{syntax: string, pattern: RegExp, run: (app: App, match: RegExpExecArray) => void}} command */
function runSyntax(app, command) {
  const match = command.pattern.exec(command.syntax);
  if (match) command.run(app, match);
}

/** Objects by `pods web`, `web`, `default/web`. @param {App} app @param {string} typed @returns {Suggestion[]} */
function objectSuggestions(app, typed) {
  const table = app.objects.current;
  if (!typed || !table) return [];
  const [first, second = ""] = typed.toLowerCase().split(/\s+/);
  const found = [];
  for (let row = 0; row < table.count && found.length < 8; row++) {
    const resource = table.text("resource", row);
    const name = qualified(table.text("namespace", row), table.text("name", row));
    const fits = resourceMatches(resource, first) || table.text("kind", row).toLowerCase() === first ? name.includes(second) : !second && name.includes(first);
    if (!fits) continue;
    const id = { resource, namespace: table.text("namespace", row), name: table.text("name", row) };
    found.push({ text: `${resource} ${name}`, about: table.text("text", row), run: () => app.openObject(id) });
  }
  if (found.length !== 1 && resourceNames(app).has(first) && !second) found.unshift({ text: typed, about: "list them", run: () => app.open("objects", [], { by: "flat", q: `resource:${first}` }) });
  return found;
}

/** @param {App} app @returns {Set<string>} */
function resourceNames(app) {
  return new Set((app.info.resources ?? []).flatMap((/** @type {any} */ one) => [one.name, one.name.split(".")[0]]));
}

let chosen = 0;
let typed = "";
/** Whether Enter was pressed before the objects were read: what was typed runs as soon as they are. */
let waiting = false;

/** @param {App} app */
export function commandLine(app) {
  const items = suggestions(app, typed);
  chosen = Math.min(chosen, Math.max(0, items.length - 1));
  const close = () => {
    typed = "";
    chosen = 0;
    waiting = false;
    app.closeCommand();
  };
  const accept = (/** @type {Suggestion | undefined} */ item) => {
    if (!item) return;
    if (!item.run) {
      typed = `${item.text.replace(/[A-Z].*$/, "")}`;
      app.render();
      return;
    }
    close();
    item.run();
  };
  const enter = () => {
    waiting = chosen === 0 && needsObjects(app, typed);
    if (!waiting) accept(suggestions(app, typed)[chosen]);
    app.render();
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown") chosen = Math.min(items.length - 1, chosen + 1);
    else if (event.key === "ArrowUp") chosen = Math.max(0, chosen - 1);
    else if (event.key === "Enter") enter();
    else if (event.key !== "Tab") return;
    event.preventDefault();
    event.stopPropagation();
    app.render();
  };
  queueMicrotask(() => {
    const input = document.getElementById("command");
    if (input && document.activeElement !== input) input.focus();
    if (waiting && !needsObjects(app, typed)) enter();
  });
  return html`<div class="command-back" @click=${(/** @type {Event} */ event) => event.target === event.currentTarget && close()}>
    <div class="command" role="dialog" aria-modal="true" aria-label="Command line">
      <input id="command" type="text" role="combobox" aria-expanded="true" aria-controls="commands" aria-autocomplete="list" aria-label="Command" autocomplete="off" spellcheck="false"
        placeholder="an object, a revision, a view, a command" aria-activedescendant=${items.length ? `command-${chosen}` : ""} .value=${typed}
        @input=${(/** @type {Event} */ event) => { typed = /** @type {HTMLInputElement} */ (event.target).value; chosen = 0; waiting = false; app.render(); }} @keydown=${keys}>
      <ul id="commands" role="listbox" aria-label="Suggestions">${items.map((item, index) => html`<li role="option" id=${`command-${index}`} aria-selected=${index === chosen ? "true" : "false"} @click=${() => accept(item)}><code>${visible(item.text)}</code><span>${visible(item.about)}</span></li>`)}</ul>
      ${waiting ? html`<p class="muted pad" role="status">Reading the objects …</p>` : nothing}
    </div>
  </div>`;
}

