/** The Requests view: a table of requests, and one request in full: bodies, headers, what it changed. */

import { stringifyExact } from "fk/exact_json";
import { html, nothing } from "lit";
import { copyMenu } from "fk/dialog";
import { pythonLiteral, shellQuote, visible, visibleLines } from "fk/escape";
import { term, withTerm } from "fk/filter";
import { focusPanel } from "fk/focus";
import { bytes, count, dateTime, milliseconds, plural, time } from "fk/format";
import { differencesTable } from "fk/differences";
import { Lazy } from "fk/lazy";
import { positionOf, entryRevisions } from "fk/order";
import { digits } from "fk/revisions";
import { actorCell, changeLine, codeClass, nameOf, requestTitle, timeCell, wroteText } from "fk/rows";
import { Grid } from "fk/table";
import { faultForm } from "fk/fault_form";
import { tabs } from "fk/tabs";
import { yamlBlock } from "fk/yaml_view";

/** @typedef {import("fk/app").App} App */

const grid = new Grid();
/** @type {Lazy | undefined} */
let details;
let section = "response";

/** @type {import("fk/app").View} */
export const requestsView = {
  render(app) {
    grid.onResize = () => app.render();
    const rows = visibleRows(app);
    const { requests } = app.store;
    return grid.template({
      label: "Requests",
      count: rows.length,
      columns: requestColumns(app, rows),
      active: activeIndex(app, rows),
      onActive: (index) => app.open("requests", [String(requests.value("number", rows[index]))]),
      onOpen: () => focusPanel(app),
      rowClass: (index) => ({ refused: requests.value("code", rows[index]) >= 400 }),
      follow: true,
      address: app.route.parts[0],
      empty: emptyRequests(app),
    });
  },
  panel(app) {
    const number = Number(app.route.parts[0]);
    return app.route.parts.length && Number.isInteger(number) ? requestPanel(app, number) : undefined;
  },
  focusTarget: () => grid.element,
};

/** The rows up to the cursor. @param {App} app */
function visibleRows(app) {
  const rows = app.rows.requests;
  if (app.at === null) return rows;
  if (requestRevisions.rows !== rows) requestRevisions = { rows, revisions: entryRevisions(app.store, rows) };
  return rows.subarray(0, positionOf(requestRevisions.revisions, app.at));
}

/** @type {{rows: Int32Array, revisions: Float64Array}} */
let requestRevisions = { rows: new Int32Array(0), revisions: new Float64Array(0) };

/** @param {App} app @param {Int32Array} rows */
function activeIndex(app, rows) {
  const number = Number(app.route.parts[0]);
  const row = app.route.parts.length ? app.store.requests.find(number) : -1;
  return row < 0 ? -1 : indexIn(rows, row);
}

/** The position of a value in ascending values, or -1. @param {Int32Array} rows @param {number} row */
export function indexIn(rows, row) {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle] < row) low = middle + 1;
    else high = middle;
  }
  return rows[low] === row ? low : -1;
}

/** @param {App} app @param {Int32Array} rows @returns {import("fk/table").Column[]} */
function requestColumns(app, rows) {
  const { requests } = app.store;
  const text = (/** @type {string} */ name) => (/** @type {number} */ index) => visible(requests.text(name, rows[index]));
  const value = (/** @type {string} */ name, /** @type {number} */ index) => requests.value(name, rows[index]);
  return [
    { title: "#", width: "58px", class: "number", cell: (index) => value("number", index) },
    { title: "time", width: "104px", class: "mono", min: 700, help: "the cluster's clock, UTC", cell: (index) => timeCell(value("time", index)) },
    { title: "actor", width: "minmax(90px, 1fr)", cell: (index) => actorCell(app, requests.text("actor", rows[index]), requests.text("side", rows[index])) },
    { title: "verb", width: "74px", cell: text("verb") },
    { title: "resource", width: "minmax(90px, 1.1fr)", cell: (index) => visible(requests.text("resource", rows[index]) || requests.text("path", rows[index])) },
    { title: "namespace/name", width: "minmax(90px, 1.6fr)", min: 420, cell: (index) => visible(nameOf(requests, rows[index])) },
    { title: "code", width: "48px", class: "number", cell: (index) => codeCell(value("code", index)) },
    { title: "ms", width: "56px", class: "number", min: 620, cell: (index) => milliseconds(value("ms", index)) },
    { title: "events", width: "56px", class: "number", min: 820, help: "events that a watch delivered", cell: (index) => (value("events", index) >= 0 && requests.text("verb", rows[index]) === "watch" ? count(value("events", index)) : "") },
    { title: "fault", width: "80px", min: 900, cell: (index) => (requests.text("fault", rows[index]) ? html`<span class="fault">★ ${text("fault")(index)}</span>` : "") },
    { title: "→ rev", width: "84px", class: "number", min: 560, help: "the revisions that it wrote", cell: (index) => wroteText(requests, rows[index]) },
  ];
}

