/** The frame of all views: bars, filter, cursor, status line. An error of a view is shown in its place; the others go on. */

import { html, nothing, classMap, live } from "lit";
import { commandLine } from "fk/command_line";
import { dialogTemplate } from "fk/dialog";
import { visible } from "fk/escape";
import { DEFAULT_FILTER, parseFilter, withoutTerm } from "fk/filter";
import { clockTime, count, plural, time } from "fk/format";
import { helpDialog } from "fk/help";
import { place } from "fk/place";
import { moveCursor } from "fk/play";
import { digits } from "fk/revisions";
import { formatRoute, toView } from "fk/router";
import { savedMenu } from "fk/saved_filters";

/** @typedef {import("fk/app").App} App */

const TITLES = /** @type {Record<string, string>} */ ({ timeline: "Timeline", objects: "Objects", requests: "Requests", controls: "Controls", compare: "Compare", report: "Report", scenario: "Scenario" });

/** @param {App} app */
export function shell(app) {
  return html`<div class=${classMap({ shell: true, presenting: app.presenting, past: app.at !== null })}>
    <a class="skip" href="#main" @click=${(/** @type {Event} */ event) => {
      event.preventDefault();
      app.focusView();
    }}>Skip to the view</a>
    ${header(app)}
    ${app.failure ? failure(app) : app.loaded ? body(app) : html`<main id="main" class="starting" tabindex="-1"><p>Reading the cluster …</p></main>`}
    ${statusLine(app)}
    ${app.commandOpen ? commandLine(app) : nothing}
    ${dialogTemplate(app, app.dialog)}
    <div class="visually-hidden" role="status">${app.announcement}</div>
  </div>`;
}

/** @param {App} app */
function header(app) {
  const { info } = app;
  const test = info.test?.id ?? (typeof info.test === "string" ? info.test : "");
  const what = test || (info.name === "fakekube" ? "" : info.name);
  return html`<header class="top">
    <h1><span class="logo" aria-hidden="true"></span>fakekube${what ? html`<span class="what" title=${visible(what)}>${visible(what)}</span>` : nothing}</h1>
    <nav aria-label="Views"><ul>${views(app).map((view) => viewLink(app, view))}</ul></nav>
    <div class="facts">
      ${info.kubernetes ? html`<span class="fact">${visible(info.kubernetes)}${info.profile ? html` · ${visible(info.profile)}` : nothing}</span>` : nothing}
      ${app.clock ? html`<span class="fact" title="the cluster's clock">${clockText(app.clock)}</span>` : nothing}
      <span class="fact connection ${app.connection.state}"><span class="dot" aria-hidden="true"></span>${app.connection.text}</span>
      <button type="button" class="quiet search" @click=${() => app.openCommand()}>Go to … <kbd>Ctrl K</kbd></button>
      <button type="button" class="quiet icon" aria-label="Theme: ${app.preferences.get("theme")}" title="Theme: ${app.preferences.get("theme")}" @click=${() => nextTheme(app)}>${/** @type {Record<string, string>} */ ({ dark: "☾", light: "☀" })[app.preferences.get("theme")] ?? "◐"}</button>
      <button type="button" class="quiet icon" aria-label="Help" title="Help (?)" @click=${() => app.openDialog(helpDialog(app))}>?</button>
    </div>
  </header>`;
}

/** @param {any} clock */
function clockText(clock) {
  const now = Date.parse(clock.now) / 1000;
  const scale = clock.scale && clock.scale !== 1 ? ` ×${clock.scale}` : "";
  return `${clockTime(now)} ${clock.held ? "held" : `running${scale}`}`;
}

/** @param {App} app */
function views(app) {
  const found = app.report ? ["report", "timeline", "objects", "requests"] : ["timeline", "objects", "requests", "controls"];
  if (app.scenario) found.unshift("scenario");
  return app.route.view === "compare" ? [...found, "compare"] : found;
}

/** @param {App} app @param {string} view */
function viewLink(app, view) {
  const badge = view === "controls" && app.faults.length ? html`<span class="badge" title="faults armed">${app.faults.length}</span>` : nothing;
  return html`<li><a href=${formatRoute(toView(app.route, view))} aria-current=${app.route.view === view ? "page" : "false"} @click=${(/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    app.open(view);
  }}>${TITLES[view]}${badge}</a></li>`;
}

/** @param {App} app */
export function nextTheme(app) {
  const themes = ["system", "light", "dark"];
  app.preferences.set("theme", themes[(themes.indexOf(app.preferences.get("theme")) + 1) % themes.length]);
  app.render();
}

