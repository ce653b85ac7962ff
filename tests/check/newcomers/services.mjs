// Keeps an Ingress for each Service with the label expose=yes: node's own http module, one async loop for each collection.
//
//     KUBECONFIG=… node services.mjs            (DEFECT=NAME puts one in)
import http from 'node:http';
import https from 'node:https';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { StringDecoder } from 'node:string_decoder';

const bad = (name) => process.env.DEFECT === name;
const text = fs.readFileSync(process.env.KUBECONFIG, 'utf8');
const field = (name) => (text.match(new RegExp(`^\\s*(?:- )?${name}:\\s*['"]?([^'"\\n]+)`, 'm')) || [])[1];
const server = new URL(field('server'));
const ca = field('certificate-authority-data');
const library = server.protocol === 'https:' ? https : http;
const agent = new library.Agent({ keepAlive: true, maxSockets: 20, ca: ca && Buffer.from(ca, 'base64') });
let token = { value: field('token') || '', at: Date.now() };
const tokenFile = field('tokenFile');

function bearer() {
  if (tokenFile && (!token.value || Date.now() - token.at > 20_000) && !(token.value && bad('token-once'))) {
    token = { value: fs.readFileSync(tokenFile, 'utf8').trim(), at: Date.now() };
  }
  return token.value ? { Authorization: `Bearer ${token.value}` } : {};
}

class Refused extends Error {
  constructor(code, body, after) {
    super(`${code} ${String(body).slice(0, 200)}`);
    Object.assign(this, { code, after });
  }
}

function open(method, path, body, type = 'application/json', idle = 15_000) {
  return new Promise((resolve, reject) => {
    const data = body === undefined ? undefined : JSON.stringify(body);
    const headers = { 'User-Agent': 'expose-controller/2.3', Accept: 'application/json', ...bearer() };
    if (data !== undefined) Object.assign(headers, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(data) });
    const request = library.request(server.origin + path, { method, headers, agent }, resolve);
    request.setTimeout(bad('no-timeout') ? 0 : idle, () => request.destroy(new Error('idle')));
    request.on('error', reject);
    request.end(data);
  });
}

async function read(response) {
  const parts = [];
  for await (const part of response) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}

async function call(method, path, body, type) {
  for (let attempt = 0; ; attempt++) {
    const response = await open(method, path, body, type);
    const answer = await read(response);
    if (response.statusCode < 400) return JSON.parse(answer);
    if (response.statusCode === 401) token.at = 0;
    const after = Number(response.headers['retry-after'] || 0);
    if (after && [429, 503].includes(response.statusCode) && attempt < 5) {
      await sleep((bad('after-half') ? after / 2 : after) * 1000 + Math.random() * 300);
      continue;
    }
    throw new Refused(response.statusCode, answer, after);
  }
}

// ---------------------------------------------------------------- caches

class Cache {
  constructor(path, query, told) {
    Object.assign(this, { path, query, told, objects: new Map(), pause: 500 });
    this.first = new Promise((resolve) => { this.ready = resolve; });
  }

  async run() {
    let version = '';
    for (;;) {
      const begun = Date.now();
      let least = 0;
      let calm = false;
      try {
        if (!version) version = await this.list();
        const seen = await this.watch(version);
        calm = seen.count > 0 || Date.now() - begun > 1000;
        version = calm ? seen.version : '';
        if (bad('relist-always')) version = '';
      } catch (problem) {
        if (problem.code === 410 || problem.code === 504) version = bad('keeps-expired') ? version : '';
        least = (problem.after || 0) * 1000;
        if (bad('exits-on-reset') && problem.code === 'ECONNRESET') throw problem;
        if (bad('gone-dies') && problem.code === 410) process.exit(12);
      }
      if (calm) { this.pause = 500; continue; }
      await sleep(Math.max(least, bad('flat') ? 700 : this.pause * (0.5 + Math.random())));
      this.pause = Math.min(this.pause * 2, 20_000);
    }
  }

  async list() {
    const found = new Map();
    let token = '';
    let version;
    do {
      const query = new URLSearchParams({ ...this.query, limit: '250', ...(token && { continue: token }) });
      const page = await call('GET', `${this.path}?${query}`);
      for (const one of page.items) found.set(key(one), one);
      version = page.metadata.resourceVersion;
      token = bad('one-page') ? '' : page.metadata.continue;
    } while (token);
    const before = this.objects;
    this.objects = found;
    for (const one of found.values()) this.told(one, before.get(key(one)));
    if (!bad('no-deletes')) for (const [name, one] of before) if (!found.has(name)) this.told(undefined, one);
    this.ready();
    return version;
  }

