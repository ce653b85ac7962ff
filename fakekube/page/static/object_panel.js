/** One object: Fields with owners, History with diffs, Requests, Events; for pods Logs and a terminal. */

import { stringifyExact } from "fk/exact_json";
import { html, live, nothing } from "lit";
import { copy, copyMenu } from "fk/dialog";
import { differencesTable } from "fk/differences";
import { pythonLiteral, shellQuote, visible, visibleLines } from "fk/escape";
import { term } from "fk/filter";
import { fieldsTab } from "fk/fields";
import { historyTab } from "fk/history";
import { plural, time } from "fk/format";
import { end } from "fk/measure";
import { Lazy } from "fk/lazy";
import { digits } from "fk/revisions";
import { actorCell, codeClass } from "fk/rows";
import { tabs } from "fk/tabs";
import { yamlText } from "fk/yaml_lines";

/** @typedef {import("fk/app").App} App */
/** @typedef {import("fk/provider_live").ObjectId} ObjectId */

/** @type {Lazy | undefined} */
let objects;
/** The object that was shown last: it stays while a newer state of it is read. @type {{key: string, value: any}} */
let shown = { key: "", value: undefined };

/** @param {App} app @param {ObjectId} id */
export function objectPanel(app, id) {
  objects ??= new Lazy(app, 30);
  const key = Object.values(id).join("|");
  const version = app.at !== null ? `@${app.at}` : `r${lastRevisionOf(app, id)}`;
  const entry = objects.get(`${key}${version}`, () => app.provider.object(id, app.at));
  if (entry.state === "done") shown = { key, value: entry.value };
  const value = entry.state === "done" ? entry.value : app.at === null && shown.key === key ? shown.value : undefined;
  measureSelection(value);
  return html`${head(app, id, value)}
    ${value ? content(app, id, value) : entry.state === "failed" ? gone(app, id, entry, () => objects?.forget(`${key}${version}`)) : html`<p class="muted pad">Reading …</p>`}`;
}

/** @param {any} value */
function measureSelection(value) {
  if (value) queueMicrotask(() => end("fk:select"));
}

/** The newest revision of an object among the changes. @param {App} app @param {ObjectId} id */
function lastRevisionOf(app, { resource, namespace, name }) {
  const { changes, strings } = app.store;
  const [a, b, c] = [resource, namespace, name].map((text) => strings.indexes.get(text) ?? -1);
  const { columns } = changes;
  for (let row = changes.count - 1; row >= 0; row--) if (columns.name[row] === c && columns.resource[row] === a && columns.namespace[row] === b) return columns.revision[row];
  return 0;
}

/** @param {App} app @param {ObjectId} id @param {any} value */
function head(app, id, value) {
  const { metadata = {}, kind = id.resource } = value?.object ?? {};
  const deleted = metadata.deletionTimestamp ? html` <span class="tag">deleting</span>` : nothing;
  return html`<div class="panel-head"><h2>${visible(kind)} ${id.namespace ? html`<span class="muted">${visible(id.namespace)}/</span>` : nothing}${visible(id.name)}${deleted}</h2>
    <div class="panel-actions"><span class="muted">rev ${visible(metadata.resourceVersion ?? "")} <span class="uid" title=${visible(metadata.uid ?? "")}>uid ${visible(String(metadata.uid ?? "").slice(0, 8))}…</span></span>
      ${value ? copyObjectMenu(app, id, value.object) : nothing}
      ${app.provider.live ? html`<button type="button" ?disabled=${app.readOnly !== "" || !value} title=${app.readOnly || "Change it as YAML"} @click=${() => edit(app, value.object)}>Edit</button>` : nothing}
      <button type="button" class="quiet" title="Pin it as a lane of the Timeline" @click=${() => pin(app, id)}>${isPinned(app, id) ? "Unpin" : "Pin"}</button>
      <button type="button" class="quiet icon" aria-label="Close the panel" @click=${() => app.open("objects", [], { by: app.route.params.by })}>×</button></div></div>`;
}

/** @param {App} app @param {ObjectId} id */
function isPinned(app, id) {
  return app.pins.some((one) => isSame(one, id));
}

/** @param {ObjectId} one @param {ObjectId} other */
function isSame(one, other) {
  return one.resource === other.resource && one.namespace === other.namespace && one.name === other.name;
}

/** The lanes of pinned objects that the Timeline has room for: the oldest one goes. */
const MAX_PINS = 6;

/** Pins an object as a lane of the Timeline, or unpins it. @param {App} app @param {ObjectId} id */
export function pin(app, id) {
  app.pins = isPinned(app, id) ? app.pins.filter((one) => !isSame(one, id)) : [...app.pins, id].slice(-MAX_PINS);
  app.notice(isPinned(app, id) ? `${id.name} is a lane of the Timeline now.` : `${id.name} is no lane of the Timeline any more.`);
}

