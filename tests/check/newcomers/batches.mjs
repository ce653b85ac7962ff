// Runs a batch for each selected ConfigMap: two Secrets with generated names, a finalizer, and a note when they are there.
// KUBECONFIG=… node batches.mjs            (DEFECT=NAME puts one in)
//
// What was created is expected in the cache; until it is there, or five seconds have passed, nothing more is created.
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import crypto from 'node:crypto';

const DEFECT = process.env.DEFECT ?? '';
const text = fs.readFileSync(process.env.KUBECONFIG, 'utf8');
const field = (name) => new RegExp(`${name}:\\s*"?([^"\\n]+)"?`).exec(text)?.[1]?.trim();
const SERVER = new URL(field('server'));
const CA = field('certificate-authority-data');
const TOKEN_FILE = field('tokenFile');
const SELECTOR = 'mirror=yes';
const OURS = 'batches.dev/of';
const FINAL = 'batches.dev/cleanup';
const PARTS = ['first', 'second'];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const between = (low, high) => low + Math.random() * (high - low);

class Refused extends Error {
  constructor(code, reason, after) {
    super(`${code} ${reason}`);
    this.code = code;
    this.after = after;
  }
}

function open(method, path, body, type, idle) {
  const token = TOKEN_FILE ? fs.readFileSync(TOKEN_FILE, 'utf8').trim() : field('token');
  const headers = { 'User-Agent': 'batches/3.2', Accept: 'application/json', ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const sent = body === undefined ? undefined : JSON.stringify(body);
  if (sent !== undefined) Object.assign(headers, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(sent) });
  const secure = SERVER.protocol === 'https:';
  return new Promise((resolve, reject) => {
    const options = { method, headers, agent: false, ...(secure ? { ca: CA && Buffer.from(CA, 'base64').toString() } : {}) };
    const request = (secure ? https : http).request(new URL(path, SERVER), options, (answer) => {
      answer.on('error', () => {});
      resolve(answer);
    });
    if (idle && DEFECT !== 'no-idle') request.setTimeout(idle, () => request.destroy(new Error('silence')));
    request.on('error', reject);
    request.end(sent);
  });
}

async function read(answer) {
  const pieces = [];
  try {
    for await (const piece of answer) pieces.push(piece);
  } catch (error) {
    if (DEFECT !== 'what-came') throw error;
  }
  return Buffer.concat(pieces).toString('utf8');
}

async function call(method, path, body, type = 'application/json') {
  const answer = await open(method, path, body, type, 10000);
  const said = await read(answer);
  let found;
  try {
    found = JSON.parse(said);
  } catch (error) {
    if (answer.statusCode < 300 && DEFECT !== 'what-came') throw error;
    found = {};
  }
  if (answer.statusCode >= 300) {
    const after = Number(answer.headers['retry-after']);
    throw new Refused(answer.statusCode, found?.reason ?? '', Number.isInteger(after) ? after * 1000 : 0);
  }
  return found;
}

const keyOf = (object) => `${object.metadata.namespace}/${object.metadata.name}`;

class Informer {
  constructor(path, selector, tell) {
    Object.assign(this, { path, selector, tell, store: new Map(), revision: '', delay: 800 });
    this.synced = new Promise((resolve) => (this.sync = resolve));
  }

  query(more) {
    return `${this.path}?${new URLSearchParams({ ...(this.selector ? { labelSelector: this.selector } : {}), ...more })}`;
  }

  async run() {
    for (;;) {
      const begun = Date.now();
      let least = 0;
      try {
        if (!this.revision) await this.list();
        if (await this.watch()) {
          if (DEFECT !== 'slower-and-slower') {
            this.delay = 800;
            continue;
          }
        } else if (Date.now() - begun < 1500) this.revision = '';
      } catch (error) {
        if (error instanceof Refused) {
          least = error.after;
          if (error.code === 410 || error.code === 504) this.revision = DEFECT === 'zero-after-gone' && this.revision ? '0' : '';
        } else if (error.message === 'silence') {
          this.delay = 800;
          continue;
        } else console.log(this.path, error.message);
      }
      if (Date.now() - begun > 15000 && DEFECT !== 'slower-and-slower') this.delay = 800;
      await sleep(Math.max(least, this.delay * between(0.5, 1.5)));
      this.delay = Math.min(this.delay * 2, 30000);
    }
  }

  async list() {
    const found = new Map();
    let more = '';
    let page;
    do {
      try {
        page = await call('GET', this.query({ limit: 20, ...(more ? { continue: more } : {}) }));
      } catch (error) {
        if (error.code !== 410 || !more) throw error;
        found.clear();
        page = await call('GET', this.query({}));
      }
      for (const item of page.items ?? []) found.set(keyOf(item), item);
      more = page.metadata?.continue;
    } while (more);
    const before = this.store;
    this.store = found;
    this.revision = page.metadata?.resourceVersion ?? '';
    for (const key of new Set([...before.keys(), ...found.keys()])) {
      const [old, now] = [before.get(key), found.get(key)];
      if (old?.metadata.resourceVersion !== now?.metadata.resourceVersion || old?.metadata.uid !== now?.metadata.uid) this.tell(now ?? old, !now);
    }
    this.sync();
  }

