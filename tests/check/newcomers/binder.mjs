// A scheduler: binds each pod that names it to the node with the fewest pods, and says so in an annotation. fetch, async iterators.
// KUBECONFIG=… node binder.mjs            (DEFECT=NAME puts one in)
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const DEFECT = process.env.DEFECT ?? '';
const CONFIG = fs.readFileSync(process.env.KUBECONFIG, 'utf8');
const field = (name) => new RegExp(`${name}:\\s*"?([^"\\n]+)"?`).exec(CONFIG)?.[1]?.trim();
const SERVER = field('server');
const NOTE = 'binder.dev/bound';
const between = (low, high) => low + Math.random() * (high - low);
const key = ({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`;

class Refused extends Error {
  constructor(code, text, after = 0) {
    super(`${code} ${text}`);
    Object.assign(this, { code, after });
  }
}

function headers(more = {}) {
  const token = field('tokenFile') ? fs.readFileSync(field('tokenFile'), 'utf8').trim() : field('token');
  return { 'User-Agent': 'binder/0.3', Accept: 'application/json', ...(token ? { Authorization: `Bearer ${token}` } : {}), ...more };
}

async function send(method, path, { body, type = 'application/json', signal = AbortSignal.timeout(12_000) } = {}) {
  const options = { method, headers: headers(body ? { 'Content-Type': type } : {}), signal };
  const answer = await fetch(SERVER + path, { ...options, ...(body ? { body: JSON.stringify(body) } : {}) });
  if (answer.ok) return answer;
  const text = await answer.text();
  const after = Number(answer.headers.get('Retry-After'));
  let reason = text.slice(0, 80);
  try {
    reason = JSON.parse(text).reason;
  } catch (error) {
    if (DEFECT === 'json-only') throw error;
  }
  throw new Refused(answer.status, reason, Number.isFinite(after) ? after : 0);
}

const call = async (method, path, options) => (await send(method, path, options)).json();

class Informer {
  constructor(path, selector, changed) {
    Object.assign(this, { path, selector, changed, store: new Map(), revision: '', failures: 0 });
    this.synced = new Promise((resolve) => Object.assign(this, { resolve }));
  }

  url(query) {
    return `${this.path}?${new URLSearchParams({ ...(this.selector ? { labelSelector: this.selector } : {}), ...query })}`;
  }

  async run() {
    for (;;) {
      const begun = Date.now();
      let least = 0;
      try {
        if (!this.revision) await this.list();
        const told = await this.watch();
        if (told || Date.now() - begun > 2000) {
          this.failures = 0;
          continue;
        }
        this.revision = '';
      } catch (error) {
        if (error.name === 'SyntaxError' && DEFECT === 'json-only') return;
        if (error.code === 410 || error.code === 504) this.revision = '';
        least = (error.after ?? 0) * 1000;
        console.log(this.path, String(error));
        if (error.message === 'silence') {
          this.failures = 0;
          continue;
        }
      }
      if (Date.now() - begun > 15_000) this.failures = 0;
      const longest = DEFECT === 'overflow' ? 2 ** 40 : 25_000;
      const factor = DEFECT === 'overflow' ? 60 : 2;
      await sleep(least + Math.min(longest, 800 * factor ** this.failures++) * between(0.75, 1.5));
    }
  }

  async list() {
    const found = new Map();
    let token = '';
    let page;
    do {
      try {
        page = await call('GET', this.url({ limit: '100', ...(token ? { continue: token } : {}) }));
      } catch (error) {
        if (error.code !== 410 || !token) throw error;
        found.clear();
        page = await call('GET', this.url({}));
      }
      for (const one of page.items ?? []) found.set(key(one), one);
      token = page.metadata.continue ?? '';
    } while (token);
    const before = this.store;
    this.store = found;
    this.revision = page.metadata.resourceVersion;
    for (const [name, one] of before) if (!found.has(name)) this.changed(one, true);
    for (const one of found.values()) this.changed(one, false);
    this.resolve();
  }

  async watch() {
    const controller = new AbortController();
    let timer;
    const arm = () => {
      clearTimeout(timer);
      timer = setTimeout(() => controller.abort(new Error('silence')), DEFECT === 'no-timer' ? 10 ** 9 : 14_000);
    };
    arm();
    let told = false;
    try {
      const query = { watch: '1', allowWatchBookmarks: 'true', timeoutSeconds: '290', resourceVersion: this.revision };
      const answer = await send('GET', this.url(query), { signal: controller.signal });
      if (DEFECT === 'resets-at-200') this.failures = 0;
      const decoder = new TextDecoder();
      let rest = '';
      for await (const piece of answer.body) {
        arm();
        rest += decoder.decode(piece, { stream: true });
        const lines = rest.split('\n');
        rest = lines.pop();
        for (const line of lines) told = this.take(JSON.parse(line)) || told;
      }
    } catch (error) {
      throw controller.signal.aborted ? new Error('silence') : error;
    } finally {
      clearTimeout(timer);
    }
    return told;
  }

  take({ type, object }) {
    if (type === 'ERROR') throw new Refused(object.code ?? 500, object.reason);
    if (!['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'].includes(type)) return false;
    this.revision = object.metadata.resourceVersion;
    if (type === 'BOOKMARK') return false;
    if (type === 'DELETED') this.store.delete(key(object));
    else this.store.set(key(object), object);
    this.changed(object, type === 'DELETED');
    return true;
  }
}

// Work by key: one at a time, again if it has changed meanwhile, and later if it fails.
class Work {
  constructor(handle) {
    Object.assign(this, { handle, busy: new Set(), again: new Set(), failures: new Map(), timers: new Map() });
  }

  add(name) {
    clearTimeout(this.timers.get(name));
    this.timers.delete(name);
    if (this.busy.has(name)) this.again.add(name);
    else this.run(name);
  }

  async run(name) {
    this.busy.add(name);
    try {
      await this.handle(name);
      this.failures.delete(name);
    } catch (error) {
      console.log(name, String(error));
      if (!(error instanceof Refused || error instanceof TypeError || error.name === 'TimeoutError' || error instanceof SyntaxError)) throw error;
      const count = (this.failures.get(name) ?? 0) + 1;
      this.failures.set(name, count);
      const pause = Math.min(20_000, 150 * 2 ** (count - 1)) * between(0.75, 1.5);
      if (!(DEFECT === 'four-times' && count > 4)) {
        this.timers.set(name, setTimeout(() => this.add(name), Math.max(pause, (error.after ?? 0) * 1000)));
      }
    } finally {
      this.busy.delete(name);
      if (this.again.delete(name)) this.add(name);
    }
  }
}

const work = new Work(place);
const assumed = new Map(); // pod → uid and node, until the cache shows it
const podChanged = (pod, gone) => {
  if (gone) {
    if (DEFECT !== 'assumes-by-name') assumed.delete(key(pod));
  } else if (pod.spec.nodeName && DEFECT !== 'assumes-by-name') assumed.delete(key(pod));
  work.add(key(pod));
};
const pods = new Informer('/api/v1/pods', 'binder=yes', podChanged);
const nodes = new Informer('/api/v1/nodes', 'binder=yes', () => {
  if (DEFECT === 'no-nodes-no-pod') return;
  for (const [name, pod] of pods.store) if (!pod.spec.nodeName) work.add(name);
});

function choose() {
  const counts = new Map();
  for (const { spec } of pods.store.values()) counts.set(spec.nodeName, (counts.get(spec.nodeName) ?? 0) + 1);
  for (const { node } of assumed.values()) counts.set(node, (counts.get(node) ?? 0) + 1);
  const free = [...nodes.store.values()].filter(({ metadata, spec }) => !metadata.deletionTimestamp && !spec?.unschedulable);
  free.sort((one, other) => (counts.get(one.metadata.name) ?? 0) - (counts.get(other.metadata.name) ?? 0));
  return free[0]?.metadata.name;
}

async function place(name) {
  const pod = pods.store.get(name);
  if (!pod || pod.metadata.deletionTimestamp || pod.spec.schedulerName !== 'binder') return;
  const path = `/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}`;
  if (pod.spec.nodeName) return note(pod, path);
  const known = assumed.get(name);
  if (known && (known.uid === pod.metadata.uid || DEFECT === 'assumes-by-name')) return;
  const node = choose();
  if (!node) return;
  assumed.set(name, { uid: pod.metadata.uid, node });
  const target = { apiVersion: 'v1', kind: 'Node', name: node };
  const metadata = { name: pod.metadata.name, uid: pod.metadata.uid };
  try {
    await send('POST', `${path}/binding`, { body: { apiVersion: 'v1', kind: 'Binding', metadata, target } });
  } catch (error) {
    if (DEFECT !== 'assumes-for-ever') assumed.delete(name);
    if (error.code === 404 || error.code === 409) return; // gone, or bound by another: an event tells
    throw error;
  }
}

async function note(pod, path) {
  if (pod.metadata.annotations?.[NOTE] === pod.spec.nodeName) return;
  const metadata = { uid: pod.metadata.uid, annotations: { [NOTE]: pod.spec.nodeName } };
  if (DEFECT === 'all-notes') metadata.annotations = { ...pod.metadata.annotations, ...metadata.annotations };
  try {
    await send('PATCH', path, { body: { metadata }, type: 'application/merge-patch+json' });
  } catch (error) {
    if (error.code !== 404 && error.code !== 409) throw error;
  }
}

pods.run();
nodes.run();