/** @param {App} app */
function failure(app) {
  return html`<main id="main" class="failure" tabindex="-1"><h2>The page cannot read the cluster</h2><p>${visible(app.failure?.message ?? app.failure)}</p>
    <p><button type="button" class="primary" @click=${() => { app.failure = null; app.start(); }}>Retry</button></p></main>`;
}

/** @param {App} app */
function body(app) {
  const panel = guarded(app, () => app.view.panel?.(app) ?? nothing);
  return html`${app.isFiltered ? filterBar(app) : nothing} ${app.isFiltered || app.at !== null ? cursorBar(app) : nothing} ${banner(app)}
    <div class=${classMap({ columns: true, "with-panel": panel !== nothing })} ${place({ "--panel": `${app.preferences.get("panel")}px` })}>
      <main id="main" tabindex="-1" aria-label=${TITLES[app.route.view]}>${guarded(app, () => app.view.render(app))}</main>
      ${panel === nothing ? nothing : html`<div class="divider" role="separator" aria-orientation="vertical" aria-label="Width of the panel" tabindex="0" aria-valuenow=${app.preferences.get("panel")} aria-valuemin="300" aria-valuemax="1200"
        @pointerdown=${(/** @type {PointerEvent} */ event) => resize(app, event)} @keydown=${(/** @type {KeyboardEvent} */ event) => resizeByKey(app, event)}></div>
        <aside class="panel" aria-label="Selection">${panel}</aside>`}
    </div>`;
}

/** @param {App} app @param {() => any} draw */
function guarded(app, draw) {
  try {
    return draw();
  } catch (error) {
    console.error(error);
    return html`<div class="failure" role="alert"><h2>This view failed</h2><p>${visible(/** @type {any} */ (error)?.message ?? error)}</p><p>Please report it with this address: <code>${visible(location.hash)}</code></p>
      <p><button type="button" @click=${() => app.render()}>Retry</button></p></div>`;
  }
}

/** @param {App} app @param {PointerEvent} event */
function resize(app, event) {
  const start = event.clientX;
  const width = Number(app.preferences.get("panel"));
  const move = (/** @type {PointerEvent} */ moved) => setPanel(app, width + start - moved.clientX);
  const target = /** @type {HTMLElement} */ (event.target);
  target.setPointerCapture(event.pointerId);
  target.addEventListener("pointermove", move);
  target.addEventListener("pointerup", () => target.removeEventListener("pointermove", move), { once: true });
}

/** @param {App} app @param {KeyboardEvent} event */
function resizeByKey(app, event) {
  const step = { ArrowLeft: 40, ArrowRight: -40 }[event.key];
  if (!step) return;
  event.preventDefault();
  setPanel(app, Number(app.preferences.get("panel")) + step);
}

/** @param {App} app @param {number} width */
function setPanel(app, width) {
  app.preferences.set("panel", String(Math.round(Math.max(300, Math.min(innerWidth * 0.75, width)))));
  app.render();
}

// ---------------------------------------------------------------- filter

/** @param {App} app */
function filterBar(app) {
  const { requests } = app.rows;
  const onObjects = app.route.view === "objects";
  const shown = app.route.view === "requests" ? requests.length : app.rows.entries.length;
  const total = app.route.view === "requests" ? app.store.requests.count : app.rows.total;
  const text = app.filterDraft ?? app.query;
  return html`<div class="filter-bar" role="search">
    <label for="filter">Filter</label>
    <input id="filter" type="text" spellcheck="false" autocomplete="off" autocapitalize="off" placeholder="actor:my-operator verb:patch code:409 web" .value=${live(text)}
      aria-invalid=${app.filterError ? "true" : "false"} aria-describedby=${app.filterError ? "filter-error" : "filter-count"}
      @input=${(/** @type {Event} */ event) => app.setQuery(/** @type {HTMLInputElement} */ (event.target).value)}
      @keydown=${(/** @type {KeyboardEvent} */ event) => {
        if (event.key === "Enter") app.focusView();
      }}>
    <span id="filter-count" class="count">${onObjects ? nothing : html`${count(shown)} of ${count(total)}`}</span>
    <span class="chips">${parseFilter(app.query).terms.map((one) => html`<button type="button" class="chip" title="Remove ${visible(one.text)}" @click=${() => app.setQuery(withoutTerm(app.query, one))}>${visible(one.text)}<span aria-hidden="true"> ×</span></button>`)}
      ${app.query !== DEFAULT_FILTER ? html`<button type="button" class="chip reset" @click=${() => { app.filterDraft = undefined; app.filterError = ""; app.set({ q: undefined }); }}>defaults</button>` : nothing}</span>
    ${savedMenu(app)}
    ${app.filterError ? html`<span id="filter-error" class="error" role="alert">${visible(app.filterError)}</span>` : nothing}
  </div>`;
}

