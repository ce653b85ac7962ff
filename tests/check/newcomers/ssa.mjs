// Applies a Secret for each ConfigMap with a label, and holds the ConfigMap by a finalizer until the Secret is gone. fetch of node.
//
//   KUBECONFIG=… node ssa.mjs            (DEFECT=NAME puts one in)

import { readFileSync } from "node:fs";

const DEFECT = process.env.DEFECT ?? "";
const text = readFileSync(process.env.KUBECONFIG, "utf8");
const field = (name) => text.match(new RegExp(`^\\s*(?:- )?${name}: *['"]?([^'"\\n]*)`, "m"))?.[1];
const server = field("server");
process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"; // fetch takes no certificates of authorities
process.removeAllListeners("warning");
const FINALIZER = "held.dev/secret";
const MANAGER = DEFECT === "new-manager" ? `held-${process.pid}` : "held";
const SILENCE = 12_000;

class Failure extends Error {
  constructor(code, message, after = 0) {
    super(`${code} ${message.slice(0, 200)}`);
    this.code = code;
    this.after = after;
  }
}

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function open(method, path, body, type = "application/json", signal = AbortSignal.timeout(10_000)) {
  const file = field("tokenFile");
  const token = file ? readFileSync(file, "utf8").trim() : field("token");
  const headers = { "User-Agent": "held/0.8", Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = type;
  const answer = await fetch(server + path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.ok) return answer;
  const after = Number(answer.headers.get("retry-after") ?? 0) || 0;
  throw new Failure(answer.status, await answer.text(), after);
}

const call = async (...request) => (await open(...request)).json();

const maps = new Map();
const secrets = new Map();
const queue = new Set();
const failures = new Map();
const later = new Map();
let wake = () => {};

function add(key) {
  clearTimeout(later.get(key));
  later.delete(key);
  queue.add(key);
  wake();
}

const keyOf = (object) => `${object.metadata.namespace}/${object.metadata.name}`;

async function follow(path, selector, store, told) {
  let revision = null;
  let pause = 500;
  for (;;) {
    const begun = performance.now();
    let came = 0;
    let least = 0;
    try {
      if (revision === null) {
        const found = new Map();
        let token = "";
        do {
          const query = new URLSearchParams({ labelSelector: selector, limit: "80", ...(token && { continue: token }) });
          const page = await call("GET", `${path}?${query}`);
          for (const item of page.items) found.set(keyOf(item), item);
          token = page.metadata.continue ?? "";
          revision = page.metadata.resourceVersion;
          if (token) revision = null;
        } while (token);
        const gone = [...store].filter(([key]) => !found.has(key));
        store.clear();
        for (const [key, item] of found) store.set(key, item);
        for (const object of [...found.values(), ...gone.map((pair) => pair[1])]) told(object);
      }
      const query = new URLSearchParams({
        watch: "true", allowWatchBookmarks: "true", labelSelector: selector, resourceVersion: revision,
        timeoutSeconds: String(200 + Math.floor(Math.random() * 200)),
      });
      const control = new AbortController();
      let timer = setTimeout(() => control.abort(), SILENCE);
      try {
        const answer = await open("GET", `${path}?${query}`, undefined, undefined, control.signal);
        const decoder = new TextDecoder();
        let rest = "";
        for await (const piece of answer.body) {
          timer.refresh();
          rest += decoder.decode(piece, { stream: true });
          for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n")) {
            const { type, object } = JSON.parse(rest.slice(0, at));
            rest = rest.slice(at + 1);
            if (type === "ERROR") throw new Failure(object.code ?? 500, object.message ?? "");
            if (!["ADDED", "MODIFIED", "DELETED", "BOOKMARK"].includes(type)) continue;
            revision = object.metadata.resourceVersion;
            if (type === "BOOKMARK") continue;
            came += 1;
            if (type === "DELETED") store.delete(keyOf(object));
            else store.set(keyOf(object), object);
            told(object);
          }
        }
      } finally {
        clearTimeout(timer);
        control.abort();
      }
      if (came || performance.now() - begun > 1000) {
        pause = 500;
        continue;
      }
      revision = null;
    } catch (problem) {
      if (problem.code === 410 || problem.code === 504) revision = null;
      least = (problem.after ?? 0) * 1000;
      if (came || performance.now() - begun > 8000) pause = 500;
    }
    await sleep(Math.max(least, pause * (0.6 + Math.random())));
    pause = Math.min(pause * 2, 30_000);
  }
}

