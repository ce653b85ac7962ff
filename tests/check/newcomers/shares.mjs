// Copies the data of labelled ConfigMaps into a Secret and says in an annotation which version it has. node:http, a connection for each request.
//
//   KUBECONFIG=… node shares.mjs            (DEFECT=NAME puts one in)
//
// Each object has a task of its own, which runs again if there was news meanwhile.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";

const DEFECT = process.env.DEFECT ?? "";
const text = readFileSync(process.env.KUBECONFIG, "utf8");
const field = (name) => text.match(new RegExp(`^\\s*(?:- )?${name}: *['"]?([^'"\\n]*)`, "m"))?.[1];
const server = new URL(field("server"));
const { request } = server.protocol === "https:" ? https : http;
const authority = field("certificate-authority-data") && Buffer.from(field("certificate-authority-data"), "base64");
const SOURCES = { path: "/api/v1/configmaps", selector: "mirror=yes" };
const COPIES = { path: "/api/v1/secrets", selector: "shares.dev/of" };
const VERSION = "shares.dev/version";
const SILENCE = 12_000;

class Refusal extends Error {
  constructor(code, message, seconds = 0) {
    super(`${code} ${String(message).slice(0, 200)}`);
    this.code = code;
    this.wait = (Number(seconds) || 0) * 1000;
  }
}

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const jittered = (milliseconds) => milliseconds * (0.5 + Math.random());