/** @param {App} app @param {ObjectId} id @param {any} object */
function copyObjectMenu(app, id, object) {
  const namespace = id.namespace ? ` -n ${shellQuote(id.namespace)}` : "";
  return copyMenu(app, [
    ["YAML", () => yamlText(object)],
    ["JSON", () => stringifyExact(object, 2)],
    ["KYAML", () => kyaml(object)],
    ["kubectl command", () => `kubectl get ${shellQuote(id.resource)} ${shellQuote(id.name)}${namespace} -o yaml`],
    ["Python assertion", () => `assert cluster.get(${pythonLiteral(id.resource)}, ${pythonLiteral(id.name)}${id.namespace && id.namespace !== "default" ? `, namespace=${pythonLiteral(id.namespace)}` : ""}) == ${pythonLiteral(object)}`],
    ["link", () => app.link],
  ]);
}

/** KYAML: flow style with quoted strings, as `kubectl get -o kyaml` prints it. @param {any} value @param {string} [indent] @returns {string} */
export function kyaml(value, indent = "") {
  const inner = `${indent}  `;
  if (Array.isArray(value)) return value.length ? `[\n${value.map((item) => `${inner}${kyaml(item, inner)},\n`).join("")}${indent}]` : "[]";
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    return entries.length ? `{\n${entries.map(([key, item]) => `${inner}${/^[A-Za-z_][A-Za-z0-9_-]*$/.test(key) && !/^(y|n|yes|no|on|off|true|false|null)$/i.test(key) ? key : JSON.stringify(key)}: ${kyaml(item, inner)},\n`).join("")}${indent}}` : "{}";
  }
  return stringifyExact(value);
}

/** @param {App} app @param {ObjectId} id @param {{error?: any}} entry @param {() => void} retry */
function gone(app, id, entry, retry) {
  return html`<div class="pad"><p>${visible(entry.error?.message ?? entry.error)}</p><p><button type="button" @click=${retry}>Retry</button> <button type="button" @click=${() => app.openObject(id, { tab: "history" })}>Its history</button></p></div>
    ${app.route.params.tab === "history" ? historyTab(app, id) : nothing}`;
}

/** @param {App} app @param {ObjectId} id @param {any} value */
function content(app, id, value) {
  const isPod = id.resource === "pods";
  const items = [
    { id: "fields", title: "Fields" },
    { id: "history", title: "History" },
    { id: "requests", title: "Requests" },
    { id: "events", title: "Events" },
    ...(isPod ? [{ id: "logs", title: "Logs" }] : []),
    ...(isPod && app.provider.live ? [{ id: "terminal", title: "Terminal" }] : []),
  ];
  const chosen = items.some((item) => item.id === app.route.params.tab) ? app.route.params.tab : "fields";
  const body = { fields: fieldsTab, history: historyTab, requests: requestsTab, events: eventsTab, logs: logsTab, terminal: terminalTab }[chosen];
  return tabs({ label: "Parts of the object", items, chosen, choose: (tab) => app.set({ tab }), body: body?.(app, id, value) });
}

// ---------------------------------------------------------------- requests and events

/** Requests of the table of one object; there may be more. */
const SHOWN_REQUESTS = 200;

/** The rows of the requests about an object, newest first. @param {App} app @param {ObjectId} id @returns {number[]} */
function requestsAbout(app, id) {
  const { requests, strings } = app.store;
  const [wantedName, wantedNamespace] = [id.name, id.namespace].map((text) => strings.indexes.get(text) ?? -1);
  const { name, namespace } = requests.columns;
  const found = [];
  for (let row = requests.count - 1; row >= 0; row--) {
    if (name[row] === wantedName && namespace[row] === wantedNamespace && requests.text("resource", row).split("/")[0] === id.resource) found.push(row);
  }
  return found;
}

