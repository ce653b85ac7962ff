/** Controls: faults as switches, the clock with what is due, the state. Every control shows its Python and its curl. */

import { stringifyExact } from "fk/exact_json";
import { html, live, nothing } from "lit";
import { advance, settle } from "fk/command_line";
import { copyMenu } from "fk/dialog";
import { pythonLiteral, visible } from "fk/escape";
import { faultForm } from "fk/fault_form";
import { clockTime, duration } from "fk/format";
import { PRESETS, arm, controlCurl, faultOf, faultPython, isPreset, refreshFaults } from "fk/presets";

/** @typedef {import("fk/app").App} App */

const STEPS = /** @type {[string, number][]} */ ([["+1 s", 1], ["+1 m", 60], ["+5 m", 300], ["+1 h", 3600], ["+1 d", 86400]]);
const SPEEDS = [0.1, 1, 10, 60, 600];
/** @type {any[]} */
let snapshots = [];
let snapshotsOf = "";
let amount = "";
let settles = true;

/** @type {import("fk/app").View} */
export const controlsView = {
  render(app) {
    if (!app.provider.live) return log(app);
    loadSnapshots(app);
    return html`<div class="controls pad">${app.readOnly ? html`<p class="muted" id="read-only">${app.readOnly}</p>` : nothing}
      <section aria-labelledby="faults-title">${faults(app)}</section>
      <section aria-labelledby="clock-title">${clock(app)}</section>
      <section aria-labelledby="state-title">${stateControls(app)}</section></div>`;
  },
  focusTarget: () => document.querySelector(".controls button"),
  event(_app, what) {
    if (what === "reset" || what === "restarted") snapshotsOf = "";
  },
};

/** In a file there are no switches: what was armed and done, in order. @param {App} app */
function log(app) {
  const { marks } = app.store;
  const rows = Array.from({ length: marks.count }, (_, row) => row);
  return html`<div class="controls pad"><h2>What was done to the cluster</h2>
    ${rows.length ? html`<table class="plain"><caption class="visually-hidden">Marks</caption><thead><tr><th scope="col">time</th><th scope="col">kind</th><th scope="col">what</th></tr></thead><tbody>
      ${rows.map((row) => html`<tr><td class="mono">${clockTime(marks.value("time", row))}</td><td>${visible(marks.text("kind", row))}</td><td>${visible(marks.text("text", row))}</td></tr>`)}</tbody></table>` : html`<p class="muted">Nothing was done outside of the Kubernetes API.</p>`}</div>`;
}

/** A button that changes the cluster; disabled with the reason. @param {App} app @param {string} title @param {() => unknown} act @param {string} [kind] */
function button(app, title, act, kind = "") {
  return html`<button type="button" class=${kind} ?disabled=${app.readOnly !== ""} title=${app.readOnly} @click=${act}>${title}</button>`;
}

/** Python and curl of a control. @param {App} app @param {string} python @param {string} path @param {any} [body] @param {string} [method] */
function copies(app, python, path, body, method = "POST") {
  return copyMenu(app, [["Python", () => python], ["curl", () => controlCurl(app, method, path, body)]]);
}

// ---------------------------------------------------------------- faults

/** @param {App} app */
function faults(app) {
  const others = app.faults.filter((fault) => !PRESETS.some((preset) => isPreset(fault, preset)));
  return html`<h2 id="faults-title">Faults (${app.faults.length} armed)</h2>
    <ul class="switches">${PRESETS.map((preset) => presetRow(app, preset))}${others.map((fault) => faultRow(app, fault))}</ul>
    <p class="buttons">${button(app, "New fault…", () => faultForm(app, { on: { verbs: "*", resource: "*" }, do: { status: { code: 503 } } }), "primary")}
      ${app.faults.length ? html`${button(app, "Remove all", () => remove(app, "faults"))} ${copyMenu(app, [["Python", () => app.faults.map(faultPython).join("\n")], ["curl", () => app.faults.map((fault) => controlCurl(app, "POST", "faults", bodyOf(fault))).join("\n")]], "Copy all")}` : nothing}</p>`;
}