  async watch(version) {
    const query = new URLSearchParams({ ...this.query, watch: 'true', resourceVersion: version, allowWatchBookmarks: 'true' });
    if (bad('number')) query.set('resourceVersion', String(Number(version)));
    const response = await open('GET', `${this.path}?${query}`);
    if (response.statusCode !== 200) {
      const answer = await read(response);
      if (response.statusCode === 401) token.at = 0;
      throw new Refused(response.statusCode, answer, Number(response.headers['retry-after'] || 0));
    }
    const state = { version, count: 0 };
    const decoder = bad('utf8') ? { write: (piece) => piece.toString('utf8') } : new StringDecoder('utf8');
    let rest = '';
    try {
      for await (const piece of response) {
        const lines = (rest + decoder.write(piece)).split(bad('splits') ? /[\n\u0085\u2028]/ : '\n');
        rest = lines.pop();
        if (bad('first-only')) lines.splice(1);
        for (const line of lines) this.event(JSON.parse(line), state);
      }
    } catch (problem) {
      if (problem instanceof Refused || problem instanceof SyntaxError) throw problem;
      if (!state.count) throw problem;  // what came is in the cache already
      if (bad('exits-on-reset')) throw problem;
    }
    return state;
  }

  event({ type, object }, state) {
    if (type === 'ERROR') throw new Refused(object.code, object.message, 0);
    if (!['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'].includes(type)) return;
    state.version = object.metadata.resourceVersion;
    state.count++;
    if (type === 'BOOKMARK') return;
    const before = this.objects.get(key(object));
    if (type === 'DELETED') this.objects.delete(key(object));
    else this.objects.set(key(object), object);
    this.told(type === 'DELETED' ? undefined : object, before || object);
  }
}

const key = (object) => `${object.metadata.namespace}/${object.metadata.name}`;

// ---------------------------------------------------------------- the controller

const due = new Map();  // key → timer
const failures = new Map();
const busy = new Set();

function wake(name, after = 0) {
  if (due.has(name)) { if (after) return; clearTimeout(due.get(name)); }
  due.set(name, setTimeout(async () => {
    due.delete(name);
    if (busy.has(name)) return wake(name, 50);
    busy.add(name);
    try {
      await reconcile(name);
      failures.delete(name);
    } catch (problem) {
      const count = (failures.get(name) || 0) + 1;
      failures.set(name, count);
      if (bad('gives-up') && count > 2) return;
      const pause = bad('retry-flat') ? 400 : Math.min(200 * 2 ** count, 15_000) * (0.7 + Math.random() * 0.6);
      wake(name, Math.max(pause, (problem.after || 0) * 1000));
    } finally {
      busy.delete(name);
    }
  }, after));
}

const SERVICES = '/api/v1/services';
const INGRESSES = '/apis/networking.k8s.io/v1/ingresses';
const services = new Cache(SERVICES, { labelSelector: 'expose=yes' }, (now, before) => wake(key(now || before)));
const ingresses = new Cache(INGRESSES, {}, (now, before) => {
  for (const owner of (now || before).metadata.ownerReferences || []) {
    if (owner.kind === 'Service') wake(`${(now || before).metadata.namespace}/${owner.name}`);
  }
});
const collection = (name) => `/apis/networking.k8s.io/v1/namespaces/${name.split('/')[0]}/ingresses`;

async function reconcile(name) {
  const service = services.objects.get(name);
  if (!service || service.metadata.deletionTimestamp) return;
  const [namespace, short] = name.split('/');
  const port = service.spec.ports[0].port;
  const host = (service.metadata.annotations || {})['expose.dev/host'] || `${short}.example.com`;
  const backend = { service: { name: short, port: { number: port } } };
  const spec = { rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }] };
  const there = ingresses.objects.get(name);
  const owner = { apiVersion: 'v1', kind: 'Service', name: short, uid: service.metadata.uid, controller: true };
  if (!there) {
    try {
      await call('POST', collection(name), { metadata: { name: short, namespace, ownerReferences: [owner] }, spec });
    } catch (problem) {
      if (problem.code !== 409) throw problem;
      if (bad('conflict-loops')) { for (;;) { await sleep(800); await call('POST', collection(name), { metadata: { name: short }, spec }).catch(() => 0); } }
      const known = await call('GET', `${collection(name)}/${short}`);
      if (!(known.metadata.ownerReferences || []).some((one) => one.uid === owner.uid)) throw problem;
    }
  } else if (!(there.metadata.ownerReferences || []).some((one) => one.uid === service.metadata.uid)) {
    if (!bad('takes-over')) throw new Error(`${name} belongs to somebody else`);
    await call('PUT', `${collection(name)}/${short}`, { ...there, spec });
  } else if (there.spec.rules[0].host !== host || there.spec.rules[0].http.paths[0].backend.service.port.number !== port) {
    const body = { ...there, spec: { ...there.spec, ...spec } };
    if (bad('blind-put')) delete body.metadata.resourceVersion;
    await call('PUT', `${collection(name)}/${short}`, body);
  }
  if ((service.metadata.annotations || {})['expose.dev/done'] !== host) {
    const change = { metadata: { annotations: { 'expose.dev/done': host } } };
    if (bad('drops-labels')) change.metadata.annotations.$patch = 'replace';
    try {
      await call('PATCH', `/api/v1/namespaces/${namespace}/services/${short}`, change, 'application/strategic-merge-patch+json');
    } catch (problem) {
      if (problem.code !== 404 || bad('fatal-404')) { if (bad('fatal-404')) process.exit(9); throw problem; }
    }
  }
}

if (bad('polls')) setInterval(() => call('GET', SERVICES).catch(() => 0), 2500);
ingresses.run();
await ingresses.first;
await services.run();
