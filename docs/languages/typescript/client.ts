// A client of the control API whose types are generated from its OpenAPI document.
import createClient from 'openapi-fetch';
import type { paths } from './schema.d.ts';

const client = createClient<paths>({ baseUrl: process.env.FAKEKUBE_POOL });

const made = await client.POST('/fakekube/v1/clusters', { body: { from: 'fork', seed: 7 } });
if (!made.data) throw new Error(JSON.stringify(made.error));
const own = createClient<paths>({ baseUrl: made.data.url });

const armed = await own.POST('/fakekube/v1/faults', {
  body: { on: { verbs: 'list', resource: 'pods' }, do: { status: { code: 503 } }, times: 1 },
});
if (!armed.data) throw new Error(JSON.stringify(armed.error));
const refused = await fetch(`${made.data.url}/api/v1/pods`);
const fault = await own.GET('/fakekube/v1/faults/{id}', { params: { path: { id: armed.data.id } } });
const requests = await own.GET('/fakekube/v1/requests', { params: { query: { resource: 'pods' } } });
const held = await own.POST('/fakekube/v1/clock/hold');
const moved = await own.POST('/fakekube/v1/clock/advance', { body: { seconds: 60 } });
const wrong = await own.POST('/fakekube/v1/clock/advance', { body: { seconds: -1 } });
await client.DELETE('/fakekube/v1/clusters/{name}', { params: { path: { name: made.data.name } } });
const seconds = (Date.parse(moved.data!.now) - Date.parse(held.data!.now)) / 1000;
console.log(refused.status, fault.data?.hits, requests.data?.items.map((one) => one.status).join(), seconds, wrong.error?.error);
