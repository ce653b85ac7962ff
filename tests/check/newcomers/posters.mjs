// Puts Posters on walls: as many ConfigMaps as spec.walls says, an annotation by a JSON patch, and a status. fetch, and a task for each key.
//
//   KUBECONFIG=… node posters.mjs            (DEFECT=NAME puts one in)

import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";

const DEFECT = process.env.DEFECT ?? "";
const text = readFileSync(process.env.KUBECONFIG, "utf8");
const field = (name) => text.match(new RegExp(`^\\s*(?:- )?${name}: *['"]?([^'"\\n]*)`, "m"))?.[1];
const SERVER = field("server").replace(/\/$/, "");
const API = "/apis/checked.dev/v1";
const OF = "posters.checked.dev/of";
const HUNG = "posters.checked.dev/hung";
const SILENCE = 13_000;

class Refusal extends Error {
  constructor(code, message, seconds = 0) {
    super(`${code} ${String(message).slice(0, 160)}`);
    this.code = code;
    this.wait = (Number(seconds) || 0) * 1000;
  }
}

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const jittered = (milliseconds) => milliseconds * (0.5 + Math.random());

async function send(method, path, { body, type = "application/json", signal } = {}) {
  const file = field("tokenFile");
  const token = file ? readFileSync(file, "utf8").trim() : field("token");
  const headers = { Accept: "application/json", "User-Agent": "posters/2.0", "Accept-Encoding": "identity" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = type;
  const answer = await fetch(SERVER + path, {
    method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: signal ?? AbortSignal.timeout(10_000),
  });
  if (answer.status < 300) return answer;
  const after = DEFECT === "only-429" && answer.status !== 429 ? 0 : answer.headers.get("retry-after");
  throw new Refusal(answer.status, await answer.text(), after);
}

const call = async (method, path, options) => (await send(method, path, options)).json();

// ------------------------------------------------------------------ objects

const keyOf = (object) => `${object.metadata.namespace}/${object.metadata.name}`;

class Informer {
  constructor(path, selector, told) {
    Object.assign(this, { path, selector, told, items: new Map(), revision: "" });
    this.filled = new Promise((done) => (this.fill = done));
  }

  async run() {
    let pause = 800;
    for (;;) {
      const begun = Date.now();
      let least = 0;
      try {
        if (!this.revision) await this.list();
        const came = await this.watch();
        if (came || Date.now() - begun > 1500) {
          pause = 800;
          continue;
        }
        this.revision = "";
      } catch (problem) {
        if (problem.name === "Silence") continue;
        least = problem.wait ?? 0;
        if ([410, 504].includes(problem.code)) this.revision = "";
        console.log(this.path, String(problem));
      }
      await sleep(Math.max(least, jittered(pause)));
      pause = Math.min(pause * 2, 30_000);
    }
  }

  async list() {
    const found = new Map();
    let page;
    for (let token = ""; !page || token; ) {
      page = await call("GET", `${this.path}?limit=250${this.selector}${token && `&continue=${encodeURIComponent(token)}`}`);
      for (const object of page.items) found.set(keyOf(object), object);
      token = page.metadata.continue ?? "";
    }
    const gone = [...this.items.values()].filter((object) => !found.has(keyOf(object)));
    this.items = found;
    this.revision = page.metadata.resourceVersion;
    this.fill();
    for (const object of [...gone, ...found.values()]) this.told(object);
  }

  async watch() {
    const silent = new AbortController();
    const give = () => silent.abort(Object.assign(new Error("silence"), { name: "Silence" }));
    let timer = setTimeout(give, SILENCE);
    const seconds = 280 + Math.floor(Math.random() * 100);
    const query = `watch=1&allowWatchBookmarks=true&timeoutSeconds=${seconds}&resourceVersion=${this.revision}${this.selector}`;
    let came = 0;
    try {
      const answer = await send("GET", `${this.path}?${query}`, { signal: silent.signal });
      let rest = Buffer.alloc(0);
      for await (const piece of answer.body) {
        clearTimeout(timer);
        timer = setTimeout(give, SILENCE);
        rest = Buffer.concat([rest, piece]);
        for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
          const event = JSON.parse(rest.subarray(0, end).toString("utf8"));
          rest = rest.subarray(end + 1);
          came += this.take(event);
        }
      }
      if (rest.length) throw new Error("cut within an event");
    } finally {
      clearTimeout(timer);
      silent.abort();
    }
    return came;
  }

  take({ type, object }) {
    if (type === "ERROR") throw new Refusal(object.code ?? 500, object.message, object.details?.retryAfterSeconds);
    if (!["ADDED", "MODIFIED", "DELETED", "BOOKMARK"].includes(type)) return 0;
    this.revision = object.metadata.resourceVersion;
    if (type === "BOOKMARK") return 0;
    if (type === "DELETED") this.items.delete(keyOf(object));
    else this.items.set(keyOf(object), object);
    this.told(object);
    return 1;
  }
}