  async watch() {
    const answer = await open('GET', this.query({ watch: 1, allowWatchBookmarks: true, timeoutSeconds: Math.round(between(200, 400)), resourceVersion: this.revision }), undefined, '', 11000);
    if (answer.statusCode >= 300) {
      const after = Number(answer.headers['retry-after']);
      answer.resume();
      throw new Refused(answer.statusCode, 'watch', Number.isInteger(after) ? after * 1000 : 0);
    }
    let rest = Buffer.alloc(0);
    let told = false;
    for await (const piece of answer) {
      rest = DEFECT === 'text-pieces' ? Buffer.from(rest.toString() + piece.toString()) : Buffer.concat([rest, piece]);
      for (let end; (end = rest.indexOf(10)) >= 0; ) {
        const line = rest.subarray(0, end).toString('utf8');
        rest = rest.subarray(end + 1);
        const { type, object } = JSON.parse(line);
        if (type === 'ERROR') throw new Refused(object?.code ?? 500, object?.reason, 0);
        if (!['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'].includes(type)) continue;
        this.revision = object.metadata.resourceVersion;
        if (type === 'BOOKMARK') continue;
        told = true;
        if (type === 'DELETED') this.store.delete(keyOf(object));
        else this.store.set(keyOf(object), object);
        this.tell(object, type === 'DELETED');
      }
    }
    return told;
  }
}

const waiting = new Map();
const busy = new Set();
const again = new Set();
const failures = new Map();
const expected = new Map();
const goodbyes = new Map();

function add(key, delay = 0) {
  if (busy.has(key) && !delay) return void again.add(key);
  const due = Date.now() + delay;
  if (waiting.has(key) && waiting.get(key).due <= due) return;
  clearTimeout(waiting.get(key)?.timer);
  waiting.set(key, { due, timer: setTimeout(() => work(key), delay) });
}

let line = Promise.resolve();
function work(key) {
  if (DEFECT === 'one-line') line = line.then(() => insist(key));
  else attempt(key);
}

async function insist(key) {
  waiting.delete(key);
  for (let pause = 400; ; pause = Math.min(pause * 2, 20000)) {
    try {
      return await reconcile(key);
    } catch (error) {
      await sleep(Math.max(error.after ?? 0, pause * between(0.7, 1.3)));
    }
  }
}

async function attempt(key) {
  waiting.delete(key);
  if (busy.has(key)) return void again.add(key);
  busy.add(key);
  let delay = 0;
  try {
    await reconcile(key);
    failures.delete(key);
  } catch (error) {
    console.log(key, error.message);
    const count = (failures.get(key) ?? 0) + 1;
    failures.set(key, count);
    delay = DEFECT === 'about-a-second' ? between(600, 1500) : Math.min(30000, 200 * 2 ** (count - 1)) * between(0.7, 1.4);
    delay = Math.max(delay, error.after ?? 0);
  }
  busy.delete(key);
  if (delay) add(key, delay);
  if (again.delete(key)) add(key);
}

const ownerOf = (secret) => (secret.metadata.ownerReferences ?? []).find((one) => one.kind === 'ConfigMap');

const configs = new Informer('/api/v1/configmaps', SELECTOR, (config, gone) => {
  if (DEFECT === 'only-living' && config.metadata.deletionTimestamp && !known.has(config.metadata.uid)) return;
  known.add(config.metadata.uid);
  if (gone) expected.delete(config.metadata.uid);
  add(keyOf(config));
});
const known = new Set();
const secrets = new Informer('/api/v1/secrets', OURS, (secret, gone) => {
  const owner = ownerOf(secret);
  const wanted = expected.get(owner?.uid);
  if (wanted) {
    wanted.names.delete(secret.metadata.name);
    if (!wanted.names.size) expected.delete(owner.uid);
  }
  if (gone) goodbyes.get(owner?.uid)?.delete(secret.metadata.uid);
  if (owner) add(`${secret.metadata.namespace}/${owner.name}`);
});

const mine = (config) => [...secrets.store.values()].filter((one) => one.metadata.namespace === config.metadata.namespace && (DEFECT === 'owner-by-name' ? ownerOf(one)?.name === config.metadata.name : ownerOf(one)?.uid === config.metadata.uid));
const encode = (value) => Buffer.from(value).toString('base64');