/** Sends a request on a connection of its own; returns the answer, whose body ends with an error if nothing comes for a while. */
function open(method, path, { body, type, patience = 10_000 } = {}) {
  return new Promise((done, fail) => {
    const file = field("tokenFile");
    const token = file ? readFileSync(file, "utf8").trim() : field("token");
    const headers = { Accept: "application/json", "User-Agent": "shares/1.0", Connection: "close" };
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers["Content-Type"] = type;
    const sent = request({ host: server.hostname, port: server.port, method, path, headers, agent: false, ca: authority }, done);
    sent.on("error", fail);
    if (patience) sent.setTimeout(patience, () => sent.destroy(new Error("silence")));
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function whole(answer) {
  const pieces = [];
  for await (const piece of answer) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

async function call(method, path, options) {
  const answer = await open(method, path, options);
  const told = await whole(answer);
  if (answer.statusCode >= 300) throw new Refusal(answer.statusCode, told, answer.headers["retry-after"]);
  return JSON.parse(told);
}

let begin;
const ready = new Promise((done) => (begin = done)); // both kinds are listed
const tasks = new Map(); // key → what is known of its handling

/** Handles an object; one reconcile for a key at a time, and another one after it if there was news. */
function plan(key, milliseconds = 0) {
  const task = tasks.get(key) ?? { running: false, again: false, failures: 0, timer: undefined };
  tasks.set(key, task);
  if (milliseconds) {
    clearTimeout(task.timer);
    task.timer = setTimeout(() => plan(key), milliseconds);
    return;
  }
  if (task.running) task.again = true;
  else run(key, task);
}

async function run(key, task) {
  task.running = true;
  await ready;
  task.again = false;
  let later = 0;
  try {
    await reconcile(key);
    task.failures = 0;
  } catch (error) {
    console.log(key, error.message);
    if (DEFECT === "drops-refused" && error.code >= 500) task.failures = 0;
    else {
      task.failures += 1;
      later = Math.max(error.wait ?? 0, jittered(Math.min(300 * 2 ** task.failures, 25_000)));
      if (DEFECT === "soon-again") later = Math.max(error.wait ?? 0, 50);
    }
  }
  task.running = false;
  if (later) plan(key, later);
  else if (task.again) plan(key);
}

class Mirror {
  constructor({ path, selector }, keyOf) {
    Object.assign(this, { path, keyOf, query: `labelSelector=${encodeURIComponent(selector)}` });
    this.objects = new Map();
    this.revision = "";
  }

  put(name, object) {
    const old = this.objects.get(name);
    if (object) this.objects.set(name, object);
    else this.objects.delete(name);
    for (const one of [old, object]) if (one) plan(this.keyOf(one));
  }

  async list() {
    const found = new Map();
    let token = "";
    let page;
    do {
      page = await call("GET", `${this.path}?${this.query}&limit=250${token && `&continue=${encodeURIComponent(token)}`}`);
      for (const one of page.items ?? []) found.set(nameOf(one), one);
      token = page.metadata.continue ?? "";
    } while (token);
    for (const name of this.objects.keys()) if (!found.has(name) && DEFECT !== "keeps") this.put(name);
    for (const [name, one] of found)
      if (this.objects.get(name)?.metadata.resourceVersion !== one.metadata.resourceVersion) this.put(name, one);
    this.revision = page.metadata.resourceVersion;
  }

  async watch() {
    const query = `${this.query}&watch=1&allowWatchBookmarks=1&timeoutSeconds=${300 + Math.floor(Math.random() * 200)}`;
    const path = `${this.path}?${query}&resourceVersion=${this.revision}`;
    const answer = await open("GET", path, { patience: DEFECT === "no-limit" ? 0 : SILENCE });
    if (answer.statusCode !== 200) throw new Refusal(answer.statusCode, await whole(answer), answer.headers["retry-after"]);
    let rest = Buffer.alloc(0);
    let came = 0;
    for await (const piece of answer) {
      rest = rest.length ? Buffer.concat([rest, piece]) : piece;
      for (let at; (at = rest.indexOf(10)) >= 0; rest = rest.subarray(at + 1)) {
        came += this.take(JSON.parse(rest.subarray(0, at).toString("utf8")));
      }
    }
    if (rest.length) throw new Error("cut");
    return came;
  }

  take({ type, object }) {
    if (type === "ERROR") throw new Refusal(object.code ?? 500, object.message);
    if (!["ADDED", "MODIFIED", "DELETED", "BOOKMARK"].includes(type)) return 0;
    this.revision = object.metadata.resourceVersion;
    if (DEFECT === "as-number") this.revision = String(Number(this.revision));
    if (type === "BOOKMARK") return 0;
    this.put(nameOf(object), type === "DELETED" ? undefined : object);
    return 1;
  }

  async follow(listed) {
    let pause = 700;
    for (;;) {
      const begun = Date.now();
      let least = 0;
      try {
        if (!this.revision) await this.list();
        listed();
        if ((await this.watch()) || Date.now() - begun > 2000) {
          pause = 700;
          continue;
        }
        this.revision = "";
      } catch (error) {
        console.log(this.path, error.message);
        least = error.wait ?? 0;
        if (error.code === 410 || error.code === 504) this.revision = "";
        if (DEFECT === "unhandled-500" && error.code === 500) throw error;
      }
      if (Date.now() - begun > 8000) pause = 700;
      await sleep(Math.max(least, jittered(pause)));
      pause = Math.min(pause * 2, 28_000);
    }
  }
}

const nameOf = ({ metadata }) => `${metadata.namespace}/${metadata.name}`;
const sources = new Mirror(SOURCES, nameOf);
const copies = new Mirror(COPIES, ({ metadata }) => `${metadata.namespace}/${metadata.labels["shares.dev/of"]}`);

async function reconcile(key) {
  const source = sources.objects.get(key);
  if (!source || source.metadata.deletionTimestamp) return;
  const { namespace, name, uid } = source.metadata;
  const data = Object.fromEntries(Object.entries(source.data ?? {}).map(([k, v]) => [k, Buffer.from(v).toString("base64")]));
  const version = createHash("sha256").update(JSON.stringify(data)).digest("hex").slice(0, 12);
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  const copy = copies.objects.get(`${namespace}/${name}-share`);
  if (!copy) {
    const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name, uid, controller: true }];
    const metadata = { name: `${name}-share`, labels: { "shares.dev/of": name }, annotations: { [VERSION]: version }, ownerReferences };
    try {
      await call("POST", path, { body: { metadata, data }, type: "application/json" });
    } catch (error) {
      if (error.code !== 409) throw error;
      const there = await call("GET", `${path}/${name}-share`);
      const owner = there.metadata.ownerReferences?.find((one) => one.controller);
      if (DEFECT !== "believes" && owner?.uid !== uid) throw new Error(`${name}-share is somebody else's`);
    }
  } else {
    const owner = copy.metadata.ownerReferences?.find((one) => one.controller);
    if (owner?.uid !== uid) return;
    if (copy.metadata.annotations?.[VERSION] !== version || JSON.stringify(copy.data) !== JSON.stringify(data)) {
      const changed = structuredClone(copy);
      changed.data = data;
      changed.metadata.annotations = { ...(DEFECT === "own-notes" ? {} : changed.metadata.annotations), [VERSION]: version };
      if (DEFECT === "last-wins") delete changed.metadata.resourceVersion;
      await call("PUT", `${path}/${name}-share`, { body: changed, type: "application/json" });
    }
  }
  if (source.metadata.annotations?.[VERSION] !== version) {
    const metadata = { uid, annotations: { [VERSION]: version } };
    try {
      await call("PATCH", `/api/v1/namespaces/${namespace}/configmaps/${name}`, { body: { metadata }, type: "application/merge-patch+json" });
    } catch (error) {
      if (error.code !== 404 && error.code !== 409) throw error; // gone, or another one: its event comes
    }
  }
}

const listed = new Set();
for (const one of [copies, sources]) {
  one.follow(() => {
    if (listed.add(one).size === 2) begin();
  });
}