// ------------------------------------------------------------------ tasks

const tasks = new Map();

/** Handles a key when all is listed; after a failure when some time has passed. */
function plan(key, milliseconds = 0) {
  if (!ready) return;
  const task = tasks.get(key) ?? { running: false, again: false, failures: 0, timer: undefined };
  tasks.set(key, task);
  if (milliseconds) {
    if (DEFECT !== "two-timers") clearTimeout(task.timer);
    task.timer = setTimeout(() => plan(key), milliseconds);
    return;
  }
  if (task.running && DEFECT !== "in-parallel") task.again = DEFECT !== "drops-while-busy";
  else run(key, task);
}

async function run(key, task) {
  task.running = true;
  task.again = false;
  try {
    await reconcile(key);
    task.failures = 0;
  } catch (problem) {
    if (problem.code !== 404) {
      console.log(key, String(problem));
      task.failures += 1;
      plan(key, Math.max(problem.wait ?? 0, jittered(Math.min(100 * 2 ** task.failures, 20_000))));
      if (DEFECT === "two-timers") plan(key, jittered(Math.min(100 * 2 ** task.failures, 20_000)));
    }
  }
  task.running = false;
  if (task.again) plan(key);
}

// ------------------------------------------------------------------ what is wanted

const posters = new Informer(`${API}/posters`, "", (object) => plan(keyOf(object)));
const walls = new Informer("/api/v1/configmaps", `&labelSelector=${encodeURIComponent(OF)}`, (object) => {
  const owner = object.metadata.ownerReferences?.find((one) => one.controller);
  if (owner) plan(`${object.metadata.namespace}/${owner.name}`);
});
const counts = new Map();
let ready = false;

function contentOf(poster) {
  const { text = "", colour, weight = 0, sizes = [] } = poster.spec ?? {};
  return { text, colour: DEFECT === "false-is-left-out" ? (colour ? "yes" : undefined) : colour ? "yes" : "no", weight: String(weight), sizes: sizes.join(",") };
}