async function reconcile(key) {
  const config = configs.store.get(key);
  if (!config) return;
  const { name, namespace, uid } = config.metadata;
  const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  const finalizers = config.metadata.finalizers ?? [];
  if (config.metadata.deletionTimestamp) return void (await cleanUp(config, path, finalizers));
  if (!finalizers.includes(FINAL)) return void (await setFinalizers(config, path, [...finalizers, FINAL])); // its event comes back
  const waits = expected.get(uid);
  if (waits && (DEFECT === 'waits-for-ever' || Date.now() < waits.until)) {
    if (DEFECT !== 'waits-for-ever') add(key, waits.until - Date.now() + 50);
    return;
  }
  const data = Object.fromEntries(Object.entries(config.data ?? {}).map(([part, value]) => [part, encode(value)]));
  let present = mine(config);
  if (present.length < PARTS.length) {
    const listed = await call('GET', `/api/v1/namespaces/${namespace}/secrets?labelSelector=${encodeURIComponent(`${OURS}=${uid}`)}`);
    present = (listed.items ?? []).filter((one) => ownerOf(one)?.uid === uid);
  }
  for (const part of PARTS) {
    const secret = present.find((one) => one.metadata.labels['batches.dev/part'] === part);
    if (!secret) await create(config, part, data);
    else if (!secret.metadata.deletionTimestamp) await keep(config, secret, data);
  }
  const digest = crypto.createHash('sha256').update(JSON.stringify(config.data ?? {})).digest('hex').slice(0, 12);
  if (config.metadata.annotations?.['batches.dev/digest'] !== digest) {
    const change = { metadata: { uid, annotations: { 'batches.dev/digest': digest } } };
    await ifThere(call('PATCH', path, change, 'application/merge-patch+json'));
  }
}

const ifThere = (promise) => promise.catch((error) => {
  if (error.code !== 404) throw error;
});

async function setFinalizers(config, path, finalizers) {
  const guard = DEFECT === 'unguarded-finalizers' ? {} : { resourceVersion: config.metadata.resourceVersion, uid: config.metadata.uid };
  await ifThere(call('PATCH', path, { metadata: { ...guard, finalizers } }, 'application/merge-patch+json'));
}

function bodyOf(config, part, data) {
  const { name, namespace, uid } = config.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      generateName: `${name.slice(0, 40)}-`,
      namespace,
      labels: { [OURS]: uid, 'batches.dev/part': part },
      annotations: noteOf(config),
      ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name, uid, controller: true }],
    },
    data,
  };
}

function noteOf(config) {
  const note = config.metadata.annotations?.note;
  return note === undefined ? {} : { 'batches.dev/note': note };
}

async function create(config, part, data) {
  const { namespace, uid } = config.metadata;
  for (;;) {
    try {
      const made = await call('POST', `/api/v1/namespaces/${namespace}/secrets`, bodyOf(config, part, data));
      if (secrets.store.has(keyOf(made))) return;
      const names = expected.get(uid)?.names ?? new Set();
      expected.set(uid, { names: names.add(made.metadata.name), until: Date.now() + 5000 });
      return;
    } catch (error) {
      if (DEFECT !== 'sends-again' || error instanceof Refused) throw error;
      await sleep(300);
    }
  }
}

async function keep(config, secret, data) {
  const same = JSON.stringify(Object.entries(secret.data ?? {}).sort()) === JSON.stringify(Object.entries(data).sort());
  const note = noteOf(config)['batches.dev/note'];
  const noted = DEFECT === 'note-once' || secret.metadata.annotations?.['batches.dev/note'] === note;
  if (same && noted) return;
  const path = `/api/v1/namespaces/${secret.metadata.namespace}/secrets/${secret.metadata.name}`;
  const { resourceVersion, uid } = secret.metadata;
  if (DEFECT === 'puts-its-own') {
    const body = bodyOf(config, secret.metadata.labels['batches.dev/part'], data);
    delete body.metadata.generateName;
    Object.assign(body.metadata, { name: secret.metadata.name, resourceVersion });
    return void (await ifThere(call('PUT', path, body)));
  }
  const removed = Object.fromEntries(Object.keys(secret.data ?? {}).filter((part) => !(part in data)).map((part) => [part, null]));
  const annotations = DEFECT === 'note-once' ? {} : { 'batches.dev/note': note ?? null };
  const change = { metadata: { resourceVersion, uid, annotations }, data: { ...removed, ...data } };
  await ifThere(call('PATCH', path, change, 'application/merge-patch+json'));
}

async function cleanUp(config, path, finalizers) {
  if (!finalizers.includes(FINAL)) return;
  const { namespace, uid } = config.metadata;
  if (DEFECT === 'waits-for-goodbyes' && goodbyes.has(uid)) {
    if (goodbyes.get(uid).size) return; // their deletions will come
  } else {
    const listed = await call('GET', `/api/v1/namespaces/${namespace}/secrets?labelSelector=${encodeURIComponent(`${OURS}=${uid}`)}`);
    const left = (listed.items ?? []).filter((one) => ownerOf(one)?.uid === uid);
    if (DEFECT === 'waits-for-goodbyes') goodbyes.set(uid, new Set(left.map((one) => one.metadata.uid)));
    for (const secret of left.filter((one) => !one.metadata.deletionTimestamp)) {
      const only = { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid: secret.metadata.uid } };
      await ifThere(call('DELETE', `/api/v1/namespaces/${namespace}/secrets/${secret.metadata.name}`, only));
    }
    if (left.length) {
      if (DEFECT === 'waits-for-goodbyes') return;
      throw new Refused(409, 'secrets are left', 0);
    }
  }
  await setFinalizers(config, path, finalizers.filter((one) => one !== FINAL));
  goodbyes.delete(uid);
}

process.on('unhandledRejection', (error) => console.log('unhandled', error));
secrets.run();
await secrets.synced;
configs.run();
