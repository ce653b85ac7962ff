/** The form of a new fault: made from what the cluster says about its actions, with a preview of what it would meet. */

import { html, live } from "lit";
import { copyMenu } from "fk/dialog";
import { visible } from "fk/escape";
import { controlCurl, faultPython, refreshFaults } from "fk/presets";

/** @typedef {import("fk/app").App} App */

const ON = /** @type {[string, string][]} */ ([["verbs", "get,list,watch,create,update,patch,delete or *"], ["resource", "pods, deployments.apps, pods/status, *"], ["namespace", "any"], ["name", "any"], ["agent", "the beginning of the User-Agent"], ["user", "any"]]);
const OFTEN = /** @type {[string, string][]} */ ([["times", "how often; empty: always"], ["after", "how many requests pass first"], ["every", "each so many"], ["probability", "0 to 1"], ["lasts", "seconds of the clock"], ["label", "a name"]]);
/** Numbers among the members of a fault. */
const NUMERIC = new Set(["times", "after", "every", "probability", "lasts"]);

/** @type {any[] | undefined} */
let actions;

/** @param {App} app @param {any} initial the body of POST faults */
export async function faultForm(app, initial) {
  actions ??= (await app.act("faults/actions", { method: "GET" }))?.items;
  if (!actions) return;
  const known = actions.filter((one) => one.name !== "intercept");
  const state = { action: Object.keys(initial.do)[0], on: { ...initial.on }, given: { ...Object.values(initial.do)[0] }, often: {}, preview: "" };
  const fault = () => ({ on: cleaned(state.on), do: { [state.action]: typed(known, state.action, state.given) }, ...cleaned(state.often, true) });
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(() => preview(app, fault(), state), 150);
    app.render();
  };
  let timer = /** @type {any} */ (0);
  app.openDialog({
    title: "New fault",
    wide: true,
    confirm: "Arm",
    body: () => form(app, known, state, fault, changed),
    act: async () => {
      await app.provider.call("faults", { method: "POST", body: fault() });
      await refreshFaults(app);
    },
  });
  changed();
}

/** @param {App} app @param {any} fault @param {{preview: string}} state */
async function preview(app, fault, state) {
  try {
    const answer = await app.provider.call("faults/preview", { method: "POST", body: fault });
    state.preview = `It would have met ${answer.matches} of the last ${answer.of} requests.`;
  } catch (error) {
    state.preview = String(/** @type {any} */ (error)?.message ?? error);
  }
  app.render();
}

/** @param {App} app @param {any[]} known @param {any} state @param {() => any} fault @param {() => void} changed */
function form(app, known, state, fault, changed) {
  const action = known.find((one) => one.name === state.action) ?? known[0];
  const field = (/** @type {Record<string, any>} */ target, /** @type {string} */ name, /** @type {string} */ hint) => html`<label class="field"><span>${visible(name)}</span><input type="text" placeholder=${visible(hint)} .value=${String(target[name] ?? "")} @input=${(/** @type {any} */ event) => { target[name] = event.target.value; changed(); }}></label>`;
  return html`<fieldset><legend>Requests that it meets</legend><div class="form-grid">${ON.map(([name, hint]) => field(state.on, name, hint))}</div></fieldset>
    <fieldset><legend>What happens to them</legend>
      <label class="field"><span>action</span><select @change=${(/** @type {any} */ event) => { state.action = event.target.value; state.given = {}; changed(); }}>${known.map((one) => html`<option value=${one.name} .selected=${live(one.name === state.action)}>${visible(one.name)}</option>`)}</select></label>
      <p class="muted">${visible(action?.description ?? "")}</p>
      <div class="form-grid">${(action?.arguments ?? []).filter((/** @type {any} */ one) => one.name !== "change" && one.name !== "function").map((/** @type {any} */ one) => field(state.given, one.name, `${one.type ?? ""}${one.default !== undefined && one.default !== null ? `, ${one.default} if empty` : one.required ? ", required" : ""}`))}</div></fieldset>
    <fieldset><legend>How often</legend><div class="form-grid">${OFTEN.map(([name, hint]) => field(state.often, name, hint))}</div></fieldset>
    <p role="status"><strong>${visible(state.preview)}</strong></p>
    <p>${copyMenu(app, [["Python", () => faultPython(fault())], ["curl", () => controlCurl(app, "POST", "faults", fault())]])} <code class="muted">${visible(faultPython(fault()))}</code></p>`;
}

/** @param {Record<string, any>} values @param {boolean} [numbers] */
function cleaned(values, numbers = false) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined).map(([name, value]) => [name, numbers && NUMERIC.has(name) ? Number(value) : value]));
}

/** @param {any[]} known @param {string} action @param {Record<string, any>} given */
function typed(known, action, given) {
  const types = Object.fromEntries((known.find((one) => one.name === action)?.arguments ?? []).map((/** @type {any} */ one) => [one.name, String(one.type ?? "")]));
  return Object.fromEntries(Object.entries(cleaned(given)).map(([name, value]) => [name, /int|float|number/.test(types[name] ?? "") && value !== "" ? Number(value) : value]));
}