/** @param {App} app @param {import("fk/presets").Preset} preset */
function presetRow(app, preset) {
  const armed = app.faults.find((fault) => isPreset(fault, preset));
  const toggle = () => (armed ? remove(app, `faults/${armed.id}`) : arm(app, preset));
  return html`<li class="switch-row"><button type="button" role="switch" class="switch" aria-checked=${armed ? "true" : "false"} ?disabled=${app.readOnly !== ""} title=${app.readOnly} @click=${toggle}>${preset.title}</button>
    <span class="muted mono">${preset.verbs} ${preset.resource}</span>${armed ? facts(armed) : nothing}${copies(app, faultPython(faultOf(preset)), "faults", faultOf(preset))}</li>`;
}

/** @param {App} app @param {any} fault */
function faultRow(app, fault) {
  const [action] = Object.entries(fault.do ?? {});
  const title = fault.label || `${action?.[0] ?? "fault"} ${Object.entries(action?.[1] ?? {}).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(" ")}`;
  return html`<li class="switch-row"><button type="button" role="switch" class="switch" aria-checked="true" ?disabled=${app.readOnly !== ""} title=${app.readOnly} @click=${() => remove(app, `faults/${fault.id}`)}>${visible(title)}</button>
    <span class="muted mono">${visible(fault.on?.verbs)} ${visible(fault.on?.resource)}</span>${facts(fault)}${copies(app, faultPython(fault), "faults", bodyOf(fault))}</li>`;
}

/** Hits, and what is left; of a fault that never happened, the nearest requests. @param {any} fault */
function facts(fault) {
  const left = [fault.left?.times === null || fault.left?.times === undefined ? "" : `${fault.left.times} left`, fault.left?.seconds === null || fault.left?.seconds === undefined ? "" : `${duration(fault.left.seconds)} left`].filter(Boolean).join(", ");
  return html`<span class="hits">${fault.hits} hit${fault.hits === 1 ? "" : "s"}${left ? `, ${left}` : ""}${fault.exhausted ? ", over" : ""}</span>
    ${fault.hits || !fault.near ? nothing : html`<details class="near"><summary>never happened</summary><pre>${visible(fault.near)}</pre></details>`}`;
}

/** The body of POST faults of an armed fault. @param {any} fault */
function bodyOf(fault) {
  const on = Object.fromEntries(Object.entries(fault.on ?? {}).filter(([, value]) => value !== null && value !== undefined && value !== false));
  const often = Object.fromEntries(["times", "after", "every", "probability", "lasts", "label"].filter((name) => fault[name] !== null && fault[name] !== undefined).map((name) => [name, fault[name]]));
  return { on, do: fault.do, ...often };
}

/** @param {App} app @param {string} path */
async function remove(app, path) {
  await app.act(path, { method: "DELETE" });
  await refreshFaults(app);
}

// ---------------------------------------------------------------- clock