/** @param {App} app @param {ObjectId} id */
function requestsTab(app, id) {
  const { requests } = app.store;
  const every = requestsAbout(app, id);
  const found = every.slice(0, SHOWN_REQUESTS);
  const query = `${term("name", id.name)} ${term("resource", id.resource)},${id.resource}/*${id.namespace ? ` ${term("ns", id.namespace)}` : ""}`;
  return html`<p class="muted">${plural(every.length, "request")} about this object, newest first${every.length > found.length ? `; the newest ${found.length} are shown` : ""}. <button type="button" @click=${() => app.open("requests", [], { q: query })}>Open in Requests</button></p>
    <table class="plain"><caption class="visually-hidden">Requests about this object</caption><thead><tr><th scope="col">#</th><th scope="col">time</th><th scope="col">actor</th><th scope="col">verb</th><th scope="col">code</th><th scope="col">rev</th></tr></thead>
    <tbody>${found.map((row) => html`<tr><th scope="row"><button type="button" class="link" @click=${() => app.open("requests", [String(requests.value("number", row))])}>#${requests.value("number", row)}</button></th>
      <td>${time(requests.value("time", row))}</td><td>${actorCell(app, requests.text("actor", row), requests.text("side", row))}</td><td>${visible(requests.text("verb", row))}${subresource(requests.text("resource", row))}</td>
      <td class=${codeClass(requests.value("code", row))}>${requests.value("code", row) || "…"}</td><td>${requests.value("writes", row) ? digits(requests.value("rev", row)) : ""}</td></tr>`)}</tbody></table>`;
}

/** @param {string} resource */
function subresource(resource) {
  const [, sub] = resource.split("/");
  return sub ? html` <span class="muted">/${visible(sub)}</span>` : nothing;
}

/** @type {Lazy | undefined} */
let events;

/** Events of the object's uid: of `involvedObject` or `regarding`. @param {App} app @param {ObjectId} id @param {any} value */
function eventsTab(app, id, value) {
  events ??= new Lazy(app, 10);
  const table = app.objects.current;
  if (!table || !app.objects.isCurrent) return html`<p class="muted">Reading …</p>`;
  const uid = value.object.metadata?.uid;
  const entry = events.get(`${uid}|${app.at}|${app.objects.version}|${app.store.changes.version}`, () => eventsOf(app, table, id, uid));
  if (entry.state !== "done") return html`<p class="muted">${entry.state === "failed" ? visible(entry.error?.message) : "Reading …"}</p>`;
  if (!entry.value.length) return html`<p class="muted">There is no Event about this object.</p>`;
  return html`<table class="plain"><caption class="visually-hidden">Events about this object</caption><thead><tr><th scope="col">last seen</th><th scope="col">type</th><th scope="col">reason</th><th scope="col">from</th><th scope="col">message</th></tr></thead>
    <tbody>${entry.value.map((/** @type {any} */ event) => html`<tr><td>${visible(event.lastTimestamp ?? event.eventTime ?? event.metadata?.creationTimestamp)}</td><td class=${event.type === "Warning" ? "warn" : ""}>${visible(event.type)}</td><th scope="row">${visible(event.reason)}${event.count > 1 ? ` ×${event.count}` : ""}</th>
      <td>${visible(event.source?.component ?? event.reportingComponent)}</td><td>${visibleLines(event.message ?? event.note)}</td></tr>`)}</tbody></table>`;
}

/** Events that are read for one object: those whose names begin with that of the object, as most recorders name them, then the newest others. */
const READ_EVENTS = 100;
/** Events that were read, by name and revision. @type {Map<string, Promise<any>>} */
const readEvents = new Map();

/** @param {App} app @param {import("fk/store").Table} table of the objects @param {ObjectId} id @param {string} uid */
async function eventsOf(app, table, id, uid) {
  /** @type {number[]} */ const named = [];
  /** @type {number[]} */ const others = [];
  for (let row = 0; row < table.count; row++) {
    const resource = table.text("resource", row);
    if (resource !== "events" && resource !== "events.events.k8s.io") continue;
    if (id.namespace && table.text("namespace", row) !== id.namespace) continue;
    (table.text("name", row).startsWith(`${id.name}.`) ? named : others).push(row);
  }
  const rows = [...others, ...named].slice(-READ_EVENTS);
  const values = await Promise.all(rows.map((row) => readEvent(app, table, row)));
  return values.filter((one) => one && (one.involvedObject ?? one.regarding)?.uid === uid);
}

/** Reads an Event, each version once; null if it is gone or cannot be read. @param {App} app @param {import("fk/store").Table} table @param {number} row */
function readEvent(app, table, row) {
  const id = { resource: table.text("resource", row), namespace: table.text("namespace", row), name: table.text("name", row) };
  const key = [...Object.values(id), table.text("uid", row), table.value("revision", row)].join("|");
  let reading = readEvents.get(key);
  if (!reading) {
    if (readEvents.size >= 10 * READ_EVENTS) readEvents.clear();
    reading = app.provider.object(id, app.at).then((one) => one.object, () => {
      readEvents.delete(key);
      return null;
    });
    readEvents.set(key, reading);
  }
  return reading;
}

// ---------------------------------------------------------------- pods

/** @type {Lazy | undefined} */
let logs;
let logSearch = "";

