// The fixture `cluster`: a cluster of the pool that `fakekube run --clusters -- npx vitest run` serves.
import { test as base } from 'vitest';

async function send(method, url, body) {
  const headers = { 'Content-Type': 'application/json' };
  const response = await fetch(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : undefined };
}

export const test = base.extend({
  // eslint-disable-next-line no-empty-pattern -- Vitest requires the braces
  cluster: async ({}, use) => {
    const pool = `${process.env.FAKEKUBE_POOL}/fakekube/v1/clusters`;
    const made = await send('POST', pool, { from: 'fork' });
    if (made.status !== 201) throw new Error(`the pool answers ${made.status}`);
    const { name, url, control, kubeconfig } = made.body;
    await use({
      kubeconfig, // its text, for `KubeConfig.loadFromString` of @kubernetes/client-node
      api: (method, path, body) => send(method, url + path, body),
      control: (method, path, body) => send(method, `${control}/${path}`, body),
    });
    await send('DELETE', `${pool}/${name}`);
  },
});