/** @param {App} app */
function clock(app) {
  const value = app.clock ?? {};
  const due = value.due ?? [];
  return html`<h2 id="clock-title">Clock</h2>
    <p class="clock-now"><strong class="mono">${visible(value.now ?? "")}</strong> <span class="tag">${value.held ? "held" : `running ×${value.scale ?? 1}`}</span>
      ${value.held ? button(app, "Release", () => clockAct(app, "clock/release")) : button(app, "Hold", () => clockAct(app, "clock/hold"))} ${copies(app, value.held ? "cluster.clock.release()" : "cluster.clock.hold()", value.held ? "clock/release" : "clock/hold", {})}</p>
    <p class="buttons">${STEPS.map(([title, seconds]) => button(app, title, () => advanceAndSettle(app, seconds)))}
      <form class="inline" @submit=${(/** @type {Event} */ event) => { event.preventDefault(); if (Number(amount) > 0) advanceAndSettle(app, Number(amount)); }}>
        <label>or seconds <input type="text" inputmode="decimal" size="8" .value=${amount} @input=${(/** @type {any} */ event) => { amount = event.target.value; }}></label>${html`<button type="submit" ?disabled=${app.readOnly !== ""} title=${app.readOnly}>Advance</button>`}</form>
      ${copies(app, "cluster.clock.advance(hours=1)", "clock/advance", { seconds: 3600 })}</p>
    <p><label>speed <select ?disabled=${app.readOnly !== ""} @change=${(/** @type {any} */ event) => clockAct(app, "clock/scale", { factor: Number(event.target.value) })}>${[...new Set([...SPEEDS, value.scale ?? 1])].sort((a, b) => a - b).map((one) => html`<option value=${one} .selected=${live(one === (value.scale ?? 1))}>×${one}</option>`)}</select></label>
      <label class="check"><input type="checkbox" .checked=${settles} @change=${(/** @type {any} */ event) => { settles = event.target.checked; }}> then settle</label></p>
    <h3>Due</h3>
    ${due.length ? html`<p>${value.held ? button(app, `Step to ${visible(due[0].what)}`, () => clockAct(app, "clock/next")) : nothing} ${value.held ? copies(app, "cluster.clock.next()", "clock/next", {}) : nothing}</p>
      <ol class="due">${due.slice(0, 12).map((/** @type {any} */ one) => html`<li><span class="mono">${duration(one.in)}</span> ${visible(one.what)}</li>`)}</ol>` : html`<p class="muted">Nothing waits for the clock.</p>`}`;
}

/** @param {App} app @param {string} path @param {any} [body] */
async function clockAct(app, path, body = {}) {
  const value = await app.act(path, { method: "POST", body });
  if (value) await refreshClock(app);
}

/** @param {App} app */
async function refreshClock(app) {
  const value = await app.act("clock", { method: "GET" });
  if (value) app.clock = value;
  app.render();
}

/** @param {App} app @param {number} seconds */
async function advanceAndSettle(app, seconds) {
  await advance(app, seconds);
  if (settles) await app.act("settle", { method: "POST", body: {} });
  await refreshClock(app);
}

// ---------------------------------------------------------------- state

/** @param {App} app */
async function loadSnapshots(app) {
  if (snapshotsOf === app.info.started) return;
  snapshotsOf = app.info.started;
  snapshots = (await app.act("snapshots", { method: "GET" }))?.items ?? [];
  app.render();
}

