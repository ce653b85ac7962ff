// Gives each Tenant a ConfigMap (generated name, owned) and a ServiceAccount (fixed name, removed by a finalizer), and a condition.
// node:http; initial events with a fallback to lists; a queue that coalesces: what changed within 150 ms is handled once.
import http from 'node:http';
import https from 'node:https';
import fs from 'node:fs';

const DEFECT = process.env.DEFECT ?? '';
const FINAL = 'checked.dev/tenants';
const text = fs.readFileSync(process.env.KUBECONFIG, 'utf8');
const field = (name) => text.match(new RegExp(`"?${name}"?: *"?([^"\\s,}]+)`))?.[1];
const server = new URL(field('server'));
const lib = server.protocol === 'https:' ? https : http;
const ca = field('certificate-authority-data');
const agent = new lib.Agent({keepAlive: true, maxSockets: 64, ...(ca ? {ca: Buffer.from(ca, 'base64')} : {})});
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const jitter = (ms) => ms * (0.6 + 0.8 * Math.random());

class Refused extends Error {
  constructor(code, reason, after) { super(`${code} ${reason}`); this.code = code; this.reason = reason; this.after = after; }
}

function open(method, path, body, type, idle = 12000) {
  return new Promise((resolve, reject) => {
    const headers = {'User-Agent': 'tenants/2.1 (checked.dev)', Accept: 'application/json'};
    const file = field('tokenFile');
    const token = file ? fs.readFileSync(file, 'utf8').trim() : field('token');
    if (token) headers.Authorization = `Bearer ${token}`;
    const payload = body === undefined ? undefined : JSON.stringify(body);
    if (payload !== undefined) { headers['Content-Type'] = type ?? 'application/json'; headers['Content-Length'] = Buffer.byteLength(payload); }
    const request = lib.request({host: server.hostname, port: server.port, path, method, headers, agent});
    request.setTimeout(idle, () => request.destroy(Object.assign(new Error('idle'), {idle: true})));
    request.on('error', reject);
    request.on('response', resolve);
    request.end(payload);
  });
}

async function call(method, path, body, type) {
  const answer = await open(method, path, body, type);
  const parts = [];
  for await (const part of answer) parts.push(part);
  const content = Buffer.concat(parts).toString('utf8');
  if (answer.statusCode >= 300) {
    let reason = '';
    try { reason = JSON.parse(content).reason ?? ''; } catch { /* not a Status */ }
    throw new Refused(answer.statusCode, reason, Number(answer.headers['retry-after'] ?? 0) * 1000 || 0);
  }
  return JSON.parse(content);
}

const keyOf = (object) => `${object.metadata.namespace}/${object.metadata.name}`;

class Informer {
  constructor(path, selector, tell) {
    Object.assign(this, {path, selector, tell, store: new Map(), revision: '', initial: true, synced: false});
    this.ready = new Promise((done) => { this.isReady = done; });
  }

  query(parts) {
    return this.path + '?' + new URLSearchParams({...parts, ...(this.selector ? {labelSelector: this.selector} : {})});
  }

  async run() {
    let delay = 800;
    for (;;) {
      const begun = Date.now();
      let least = 0;
      try {
        if (!this.revision && !this.initial) await this.list();
        const delivered = await this.watch();
        if (delivered || Date.now() - begun > 1500) { delay = 800; continue; }
        this.revision = '';
      } catch (error) {
        if (error instanceof Refused) {
          least = error.after;
          if ([400, 422].includes(error.code) && this.initial && !this.revision) this.initial = false;
          else if ([410, 504].includes(error.code)) this.revision = '';
        } else if (error.idle && Date.now() - begun > 8000) { delay = 800; }
        if (Date.now() - begun > 8000) delay = 800;
      }
      await sleep(Math.max(least, jitter(delay)));
      delay = Math.min(delay * 2, 30000);
    }
  }

  replace(found, revision) {
    const before = this.store;
    this.store = found;
    if (DEFECT === 'stream-ghosts') for (const [key, object] of before) if (!found.has(key)) found.set(key, object);
    for (const key of new Set([...before.keys(), ...found.keys()])) {
      const [old, now] = [before.get(key), found.get(key)];
      if (old?.metadata.resourceVersion !== now?.metadata.resourceVersion || old?.metadata.uid !== now?.metadata.uid) this.tell(now ?? old);
    }
    this.revision = revision;
    this.isReady();
  }

