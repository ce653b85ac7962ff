// Taints Nodes of a pool for the reason in an annotation. node:http(s) with a keep-alive agent; watches metadata only, reads before it writes.
//
//   KUBECONFIG=… node tainter.mjs            (DEFECT=NAME puts one in)
//
// The taint is set by a strategic merge patch, so that the taints of others stay, with the uid as precondition.

import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";

const DEFECT = process.env.DEFECT ?? "";
const text = readFileSync(process.env.KUBECONFIG, "utf8");
const field = (name) => text.match(new RegExp(`^\\s*(?:- )?${name}: *['"]?([^'"\\n]*)`, "m"))?.[1];
const server = new URL(field("server"));
const { request, Agent } = server.protocol === "https:" ? https : http;
const authority = field("certificate-authority-data");
const agent = new Agent({ keepAlive: true, ca: authority && Buffer.from(authority, "base64") });
const KEY = "checked.dev/drained";
const REASON = "checked.dev/drained-for";
const DONE = "checked.dev/tainted";
const SILENCE = 13_000;
const META = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

class Refusal extends Error {
  constructor(code, message, seconds = 0) {
    super(`${code} ${message.slice(0, 200)}`);
    this.code = code;
    this.wait = DEFECT === "milliseconds" ? seconds : seconds * 1000;
  }
}

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

function open(method, path, { accept = "application/json", body, type, silence = 10_000 } = {}) {
  return new Promise((done, fail) => {
    const file = field("tokenFile");
    const token = file ? readFileSync(file, "utf8").trim() : field("token");
    const headers = { "User-Agent": "tainter/2.2", Accept: accept };
    if (token) headers.Authorization = `Bearer ${token}`;
    const data = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    if (data) Object.assign(headers, { "Content-Type": type, "Content-Length": data.length });
    const one = request({ host: server.hostname, port: server.port, method, path, headers, agent }, done);
    one.on("error", fail);
    if (silence) one.setTimeout(silence, () => one.destroy(new Error("silence")));
    one.end(data);
  });
}

async function refuse(answer) {
  answer.setEncoding("utf8");
  let told = "";
  for await (const piece of answer) told += piece;
  throw new Refusal(answer.statusCode, told, Number(answer.headers["retry-after"]) || 0);
}

async function call(method, path, options) {
  const answer = await open(method, path, options);
  if (answer.statusCode >= 300) await refuse(answer);
  const pieces = [];
  for await (const piece of answer) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString("utf8"));
}

async function* events(path) {
  const answer = await open("GET", path, { accept: META, silence: DEFECT === "no-timer" ? 0 : SILENCE });
  if (answer.statusCode !== 200) await refuse(answer);
  let pieces = [];
  for await (const piece of answer) {
    let from = 0;
    for (let at; (at = piece.indexOf(10, from)) >= 0; from = at + 1) {
      pieces.push(piece.subarray(from, at));
      yield JSON.parse(Buffer.concat(pieces).toString("utf8"));
      pieces = [];
    }
    pieces.push(piece.subarray(from));
  }
  if (pieces.some((piece) => piece.length)) throw new Error("cut");
}

const nodes = new Map();
const due = new Map(); // name → when
const failures = new Map();
let revision = "";
let wake = () => {};

function plan(name, milliseconds = 0) {
  const at = Date.now() + milliseconds;
  if (!(due.get(name) <= at)) due.set(name, at);
  wake();
}

async function list() {
  const found = new Map();
  let page;
  let next = "";
  do {
    page = await call("GET", `/api/v1/nodes?labelSelector=pool%3Dedge&limit=100${next}`, { accept: LIST });
    for (const one of page.items ?? []) found.set(one.metadata.name, one); // an empty list of metadata has null
    next = page.metadata.continue ? `&continue=${encodeURIComponent(page.metadata.continue)}` : "";
  } while (next);
  for (const name of nodes.keys()) if (!found.has(name)) nodes.delete(name);
  for (const [name, one] of found) {
    if (nodes.get(name)?.metadata.resourceVersion !== one.metadata.resourceVersion) plan(name);
    nodes.set(name, one);
  }
  revision = page.metadata.resourceVersion;
}

async function watch() {
  let came = 0;
  const seconds = 200 + Math.floor(Math.random() * 200);
  const query = `labelSelector=pool%3Dedge&watch=true&allowWatchBookmarks=true&timeoutSeconds=${seconds}`;
  for await (const { type, object } of events(`/api/v1/nodes?${query}&resourceVersion=${revision}`)) {
    if (type === "ERROR") throw new Refusal(object.code ?? 500, object.message ?? "", object.details?.retryAfterSeconds);
    const { name, resourceVersion } = object.metadata;
    if (type === "DELETED") nodes.delete(name);
    else if (type === "ADDED" || type === "MODIFIED" || DEFECT === "bookmarks-too") {
      nodes.set(name, object);
      plan(name);
    } else if (type !== "BOOKMARK") continue;
    if (type !== "BOOKMARK") came += 1;
    revision = resourceVersion;
  }
  return came;
}

async function follow() {
  let pause = 600;
  for (;;) {
    const begun = Date.now();
    let least = 0;
    try {
      if (!revision) await list();
      if ((await watch()) || Date.now() - begun > 2000) {
        pause = 600;
        continue;
      }
      revision = "";
    } catch (error) {
      if (error instanceof Refusal) {
        least = error.wait;
        if (error.code === 410 || error.code === 504) revision = "";
      } else if (error.message === "silence" && Date.now() - begun >= SILENCE) continue;
      else console.log(String(error));
      if (Date.now() - begun > 4000) pause = 600;
    }
    await sleep(Math.max(least, pause * (0.6 + Math.random())));
    pause = Math.min(pause * 2, 30_000);
  }
}

async function taint(name) {
  const known = nodes.get(name);
  if (!known || known.metadata.deletionTimestamp) return;
  const reason = known.metadata.annotations?.[REASON] ?? "unknown";
  if (known.metadata.annotations?.[DONE] === reason) return;
  const node = await call("GET", `/api/v1/nodes/${name}`);
  if (node.metadata.uid !== known.metadata.uid) return; // its own event is on the way
  const mine = { key: KEY, value: "yes", effect: "PreferNoSchedule" };
  const others = (node.spec?.taints ?? []).filter((one) => one.key !== KEY);
  const metadata = { uid: known.metadata.uid, annotations: { [DONE]: reason } };
  const whole = DEFECT === "whole-list";
  const body = { metadata, spec: { taints: whole ? [...others, mine] : [mine] } };
  const type = whole ? "application/merge-patch+json" : "application/strategic-merge-patch+json";
  await call("PATCH", `/api/v1/nodes/${name}`, { body, type });
}

async function work() {
  for (;;) {
    const now = Date.now();
    const [name] = [...due].find(([, at]) => at <= now) ?? [];
    if (name === undefined && !due.has(undefined)) {
      const next = Math.min(...due.values(), now + 1000);
      await Promise.race([sleep(Math.max(next - now, 5)), new Promise((done) => (wake = done))]);
      continue;
    }
    due.delete(name);
    try {
      await taint(name);
      failures.delete(name);
    } catch (error) {
      console.log(name, String(error));
      if (error.code === 404) continue;
      const count = (failures.get(name) ?? 0) + 1;
      failures.set(name, count);
      plan(name, Math.max(error.wait ?? 0, Math.min(250 * 2 ** count, 30_000) * (0.7 + 0.6 * Math.random())));
    }
  }
}

await Promise.race([follow(), work()]);
process.exit(1);
