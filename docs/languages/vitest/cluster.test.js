import { expect } from 'vitest';
import { test } from './cluster.js';

const MAPS = '/api/v1/namespaces/default/configmaps';

/** The client under test: it repeats what is refused with 503. */
async function create(cluster, path, body) {
  for (let attempt = 0; attempt < 3; attempt++) {
    const { status } = await cluster.api('POST', path, body);
    if (status !== 503) return status;
  }
  throw new Error('given up');
}

test.concurrent('a fault is repeated', async ({ cluster }) => {
  const on = { verbs: 'create', resource: 'configmaps' };
  await cluster.control('POST', 'faults', { on, do: { status: { code: 503 } }, times: 1 });
  expect(await create(cluster, MAPS, { metadata: { name: 'a' } })).toBe(201);
  const seen = await cluster.control('GET', 'requests?verb=create&resource=configmaps');
  expect(seen.body.items.map((one) => one.status)).toEqual([503, 201]);
});

test.concurrent('a CronJob runs an hour later', async ({ cluster }) => {
  await cluster.control('POST', 'clock/hold');
  const spec = { restartPolicy: 'Never', containers: [{ name: 'main', image: 'busybox', command: ['true'] }] };
  const jobTemplate = { spec: { template: { spec } } };
  const cron = { metadata: { name: 'hourly' }, spec: { schedule: '0 * * * *', jobTemplate } };
  expect(await create(cluster, '/apis/batch/v1/namespaces/default/cronjobs', cron)).toBe(201);
  await cluster.control('POST', 'settle');
  await cluster.control('POST', 'clock/advance', { seconds: 3600 });
  await cluster.control('POST', 'settle');
  const jobs = await cluster.api('GET', '/apis/batch/v1/namespaces/default/jobs');
  expect(jobs.body.items).toHaveLength(1);
});