  async list() {
    const found = new Map();
    let more;
    let page;
    do {
      page = await call('GET', this.query({limit: 250, ...(more ? {continue: more} : {})}));
      for (const item of page.items ?? []) found.set(keyOf(item), item);
      more = page.metadata.continue;
    } while (more);
    this.replace(found, page.metadata.resourceVersion);
  }

  async watch() {
    const parts = {watch: '1', allowWatchBookmarks: 'true', timeoutSeconds: String(240 + Math.floor(Math.random() * 200))};
    let filling = this.initial && !this.revision;
    if (filling) Object.assign(parts, {sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan'});
    else parts.resourceVersion = this.revision;
    const answer = await open('GET', this.query(parts), undefined, undefined, 11000);
    if (answer.statusCode >= 300) {
      answer.resume();
      throw new Refused(answer.statusCode, '', Number(answer.headers['retry-after'] ?? 0) * 1000 || 0);
    }
    const found = new Map();
    let delivered = 0;
    let rest = Buffer.alloc(0);
    try {
      for await (const part of answer) {
        let joined = Buffer.concat([rest, part]);
        let end;
        while ((end = joined.indexOf(10)) >= 0) {
          const event = JSON.parse(joined.subarray(0, end).toString('utf8'));
          joined = joined.subarray(end + 1);
          const object = event.object ?? {};
          if (event.type === 'ERROR') throw new Refused(object.code || 500, object.reason ?? '', 0);
          if (!['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'].includes(event.type)) continue;
          if (!filling) this.revision = object.metadata.resourceVersion;
          else if (DEFECT === 'initial-cut-resume') this.partial = object.metadata.resourceVersion;
          if (event.type === 'BOOKMARK') {
            if (filling && object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true') {
              filling = false;
              delivered++;
              this.replace(found, object.metadata.resourceVersion);
            }
            continue;
          }
          delivered++;
          const key = keyOf(object);
          if (filling) {
            if (event.type === 'DELETED') found.delete(key);
            else found.set(key, object);
            continue;
          }
          if (event.type === 'DELETED') this.store.delete(key);
          else this.store.set(key, object);
          this.tell(object, event.type);
        }
        rest = joined;
      }
    } catch (error) {
      if (DEFECT === 'initial-cut-resume' && filling && this.partial && !(error instanceof Refused)) {
        for (const [key, object] of this.store) if (!found.has(key)) found.set(key, object);
        this.replace(found, this.partial);
      }
      throw error;
    } finally {
      answer.destroy();
    }
    if (DEFECT === 'initial-cut-resume' && filling && this.partial) this.replace(found, this.partial);
    return filling ? 0 : delivered;
  }
}

// The queue: what changed within 150 ms is handled once, four at a time; failures wait longer each time.
const due = new Map();
const busy = new Set();
const failures = new Map();
function enqueue(key, after = 150) {
  const at = Date.now() + after;
  if (!due.has(key) || due.get(key) > at) due.set(key, at);
}
async function drain() {
  for (;;) {
    const now = Date.now();
    for (const [key, at] of due) {
      if (at > now || busy.has(key) || busy.size >= 4) continue;
      due.delete(key);
      busy.add(key);
      reconcile(key).then((waits) => waits || failures.delete(key), (error) => {
        const count = failures.get(key) ?? 0;
        failures.set(key, count + 1);
        enqueue(key, Math.max(error.after ?? 0, jitter(Math.min(250 * 2 ** count, 30000))));
        if (!(error instanceof Refused)) console.log(key, error.message);
      }).finally(() => busy.delete(key));
    }
    await sleep(20);
  }
}

const expected = new Map(); // uid of a Tenant → {name, until}
const tenants = new Informer('/apis/checked.dev/v1/tenants', '', (object) => enqueue(keyOf(object)));
const owned = (object, type) => {
  const uid = object.metadata.labels?.['tenant-uid'];
  if (type === 'ADDED' && expected.get(uid)?.name === object.metadata.name) expected.delete(uid);
  if (object.metadata.labels?.tenant) enqueue(`${object.metadata.namespace}/${object.metadata.labels.tenant}`);
};
const maps = new Informer('/api/v1/configmaps', 'tenant', owned);
const accounts = new Informer('/api/v1/serviceaccounts', 'tenant', owned);

const wantedData = (tenant) => ({
  plan: tenant.spec?.plan ?? '', seats: String(tenant.spec?.seats ?? 0), note: tenant.metadata.annotations?.note ?? '',
});

async function reconcile(key) {
  const tenant = tenants.store.get(key);
  if (!tenant) return;
  const {namespace, name, uid} = tenant.metadata;
  const base = `/apis/checked.dev/v1/namespaces/${namespace}/tenants/${name}`;
  const mine = [...maps.store.values()].filter((one) => one.metadata.labels?.['tenant-uid'] === uid);
  const account = accounts.store.get(`${namespace}/${name}-runner`);
  const finalizers = tenant.metadata.finalizers ?? [];
  if (tenant.metadata.deletionTimestamp) {
    if (!finalizers.includes(FINAL)) return;
    const left = [...mine.map((one) => ['configmaps', one]), ...(account && account.metadata.labels?.['tenant-uid'] === uid ? [['serviceaccounts', account]] : [])];
    for (const [plural, one] of left) {
      if (one.metadata.deletionTimestamp) continue;
      try {
        await call('DELETE', `/api/v1/namespaces/${namespace}/${plural}/${one.metadata.name}`, {
          kind: 'DeleteOptions', apiVersion: 'v1', preconditions: {uid: one.metadata.uid},
        });
      } catch (error) {
        if (DEFECT === 'cleanup-ignored') continue; // the finalizer goes, whatever is left
        if (!(error instanceof Refused) || ![404, 409].includes(error.code)) throw error;
      }
    }
    if (left.length && DEFECT !== 'cleanup-ignored') return; // their deletions come as events
    await call('PATCH', base, [
      {op: 'test', path: '/metadata/resourceVersion', value: tenant.metadata.resourceVersion},
      {op: 'replace', path: '/metadata/finalizers', value: finalizers.filter((one) => one !== FINAL)},
    ], 'application/json-patch+json').catch(gone);
    return;
  }
  if (!finalizers.includes(FINAL) && DEFECT !== 'finalizer-late') {
    await addFinalizer(base, tenant, finalizers);
    return;
  }
  // the generated child
  const wait = expected.get(uid);
  if (wait && !maps.store.has(`${namespace}/${wait.name}`)) {
    if (Date.now() < wait.until) { enqueue(key, 1000); return true; }
    expected.delete(uid);
  } else if (wait) expected.delete(uid);
  if (!mine.length) {
    const made = await call('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      apiVersion: 'v1', kind: 'ConfigMap', data: wantedData(tenant),
      metadata: {
        generateName: `${name}-`, labels: {tenant: name, 'tenant-uid': uid},
        ownerReferences: [{apiVersion: 'checked.dev/v1', kind: 'Tenant', name, uid, controller: true, blockOwnerDeletion: true}],
      },
    }).catch(async (error) => { // unknown whether it was made: look before the next attempt
      if (!(error instanceof Refused) || error.code >= 500) expected.set(uid, {name: '?', until: Date.now() + 3000});
      throw error;
    });
    expected.set(uid, {name: made.metadata.name, until: Date.now() + 6000});
    enqueue(key, 6500);
  } else if (mine.length > 1) {
    mine.sort((a, b) => a.metadata.name < b.metadata.name ? -1 : 1);
    for (const one of mine.slice(1)) {
      if (!one.metadata.deletionTimestamp) await call('DELETE', `/api/v1/namespaces/${namespace}/configmaps/${one.metadata.name}`, {
        kind: 'DeleteOptions', apiVersion: 'v1', preconditions: {uid: one.metadata.uid},
      }).catch(gone);
    }
  } else if (!mine[0].metadata.deletionTimestamp) {
    const [one, wanted] = [mine[0], wantedData(tenant)];
    const stale = Object.entries(wanted).some(([name, value]) => one.data?.[name] !== value);
    const done = DEFECT === 'observed-too-new' && tenant.status?.observedGeneration === tenant.metadata.generation;
    if (stale && !done) {
      await call('PUT', `/api/v1/namespaces/${namespace}/configmaps/${one.metadata.name}`, {...one, apiVersion: 'v1', kind: 'ConfigMap', data: {...one.data, ...wanted}});
    }
  }
  // the account
  if (!account) {
    const body = {apiVersion: 'v1', kind: 'ServiceAccount', metadata: {name: `${name}-runner`, labels: {tenant: name, 'tenant-uid': uid}}};
    for (;;) {
      try {
        await call('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, body);
        break;
      } catch (error) {
        if (!(error instanceof Refused) || error.code !== 409) throw error;
        if (DEFECT === 'terminating-child-spin') continue;
        const found = await call('GET', `/api/v1/namespaces/${namespace}/serviceaccounts/${name}-runner`).catch(gone);
        if (found && !found.metadata.labels?.['tenant-uid']) break; // somebody else's
        throw error;
      }
    }
  } else if (account.metadata.labels?.['tenant-uid'] !== uid) {
    if (!account.metadata.deletionTimestamp && account.metadata.labels?.tenant === name) {
      await call('DELETE', `/api/v1/namespaces/${namespace}/serviceaccounts/${name}-runner`, {
        kind: 'DeleteOptions', apiVersion: 'v1', preconditions: {uid: account.metadata.uid},
      }).catch(gone);
    } else if (DEFECT === 'terminating-child-spin') {
      await call('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, {apiVersion: 'v1', kind: 'ServiceAccount', metadata: {name: `${name}-runner`, labels: {tenant: name, 'tenant-uid': uid}}});
    }
  } else if (DEFECT === 'terminating-child-spin' && account.metadata.deletionTimestamp) {
    for (;;) {
      try {
        await call('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, {apiVersion: 'v1', kind: 'ServiceAccount', metadata: {name: `${name}-runner`, labels: {tenant: name, 'tenant-uid': uid}}});
        break;
      } catch (error) { if (error.code !== 409) throw error; }
    }
  }
  if (!finalizers.includes(FINAL)) { await addFinalizer(base, tenant, finalizers); return; }
  await writeStatus(base, tenant);
}

const gone = (error) => { if (!(error instanceof Refused) || error.code !== 404) throw error; return undefined; };

async function addFinalizer(base, tenant, finalizers) {
  await call('PATCH', base, [
    {op: 'test', path: '/metadata/resourceVersion', value: tenant.metadata.resourceVersion},
    {op: 'add', path: '/metadata/finalizers', value: [...finalizers, FINAL]},
  ], 'application/json-patch+json').catch(gone);
}

async function writeStatus(base, tenant) {
  const others = (tenant.status?.conditions ?? []).filter((one) => one.type !== 'Ready');
  const present = (tenant.status?.conditions ?? []).find((one) => one.type === 'Ready');
  const message = `${tenant.spec?.plan} for ${tenant.spec?.seats}`;
  if (present?.message === message && tenant.status?.observedGeneration === tenant.metadata.generation) return;
  const ready = {type: 'Ready', status: 'True', reason: 'Made', message, lastTransitionTime: present?.lastTransitionTime ?? new Date().toISOString().replace(/\.\d+/, '')};
  if (DEFECT === 'cond-index' && tenant.status?.conditions) {
    await call('PATCH', `${base}/status`, [
      {op: 'replace', path: '/status/conditions/0', value: ready},
      {op: 'add', path: '/status/observedGeneration', value: tenant.metadata.generation},
    ], 'application/json-patch+json').catch(gone);
    return;
  }
  const body = (one, generation) => ({...one, status: {...one.status, observedGeneration: generation, conditions: [...others, ready]}});
  try {
    await call('PUT', `${base}/status`, body(tenant, tenant.metadata.generation));
  } catch (error) {
    if (DEFECT === 'observed-too-new' && error.code === 409) {
      const fresh = await call('GET', base);
      await call('PUT', `${base}/status`, body(fresh, fresh.metadata.generation));
      return;
    }
    gone(error);
  }
}

for (const informer of [maps, accounts, tenants]) informer.run();
await Promise.all([maps.ready, accounts.ready, tenants.ready]);
drain();
