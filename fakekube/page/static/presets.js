/** Faults that are switches: what people inject most often. */

import { pythonLiteral, shellQuote } from "fk/escape";

/**
 * @typedef {object} Preset
 * @property {string} command its name on the command line
 * @property {string} title
 * @property {string} verbs
 * @property {string} resource
 * @property {Record<string, any>} do
 * @property {number} [times]
 */

/** @type {Preset[]} */
export const PRESETS = [
  { command: "gone", title: "Expire watches (410)", verbs: "watch", resource: "*", do: { gone: {} } },
  { command: "conflict", title: "Conflict on the next update", verbs: "update,patch", resource: "*", do: { conflict: {} }, times: 1 },
  { command: "throttle", title: "429 twice, Retry-After 1", verbs: "*", resource: "*", do: { status: { code: 429, retry_after: 1 } }, times: 2 },
  { command: "lose", title: "Lose the next response to a create", verbs: "create", resource: "*", do: { lose: {} }, times: 1 },
  { command: "silence", title: "Silence watches", verbs: "watch", resource: "*", do: { silence: {} } },
  { command: "end", title: "End watches", verbs: "watch", resource: "*", do: { end: {} } },
  { command: "delay", title: "Delay every request by 5 s", verbs: "*", resource: "*", do: { delay: { seconds: 5 } } },
  { command: "unavailable", title: "Group unavailable (503)", verbs: "*", resource: "*", do: { status: { code: 503 } } },
  { command: "unauthorized", title: "Tokens expire (401)", verbs: "*", resource: "*", do: { status: { code: 401 } } },
];

/** The body of POST faults. @param {Preset} preset @param {string} [resource] */
export function faultOf(preset, resource = preset.resource) {
  return { on: { verbs: preset.verbs, resource }, do: preset.do, ...(preset.times ? { times: preset.times } : {}), label: preset.command };
}

/** Whether an armed fault is that of a preset. @param {any} fault @param {Preset} preset */
export function isPreset(fault, preset) {
  return fault.label === preset.command;
}

/** @param {import("fk/app").App} app @param {Preset} preset @param {string} [resource] */
export async function arm(app, preset, resource) {
  const fault = await app.act("faults", { method: "POST", body: faultOf(preset, resource) });
  if (!fault) return;
  await refreshFaults(app);
  app.notice(`Armed: ${preset.title}${resource ? ` for ${resource}` : ""}`);
}

/** @param {import("fk/app").App} app */
export async function refreshFaults(app) {
  const answer = await app.act("faults", { method: "GET" });
  if (answer) app.faults = answer.items;
  app.render();
}

/** The Python that arms a fault. @param {any} fault the body of POST faults */
export function faultPython(fault) {
  const { verbs = "*", resource, ...others } = fault.on ?? {};
  const on = [JSON.stringify(verbs), ...(resource && resource !== "*" ? [JSON.stringify(resource)] : []), ...named(others)];
  const [[action, given]] = Object.entries(fault.do ?? { status: {} });
  const often = Object.fromEntries(["times", "after", "every", "probability", "lasts", "label"].map((name) => [name, fault[name]]).filter(([name, value]) => value !== undefined && value !== null && !(value === DEFAULTS[/** @type {"every"} */ (name)])));
  return `cluster.faults.on(${on.join(", ")}).${action}(${[...named(/** @type {any} */ (given ?? {})), ...named(often)].join(", ")})`;
}

const DEFAULTS = { every: 1, after: 0, probability: 1 };

/** @param {Record<string, any>} values @returns {string[]} */
function named(values) {
  return Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "").map(([name, value]) => `${name}=${pythonLiteral(value)}`);
}

/** The curl of a request to the control prefix. @param {import("fk/app").App} app @param {string} method @param {string} path @param {any} [body] */
export function controlCurl(app, method, path, body) {
  const url = `${app.info.url ?? location.origin}/fakekube/v1/${path}`;
  return `curl ${method === "GET" ? "" : `-X ${method} `}${body === undefined ? "" : `-d ${shellQuote(JSON.stringify(body))} `}${shellQuote(url)}`;
}