/** @param {number} code */
function codeCell(code) {
  return html`<span class=${codeClass(code)}>${code || "…"}</span>`;
}

/** @param {App} app */
export function emptyRequests(app) {
  if (app.store.requests.count) {
    return html`<p>No row matches <code>${visible(app.query || "the range")}</code>. ${count(app.store.requests.count)} requests without it.</p>
      <p><button type="button" @click=${() => app.setQuery("")}>Show all</button></p>`;
  }
  const command = `KUBECONFIG=${shellQuote(app.info.kubeconfig ?? "…")} kubectl create deployment web --image=nginx`;
  return html`<p>Nothing has happened yet.</p>${app.provider.live ? html`<p><code>${visible(command)}</code> ${copyMenu(app, [["kubectl command", () => command]])}</p>` : nothing}`;
}

// ---------------------------------------------------------------- one request

/** @param {App} app @param {number} number */
export function requestPanel(app, number) {
  details ??= new Lazy(app);
  const { requests } = app.store;
  const row = requests.find(number);
  const ended = row >= 0 ? requests.value("code", row) : 0;
  const key = `${number}/${ended}`;
  const entry = details.get(key, () => app.provider.request(number));
  const title = row >= 0 ? requestTitle(requests, row) : `#${number}`;
  return html`<div class="panel-head"><h2>${title}</h2>
      <div class="panel-actions">${row >= 0 ? html`<span class=${codeClass(ended)}>${ended || "in flight"} ${visible(requests.text("why", row))}</span>` : nothing}
        ${entry.state === "done" ? actions(app, row, entry.value) : nothing}<button type="button" class="quiet icon" aria-label="Close the panel" @click=${() => app.open("requests")}>×</button></div></div>
    ${row >= 0 ? facts(app, row) : html`<p class="muted">This request is not among the rows that are kept.</p>`}
    ${entry.state === "loading" ? html`<p class="muted">Reading …</p>` : entry.state === "failed" ? failed(entry, () => details?.forget(key)) : sections(app, row, entry.value)}`;
}

/** @param {{error?: any}} entry @param {() => void} retry */
export function failed(entry, retry) {
  return html`<p class="error" role="alert">${visible(entry.error?.message ?? entry.error)} <button type="button" @click=${retry}>Retry</button></p>`;
}