/** @param {App} app */
function stateControls(app) {
  return html`<h2 id="state-title">State</h2>
    ${snapshots.length ? html`<ul class="snapshots">${snapshots.map((one) => html`<li><strong>${visible(one.name)}</strong> <span class="muted">rev ${visible(one.revision)} · ${visible(one.time)}</span>
      ${button(app, "Restore", () => confirm(app, `Restore ${one.name}?`, "Objects get back the state of the snapshot; watches end with 410. Revisions go on.", "Restore", `snapshots/${encodeURIComponent(one.name)}/restore`))}
      ${button(app, "Delete", () => changeSnapshots(app, `snapshots/${encodeURIComponent(one.name)}`, { method: "DELETE" }))}</li>`)}</ul>` : nothing}
    <p class="buttons">${button(app, "Take a snapshot…", () => takeSnapshot(app))} ${copies(app, "snapshot = cluster.snapshot()", "snapshots", { name: "a" })}</p>
    <p class="buttons">${button(app, "Settle", () => settle(app))} ${copies(app, "cluster.settle()", "settle", {})}
      ${button(app, "Compact", () => compact(app))} ${copies(app, "cluster.compact()", "compact", {})}</p>
    <p class="buttons">${button(app, "Restart…", () => confirm(app, "Restart the API server?", "All connections drop, this page reconnects; objects stay. The watch cache is cold for a second.", "Restart", "restart"))} ${copies(app, "cluster.restart()", "restart", {})}
      ${button(app, "Outage of 5 s…", () => confirm(app, "Begin an outage?", "All connections drop, and none is accepted for five seconds of the clock.", "Begin", "outage", { seconds: 5 }))} ${copies(app, "cluster.outage(5)", "outage", { seconds: 5 })}
      ${button(app, "Reset…", () => confirm(app, "Reset the cluster?", "All objects are replaced by those of the beginning; requests and faults are cleared, snapshots stay.", "Reset", "reset", {}, true), "danger")} ${copies(app, "cluster.reset()", "reset", {})}</p>
    <p class="buttons">${button(app, "Load…", () => load(app))} ${copies(app, `cluster.load(${pythonLiteral("deploy/")})`, "load")}
      <button type="button" @click=${() => save(app, "export", "GET", "objects.yaml", "application/yaml")}>Export YAML</button> ${copies(app, "cluster.export()", "export", undefined, "GET")}
      <button type="button" @click=${() => save(app, "state?history=true", "GET", "state.yaml", "application/yaml")}>Save state</button> ${copies(app, `cluster.save(${pythonLiteral("state.yaml")}, history=True)`, "state?history=true", undefined, "GET")}
      <button type="button" @click=${() => save(app, "trace", "POST", "trace.html", "text/html")}>Save trace</button> ${copies(app, `cluster.trace(${pythonLiteral("trace.html")})`, "trace", {})}</p>`;
}

/** @param {App} app */
async function compact(app) {
  if (await app.act("compact")) app.notice("Compacted: older revisions get 410 Gone.");
}

/** @param {App} app @param {string} title @param {string} consequence @param {string} verb @param {string} path @param {any} [body] @param {boolean} [danger] */
function confirm(app, title, consequence, verb, path, body = {}, danger = false) {
  app.openDialog({
    title,
    body: html`<p>${consequence}</p>`,
    confirm: verb,
    danger,
    act: async () => {
      await app.provider.call(path, { method: "POST", body });
      app.notice(`Done: ${verb.toLowerCase()}`);
    },
  });
}

/** @param {App} app @param {string} path @param {{method: string, body?: any}} options */
async function changeSnapshots(app, path, options) {
  await app.act(path, options);
  snapshotsOf = "";
  app.render();
}

/** @param {App} app */
function takeSnapshot(app) {
  let name = `at-${app.info.revision ?? "now"}`;
  app.openDialog({
    title: "Take a snapshot",
    confirm: "Take",
    body: () => html`<label class="field"><span>name</span><input type="text" required .value=${name} @input=${(/** @type {any} */ event) => { name = event.target.value; }}></label>`,
    act: async () => {
      await app.provider.call("snapshots", { method: "POST", body: { name } });
      snapshotsOf = "";
    },
  });
}

/** @param {App} app */
function load(app) {
  let content = Promise.resolve("");
  app.openDialog({
    title: "Load manifests, a saved state or a trace file",
    wide: true,
    confirm: "Load",
    body: () => html`<p>Manifests are applied; a state or a trace replaces all objects.</p>
      <label class="field"><span>file</span><input type="file" @change=${(/** @type {any} */ event) => { content = event.target.files[0]?.text() ?? Promise.resolve(""); }}></label>
      <label class="field"><span>or YAML</span><textarea class="code" rows="12" @input=${(/** @type {any} */ event) => { content = Promise.resolve(event.target.value); }}></textarea></label>`,
    act: async () => {
      const answer = await app.provider.call("load", { method: "POST", body: await content, raw: true });
      app.notice(`Loaded ${answer.items?.length ?? 0} objects`);
    },
  });
}

/** @param {App} app @param {string} path @param {string} method @param {string} name @param {string} type */
async function save(app, path, method, name, type) {
  const text = await app.act(path, method === "POST" ? { method, body: {} } : { method });
  if (text === undefined) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([typeof text === "string" ? text : stringifyExact(text)], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