// ---------------------------------------------------------------- cursor

/** @param {App} app */
function cursorBar(app) {
  const { at, range, play } = app;
  const newest = app.newest;
  return html`<div class="cursor-bar">
    <span class="buttons" role="group" aria-label="Cursor">
      <button type="button" class="icon" aria-label="Previous change" title="Previous change ([)" @click=${() => moveCursor(app, -1)}>‹</button>
      <button type="button" class="icon play" aria-pressed=${play.running ? "true" : "false"} aria-label=${play.running ? "Pause" : "Play"} title=${play.running ? "Pause (Space)" : "Play (Space)"} @click=${() => play.toggle()}>${play.running ? "❚❚" : "▶︎"}</button>
      <button type="button" class="icon" aria-label="Next change" title="Next change (])" @click=${() => moveCursor(app, 1)}>›</button>
      <button type="button" class="quiet" title="Changes a second" @click=${() => play.next()}>${play.speed}/s</button>
    </span>
    ${at === null
      ? html`<strong class="now">NOW</strong><span>rev ${digits(newest)}</span>`
      : html`<strong class="then">THEN</strong><span>rev ${digits(at)}${timeOf(app, at)} · ${plural(Math.max(0, newest - at), "revision")} ago</span><button type="button" @click=${() => app.setCursor(null)}>Back to now</button>`}
    <span class="range">${range ? html`range ${digits(range[0])} … ${digits(range[1])} <button type="button" class="quiet" @click=${() => app.open("compare", [], { from: digits(range[0]), to: digits(range[1]) })}>Compare</button> <button type="button" class="quiet" aria-label="Remove the range" @click=${() => app.set({ range: undefined })}>×</button>` : nothing}</span>
    <span class="reach">${reach(app)}</span>
  </div>`;
}

/** @param {App} app @param {number} at */
function timeOf(app, at) {
  const row = app.store.changes.find(at);
  return row < 0 ? "" : ` · ${time(app.store.changes.value("time", row))}`;
}

/** How far back the data reach, and why. @param {App} app */
function reach(app) {
  const { requests, changes, gaps } = app.store;
  const first = requests.count ? requests.value("number", 0) : 0;
  const parts = [plural(requests.count, "request"), plural(changes.count, "change")];
  const dropped = "trace" in app.provider ? app.provider.trace.limits?.dropped : undefined;
  const why = [];
  if (first > 1) why.push("older requests were dropped");
  const lost = Object.entries(dropped ?? {}).filter(([, number]) => number);
  if (lost.length) why.push(`dropped for the size of the file: ${lost.map(([name, number]) => (number === true ? name : `${number} ${name}`)).join(", ")}`);
  if (gaps.length) why.push(`${plural(gaps.length, "gap")}: rows came faster than they could be read`);
  return html`${parts.join(", ")}${why.length ? html`<span class="why"> · ${why.join("; ")}</span>` : nothing}`;
}

/** What a trace file is of, and what it holds. @param {App} app */
function banner(app) {
  const trace = /** @type {any} */ (app.provider).trace;
  const test = trace?.test;
  if (!trace || app.report) return nothing;
  const outcome = test?.outcome ? html`<strong class="outcome ${test.outcome}">${test.outcome}</strong> ${visible(test.id)}` : nothing;
  const redacted = trace.redacted === false ? "secrets are not redacted" : "secrets are redacted";
  return html`<div class="banner">${outcome}<span class="muted">made ${visible(trace.made)} by ${visible(trace.by)}; it holds ${visible((trace.sections ?? []).join(", ") || "rows only")}; ${redacted}</span>
    ${test?.message ? html`<pre class="failure-message">${visible(String(test.message).split("\n").slice(0, 3).join(" ⏎ "))}</pre>` : nothing}</div>`;
}

// ---------------------------------------------------------------- status

/** @param {App} app */
function statusLine(app) {
  const { message } = app;
  return html`<footer class="status">
    ${message ? html`<span class=${message.problem ? "message problem" : "message"} role=${message.problem ? "alert" : "status"}>${visible(message.text)} <button type="button" class="quiet" aria-label="Dismiss" @click=${() => app.dismiss()}>×</button></span>` : nothing}
    <span class="spacer"></span>
    ${app.faults.length ? html`<span>★ ${plural(app.faults.length, "fault")} armed</span>` : nothing}
    ${app.findings.length ? html`<button type="button" class="quiet" @click=${() => app.open("timeline")}>⚑ ${plural(app.findings.length, "finding")}</button>` : nothing}
    <span class="muted hide-narrow"><kbd>?</kbd> help · <kbd>Ctrl K</kbd> commands</span>
  </footer>`;
}