/** @param {App} app @param {ObjectId} id @param {any} value */
function logsTab(app, id, value) {
  logs ??= new Lazy(app, 10);
  if (!app.provider.live) return html`<p class="muted">A trace file holds no logs.</p>`;
  const containers = [...(value.object.spec?.initContainers ?? []), ...(value.object.spec?.containers ?? [])].map((one) => one.name);
  const container = containers.includes(app.route.params.container) ? app.route.params.container : value.object.spec?.containers?.[0]?.name;
  const key = `${id.namespace}/${id.name}/${container}`;
  const entry = logs.get(key, () => app.provider.call(`pods/${encodeURIComponent(id.namespace)}/${encodeURIComponent(id.name)}/log?container=${encodeURIComponent(container)}`));
  const text = entry.state === "done" ? logText(entry.value) : "";
  const lines = text.split("\n").filter((/** @type {string} */ line) => !logSearch || line.includes(logSearch));
  return html`<div class="toolbar"><label>container <select @change=${(/** @type {Event} */ event) => app.set({ container: /** @type {HTMLSelectElement} */ (event.target).value })}>${containers.map((one) => html`<option .selected=${live(one === container)}>${visible(one)}</option>`)}</select></label>
      <label>search <input type="search" .value=${logSearch} @input=${(/** @type {Event} */ event) => { logSearch = /** @type {HTMLInputElement} */ (event.target).value; app.render(); }}></label>
      <button type="button" @click=${() => logs?.forget(key)}>Read again</button><button type="button" @click=${() => copy(app, text, "Log copied")}>Copy</button></div>
    ${entry.state === "failed" ? html`<p class="error">${visible(entry.error?.message)}</p>` : html`<pre class="code log" tabindex="0" aria-label="Log">${entry.state === "loading" ? "Reading …" : text ? visibleLines(lines.slice(-5000).join("\n")) : "The log is empty."}</pre>`}`;
}

/** @param {any} answer */
function logText(answer) {
  if (typeof answer === "string") return answer;
  const items = answer.lines ?? answer.items ?? [];
  return items.map((/** @type {any} */ line) => (typeof line === "string" ? line : line.text ?? line.line ?? JSON.stringify(line))).join("\n");
}

/** The terminal has a document of its own, with its own policy. @param {App} app @param {ObjectId} id @param {any} value */
function terminalTab(app, id, value) {
  if (app.readOnly) return html`<p class="muted">${app.readOnly}</p>`;
  const container = value.object.spec?.containers?.[0]?.name ?? "";
  const address = `page/terminal?${new URLSearchParams({ namespace: id.namespace, name: id.name, container })}`;
  return html`<p class="muted">A shell in the fake container <code>${visible(container)}</code>: commands are those of fakekube, no program of this machine.</p>
    <iframe class="terminal" title="Terminal of ${visible(id.name)}" src=${address}></iframe>`;
}

// ---------------------------------------------------------------- edit

/** @param {App} app @param {any} object */
function edit(app, object) {
  const { managedFields, ...metadata } = object.metadata ?? {};
  void managedFields;
  let text = yamlText({ ...object, metadata });
  let result = /** @type {any} */ (null);
  const send = async (/** @type {boolean} */ dryRun) => {
    result = null;
    try {
      result = { done: await app.provider.call("objects", { method: "POST", body: { yaml: text, dryRun, force: false } }), dryRun };
    } catch (error) {
      result = { error };
      if (!dryRun) throw error;
    }
    app.render();
  };
  app.openDialog({
    title: `Edit ${object.kind} ${object.metadata?.name}`,
    wide: true,
    confirm: "Apply",
    danger: true,
    body: () => html`<label for="edit-yaml" class="visually-hidden">YAML</label><textarea id="edit-yaml" class="code" rows="24" autofocus spellcheck="false" .value=${text} @input=${(/** @type {Event} */ event) => { text = /** @type {HTMLTextAreaElement} */ (event.target).value; }}></textarea>
      <p class="muted">Applied with the field manager <code>fakekube-page</code>; its resourceVersion is a precondition.</p>
      <p><button type="button" @click=${() => send(true)}>Check (dry run)</button></p>
      ${result?.done ? html`<p role="status">The cluster would accept it.</p>${differencesTable(app, { before: object, after: result.done.object ?? result.done }, null)}` : nothing}
      ${result?.error ? html`<p class="error" role="alert">${visible(result.error.message)}</p><ul>${(result.error.body?.errors ?? []).map((/** @type {any} */ one) => html`<li><code>${visible(one.path)}</code> ${visible(one.message)}</li>`)}</ul>` : nothing}`,
    act: () => send(false),
  });
}