/** @param {App} app @param {number} row */
function facts(app, row) {
  const { requests } = app.store;
  const items = [
    ["actor", actorCell(app, requests.text("actor", row), requests.text("side", row))],
    ["user", visible(requests.text("user", row))],
    ["agent", visible(requests.text("agent", row))],
    ["time", dateTime(requests.value("time", row))],
    ["took", requests.value("ms", row) >= 0 ? `${milliseconds(requests.value("ms", row))} ms` : "in flight"],
    ["fault", visible(requests.text("fault", row))],
    ["sent", requests.value("sent", row) >= 0 ? bytes(requests.value("sent", row)) : ""],
    ["protocol", visible(requests.text("protocol", row))],
    ["events", requests.text("verb", row) === "watch" ? count(Math.max(0, requests.value("events", row))) : ""],
    ["ended", visible(requests.text("ended", row))],
  ];
  return html`<dl class="facts-list">${items.filter(([, value]) => value !== "" && value !== nothing).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** @param {App} app @param {number} row @param {any} one */
function actions(app, row, one) {
  return html`${copyMenu(app, [
    ["curl", () => curlOf(app, one)],
    ["kubectl", () => kubectlOf(one)],
    ["pytest", () => pytestOf(app, row, one)],
    ["link", () => app.link],
  ])}
  ${app.provider.live
    ? html`<button type="button" ?disabled=${app.readOnly !== ""} title=${app.readOnly || "Open the form of a fault that meets such requests"} @click=${() => faultForm(app, { on: { verbs: one.verb, resource: fullResource(app, row, one), namespace: one.namespace || undefined, name: one.name || undefined }, do: { status: { code: 503 } } })}>Make a fault</button>
      ${one.verb === "watch" ? nothing : html`<button type="button" ?disabled=${app.readOnly !== ""} title=${app.readOnly || "Send it again"} @click=${() => repeat(app, one)}>Repeat…</button>`}`
    : nothing}`;
}

/** @param {App} app @param {number} row @param {any} one */
function fullResource(app, row, one) {
  return row >= 0 ? app.store.requests.text("resource", row) : one.resource;
}

/** @param {any} one */
function urlOf(one) {
  const query = typeof one.query === "string" ? one.query : new URLSearchParams(Object.entries(one.query ?? {}).flatMap(([name, value]) => [value].flat().map((inner) => [name, String(inner)]))).toString();
  return (one.path ?? "") + (query ? `?${query}` : "");
}

/** @param {App} app @param {any} one */
export function curlOf(app, one) {
  const parts = ["curl"];
  if ((one.method ?? "GET") !== "GET") parts.push("-X", one.method);
  const type = Object.entries(one.headers ?? {}).find(([name]) => name.toLowerCase() === "content-type")?.[1];
  if (one.body !== undefined && one.body !== null && one.body !== "") {
    parts.push("-H", shellQuote(`Content-Type: ${type ?? "application/json"}`));
    parts.push("--data-binary", shellQuote(typeof one.body === "string" ? one.body : stringifyExact(one.body)));
  }
  parts.push(shellQuote((app.info.url ?? "") + urlOf(one)));
  return parts.join(" ");
}

/** @param {any} one */
export function kubectlOf(one) {
  const resource = [one.resource, one.group].filter(Boolean).join(".");
  const scope = one.namespace ? ` -n ${shellQuote(one.namespace)}` : "";
  const sub = one.subresource ? ` --subresource=${shellQuote(one.subresource)}` : "";
  const target = `${shellQuote(resource || "")}${one.name ? ` ${shellQuote(one.name)}` : ""}`;
  const body = shellQuote(typeof one.body === "string" ? one.body : stringifyExact(one.body ?? null));
  const verbs = /** @type {Record<string, string>} */ ({
    get: `kubectl get ${target}${scope}${sub} -o yaml`,
    list: `kubectl get ${target}${scope || " -A"}`,
    watch: `kubectl get ${target}${scope || " -A"} --watch`,
    delete: `kubectl delete ${target}${scope}`,
    create: `echo ${body} | kubectl create${scope} -f -`,
    update: `echo ${body} | kubectl replace${scope}${sub} -f -`,
    patch: `kubectl patch ${target}${scope}${sub} --type=merge -p ${body}`,
    apply: `echo ${body} | kubectl apply --server-side${scope} -f -`,
  });
  return resource && verbs[one.verb] ? verbs[one.verb] : `kubectl get --raw ${shellQuote(urlOf(one))}`;
}

/** @param {App} app @param {number} row @param {any} one */
export function pytestOf(app, row, one) {
  const criteria = { verb: one.verb, resource: fullResource(app, row, one) || undefined, namespace: one.namespace || undefined, name: one.name || undefined, status: one.status || one.code || undefined };
  const given = Object.entries(criteria).filter(([, value]) => value !== undefined).map(([name, value]) => `${name}=${pythonLiteral(value)}`);
  return `cluster.requests.where(${given.join(", ")}).one`;
}

/** @param {App} app @param {any} one */
function repeat(app, one) {
  app.openDialog({
    title: "Send this request again?",
    wide: true,
    confirm: `Send ${one.method}`,
    danger: one.method === "DELETE",
    body: html`<p>It is sent as the page's user, by the cluster's control API.</p><pre class="code">${visibleLines(`${one.method} ${urlOf(one)}`)}</pre>${one.body ? yamlBlock(app, one.body, { label: "Body" }) : nothing}`,
    act: async () => {
      const answer = await app.provider.call(`requests/${one.number}/repeat`, { method: "POST", body: {} });
      app.notice(`Answered ${answer.status ?? answer.code ?? ""}`);
    },
  });
}

/** @param {App} app @param {number} row @param {any} one */
function sections(app, row, one) {
  const { requests } = app.store;
  const writes = row >= 0 ? requests.value("writes", row) : 0;
  const items = [
    { id: "response", title: "Response" },
    { id: "request", title: "Request" },
    { id: "headers", title: "Headers" },
    { id: "changed", title: `What it changed${writes ? ` (${writes})` : ""}` },
    { id: "same", title: "Same object" },
    ...(one.deliveries?.length ? [{ id: "deliveries", title: `Deliveries (${one.deliveries.length})` }] : []),
  ];
  const chosen = items.some((item) => item.id === app.route.params.section) ? app.route.params.section : section;
  const choose = (/** @type {string} */ id) => {
    section = id;
    app.set({ section: id });
  };
  return tabs({ label: "Parts of the request", items, chosen, choose, body: BODIES[chosen](app, row, one) });
}

/** @type {Record<string, (app: App, row: number, one: any) => any>} */
const BODIES = {
  request: (app, _row, one) => html`<p class="request-line"><code>${visible(`${one.method ?? ""} ${urlOf(one)}`)}</code></p>${bodyOf(app, one.body, "Request body")}`,
  response: (app, _row, one) => bodyOf(app, one.answer, "Response body"),
  headers: (_app, _row, one) => html`<table class="plain"><caption class="visually-hidden">Headers of the request</caption><thead><tr><th scope="col">header</th><th scope="col">value</th></tr></thead><tbody>${Object.entries(one.headers ?? {}).map(([name, value]) => html`<tr><th scope="row">${visible(name)}</th><td>${visible(value)}</td></tr>`)}</tbody></table>`,
  changed: whatItChanged,
  same: sameObject,
  deliveries,
};

/** @param {App} app @param {any} body @param {string} label */
function bodyOf(app, body, label) {
  if (body === undefined || body === null || body === "") return html`<p class="muted">No body was kept.</p>`;
  if (typeof body === "string") return html`<pre class="code" tabindex="0" aria-label=${label}>${visibleLines(body)}</pre>`;
  const status = body.kind === "Status" && body.status === "Failure" ? html`<p class="status-message"><strong>${visible(body.reason)}</strong> ${visible(body.message)}</p>` : nothing;
  return html`${status}${yamlBlock(app, body, { label })}`;
}

/** @param {App} app @param {number} row @param {any} one */
function whatItChanged(app, row, one) {
  const revisions = revisionsOf(app, row, one);
  if (!revisions.length) return html`<p class="muted">It changed nothing.</p>`;
  return html`${revisions.slice(0, 50).map((revision) => changeDetail(app, revision))}${revisions.length > 50 ? html`<p class="muted">and ${plural(revisions.length - 50, "more change")}</p>` : nothing}`;
}

/** All changes of a request, the indirect ones included. @param {App} app @param {number} row @param {any} one @returns {number[]} */
function revisionsOf(app, row, one) {
  const { changes, requests } = app.store;
  const number = row >= 0 ? requests.value("number", row) : one.number;
  const found = [];
  for (let change = 0; change < changes.count; change++) if (changes.columns.request[change] === number) found.push(changes.columns.revision[change]);
  return found;
}

/** @param {App} app @param {number} revision */
export function changeDetail(app, revision) {
  details ??= new Lazy(app);
  const { changes } = app.store;
  const row = changes.find(revision);
  const key = `c${revision}`;
  const entry = details.get(key, () => app.provider.change(revision));
  const id = row >= 0 ? { resource: changes.text("resource", row), namespace: changes.text("namespace", row), name: changes.text("name", row) } : null;
  return html`<section class="change"><h3>${id ? html`<button type="button" class="link" @click=${() => app.openObject(id, { tab: "history" })}>${changeLine(changes, row)}</button>` : `revision ${digits(revision)}`}${row >= 0 && changes.value("indirect", row) ? html` <span class="tag">indirect</span>` : nothing}</h3>
    ${entry.state === "loading" ? html`<p class="muted">Reading …</p>` : entry.state === "failed" ? failed(entry, () => details?.forget(key)) : html`${entry.value.sentence ? html`<p class="sentence">${visible(entry.value.sentence)}</p>` : nothing}${watchesOf(app, entry.value.delivered)}${differencesTable(app, entry.value, id)}`}
  </section>`;
}

/** The watches of clients that got a change; none before the change is read. @param {App} app @param {number} revision @returns {import("fk/provider_live").Delivered[]} */
export function deliveredTo(app, revision) {
  details ??= new Lazy(app);
  const entry = details.get(`c${revision}`, () => app.provider.change(revision));
  return entry.state === "done" ? (entry.value.delivered ?? []) : [];
}

/** @param {App} app @param {import("fk/provider_live").Delivered[]} delivered */
function watchesOf(app, delivered) {
  if (!delivered?.length) return nothing;
  return html`<p class="delivered">Delivered to ${delivered.slice(0, 20).map((one) => html`<button type="button" class="link" @click=${() => app.open("requests", [String(one.request)], { section: "deliveries" })}>${visible(one.actor)} #${one.request}</button> <span class="muted mono">${time(one.time)}</span> `)}${delivered.length > 20 ? html`and ${plural(delivered.length - 20, "more watch")}` : nothing}</p>`;
}

/** @param {App} app @param {number} row @param {any} one */
function sameObject(app, row, one) {
  const { requests } = app.store;
  const resource = (row >= 0 ? requests.text("resource", row) : one.resource ?? "").split("/")[0];
  const name = one.name || (row >= 0 ? requests.text("name", row) : "");
  if (!name) return html`<p class="muted">The request names no object.</p>`;
  const namespace = one.namespace || (row >= 0 ? requests.text("namespace", row) : "");
  const query = [term("name", name), term("resource", `${resource}`) + `,${resource}/*`].join(" ");
  return html`<p><button type="button" @click=${() => app.openObject({ resource, namespace, name }, { tab: "history" })}>History of ${visible(resource)} ${visible(name)}</button>
    <button type="button" @click=${() => app.open("requests", app.route.parts, { q: withTerm(query, namespace ? term("ns", namespace) : term("ns", "-")) })}>Its requests</button></p>`;
}

/** @param {App} app @param {number} _row @param {any} one */
function deliveries(app, _row, one) {
  return html`<table class="plain"><caption class="visually-hidden">Delivered events</caption><thead><tr><th scope="col">rev</th><th scope="col">delivered</th><th scope="col">change</th></tr></thead><tbody>
    ${one.deliveries.slice(-500).map((/** @type {any} */ delivery) => {
      const [revision, at] = Array.isArray(delivery) ? delivery : [delivery.revision, delivery.time];
      const row = app.store.changes.find(Number(revision));
      return html`<tr><th scope="row">${visible(revision)}</th><td>${typeof at === "number" ? time(at) : visible(at)}</td><td>${row >= 0 ? changeLine(app.store.changes, row) : ""}</td></tr>`;
    })}</tbody></table>`;
}