async function reconcile(key) {
  const source = maps.get(key);
  if (!source) return;
  const [namespace, name] = key.split("/");
  const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  const place = `/api/v1/namespaces/${namespace}/secrets/${name}`;
  const { uid, resourceVersion, finalizers = [], deletionTimestamp } = source.metadata;
  const guard = DEFECT === "blind-finalizers" ? {} : { resourceVersion };
  const secret = secrets.get(key);
  const isOurs = secret?.metadata.labels?.["held.dev/uid"] === uid;
  if (deletionTimestamp) {
    if (!finalizers.includes(FINALIZER)) return;
    const there = secret ?? (await call("GET", place).catch((problem) => {
      if (problem.code !== 404) throw problem;
    }));
    if (there && there.metadata.labels?.["held.dev/uid"] === uid) {
      const options = DEFECT === "by-name" ? {} : { preconditions: { uid: there.metadata.uid } };
      await call("DELETE", place, options).catch((problem) => {
        if (problem.code !== 404 && problem.code !== 409) throw problem;
      });
    }
    const kept = finalizers.filter((one) => one !== FINALIZER);
    await call("PATCH", path, { metadata: { finalizers: kept, ...guard } }, "application/merge-patch+json");
    return;
  }
  if (!finalizers.includes(FINALIZER)) {
    await call("PATCH", path, { metadata: { finalizers: [...finalizers, FINALIZER], ...guard } }, "application/merge-patch+json");
  }
  const wanted = Buffer.from(JSON.stringify(source.data ?? {})).toString("base64");
  if (secret && !isOurs) throw new Failure(409, "the Secret belongs to another object");
  if (!secret) {
    const there = await call("GET", place).catch((problem) => {
      if (problem.code !== 404) throw problem;
    });
    if (there && there.metadata.labels?.["held.dev/uid"] !== uid) throw new Failure(409, "the Secret belongs to another object");
  }
  if (!secret || secret.data?.text !== wanted) {
    const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name, uid, controller: true }];
    const metadata = { name, labels: { "held.dev": "yes", "held.dev/uid": uid }, ownerReferences };
    const body = { apiVersion: "v1", kind: "Secret", metadata, data: { text: wanted } };
    if (DEFECT === "not-forced") await call("PATCH", `${place}?fieldManager=${MANAGER}`, body, "application/apply-patch+yaml");
    else await call("PATCH", `${place}?fieldManager=${MANAGER}&force=true`, body, "application/apply-patch+yaml");
  }
}

async function work() {
  for (;;) {
    if (!queue.size) await new Promise((done) => (wake = done));
    for (const key of [...queue]) {
      queue.delete(key);
      try {
        await reconcile(key);
        failures.delete(key);
      } catch (problem) {
        if (problem.code === 404) continue;
        const count = (failures.get(key) ?? 0) + 1;
        failures.set(key, count);
        const pause = Math.min(200 * 2 ** count, 20_000) * (0.7 + Math.random() * 0.7);
        later.set(key, setTimeout(() => add(key), Math.max(pause, (problem.after ?? 0) * 1000)));
      }
    }
  }
}

const both = [
  follow("/api/v1/secrets", "held.dev=yes", secrets, (object) => add(keyOf(object))),
  follow("/api/v1/configmaps", "mirror=yes", maps, (object) => add(keyOf(object))),
];
await Promise.all([...both, work()]);