async function reconcile(key) {
  const poster = posters.items.get(key);
  if (!poster || poster.metadata.deletionTimestamp) return;
  const { name, namespace, uid, generation } = poster.metadata;
  const own = [...walls.items.values()].filter(
    (one) => one.metadata.ownerReferences?.some((owner) => owner.controller && owner.uid === uid),
  );
  let wanted = poster.spec?.walls ?? 0;
  if (DEFECT === "walls-once") {
    if (!counts.has(uid)) counts.set(uid, Math.max(wanted, own.length));
    wanted = counts.get(uid);
  }
  const place = `/api/v1/namespaces/${namespace}/configmaps`;
  const data = contentOf(poster);
  for (let number = 0; number < wanted; number += 1) {
    const wall = walls.items.get(`${namespace}/${name}-${number}`);
    if (!wall) await hang(poster, place, number, data);
    else if (!wall.metadata.ownerReferences?.some((owner) => owner.controller && owner.uid === uid)) throw new Refusal(409, "the wall belongs to another one");
    else if (DEFECT === "sizes-add" ? lacks(wall, data) : Object.keys(data).some((one) => data[one] !== undefined && wall.data?.[one] !== data[one])) {
      const change = { metadata: { uid: wall.metadata.uid }, data: DEFECT === "sizes-add" ? { ...data, sizes: union(wall, data) } : data };
      await call("PATCH", `${place}/${wall.metadata.name}`, { body: change, type: "application/merge-patch+json" });
    }
  }
  if (DEFECT !== "only-more") {
    for (const wall of own) {
      if (Number(wall.metadata.name.slice(name.length + 1)) < wanted || wall.metadata.deletionTimestamp) continue;
      await removed(`${place}/${wall.metadata.name}`, wall.metadata.uid);
    }
  }
  await annotate(poster, createHash("sha1").update(JSON.stringify([data, wanted])).digest("hex").slice(0, 12));
  const count = DEFECT === "counts-all" ? [...walls.items.values()].filter((one) => one.metadata.labels[OF] === name).length : Math.min(own.length, wanted);
  const status = { observedGeneration: generation, walls: DEFECT === "counts-all" ? count : wanted };
  if (DEFECT === "never-observed-again" && poster.status?.observedGeneration) status.observedGeneration = poster.status.observedGeneration;
  if (Object.keys(status).some((one) => poster.status?.[one] !== status[one])) {
    const change = { metadata: { uid }, status };
    await call("PATCH", `${API}/namespaces/${namespace}/posters/${name}/status`, { body: change, type: "application/merge-patch+json" });
  }
}

const union = (wall, data) => [...new Set([...(wall.data?.sizes ?? "").split(","), ...data.sizes.split(",")])].filter(Boolean).join(",");
const lacks = (wall, data) => Object.keys(data).some((one) => wall.data?.[one] !== (one === "sizes" ? union(wall, data) : data[one]));

async function hang(poster, place, number, data) {
  const { name, uid } = poster.metadata;
  const owner = { apiVersion: "checked.dev/v1", kind: "Poster", name, uid, controller: true };
  const metadata = { name: `${name}-${number}`, labels: { [OF]: name }, ownerReferences: [owner] };
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
  for (;;) {
    try {
      await call("POST", place, { body });
      return;
    } catch (problem) {
      if (problem.code !== 409) throw problem;
      const present = await call("GET", `${place}/${name}-${number}`);
      if (present.metadata.ownerReferences?.some((one) => one.uid === uid)) return;
      if (DEFECT !== "again-after-409") throw problem;
      await sleep(300);
    }
  }
}

async function removed(path, uid) {
  try {
    await call("DELETE", path, { body: { preconditions: { uid } } });
  } catch (problem) {
    if (problem.code !== 404 && problem.code !== 409) throw problem;
  }
}

async function annotate(poster, digest) {
  const { name, namespace, annotations, resourceVersion } = poster.metadata;
  if (annotations?.[HUNG] === digest) return;
  const operations = [{ op: "test", path: "/metadata/resourceVersion", value: resourceVersion }];
  if (DEFECT === "whole-map") operations.splice(0, 1, { op: "add", path: "/metadata/annotations", value: { ...annotations, [HUNG]: digest } });
  else if (!annotations) operations.push({ op: "add", path: "/metadata/annotations", value: { [HUNG]: digest } });
  else operations.push({ op: "add", path: `/metadata/annotations/${HUNG.replace("/", "~1")}`, value: digest });
  try {
    await call("PATCH", `${API}/namespaces/${namespace}/posters/${name}`, { body: operations, type: "application/json-patch+json" });
  } catch (problem) {
    if (problem.code !== 422 && problem.code !== 409) throw problem;
    if (DEFECT !== "test-failed-is-fine") throw new Refusal(409, "the poster has changed", 0);
  }
}

for (const informer of [walls, posters]) informer.run();
await Promise.all([walls.filled, posters.filled]);
ready = true;
for (const key of posters.items.keys()) plan(key);
