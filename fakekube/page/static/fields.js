/** Fields: the object as YAML, with the owners of each line beside it, and the actor that last changed it. */

import { html, nothing } from "lit";
import { visible } from "fk/escape";
import { diff } from "fk/diff";
import { Lazy } from "fk/lazy";
import { ownerName, ownersOf } from "fk/owners";
import { revisionOf, digits } from "fk/revisions";
import { MAX_LINES, lineTemplate, linesOf, unfoldButton } from "fk/yaml_view";

/** @typedef {import("fk/app").App} App */

/** Managers whose lines are dimmed. @type {Set<string>} */
const dimmed = new Set();
let raw = false;
let selectedPath = "";
/** @type {Lazy | undefined} */
let histories;
/** @type {WeakMap<object, any>} */
const plain = new WeakMap();

/** @param {App} app @param {import("fk/provider_live").ObjectId} id @param {any} value */
export function fieldsTab(app, id, value) {
  const { object } = value;
  const owners = ownersOf(object);
  const managers = [...new Set((object.metadata?.managedFields ?? []).map((/** @type {any} */ entry) => ownerName({ manager: entry.manager, operation: "", subresource: entry.subresource ?? "", time: "" })))];
  const shown = raw ? object : withoutManaged(object);
  const lines = linesOf(shown);
  const changers = lastChangers(app, id, object);
  return html`<div class="toolbar managers"><span>managers</span>${managers.map((name) => html`<label class="check"><input type="checkbox" .checked=${!dimmed.has(name)} @change=${() => {
      if (!dimmed.delete(name)) dimmed.add(name);
      app.render();
    }}> ${visible(name)}</label>`)}
      <label class="check"><input type="checkbox" .checked=${raw} @change=${() => { raw = !raw; app.render(); }}> managedFields</label></div>
    ${pathLine(app, id, owners, changers)}
    <div class="fields" role="region" aria-label="Fields and their owners" tabindex="0">
      ${lines.slice(0, MAX_LINES * 2).map((line) => fieldLine(app, line, owners.get(line.path) ?? [], changers.get(line.path)))}
    </div>${unfoldButton(app, shown, lines)}`;
}

/** @param {any} object */
function withoutManaged(object) {
  let found = plain.get(object);
  if (!found) {
    const { managedFields, ...metadata } = object.metadata ?? {};
    void managedFields;
    found = { ...object, metadata };
    plain.set(object, found);
  }
  return found;
}

/** @param {App} app @param {import("fk/yaml_lines").Line} line @param {import("fk/owners").Owner[]} owners @param {Changer | undefined} changer */
function fieldLine(app, line, owners, changer) {
  const names = owners.map(ownerName);
  const dim = names.length > 0 && names.every((name) => dimmed.has(name));
  const begins = line.key !== "" || line.dash !== "";
  const owner = !begins ? "" : names.length ? `${names[0]}${names.length > 1 ? ` +${names.length - 1}` : ""}` : "—";
  const classes = `field-line${dim ? " dim" : ""}${line.path === selectedPath && line.path ? " chosen" : ""}${changer?.newest ? " fresh" : ""}`;
  return html`<div class=${classes} @click=${() => { selectedPath = line.path === selectedPath ? "" : line.path; app.render(); }}>
    <span class=${owner === "—" ? "owner nobody" : "owner"} title=${names.join(", ")}>${visible(owner)}${begins && owners.length ? html` <span class="operation">${owners[0].operation}</span>` : nothing}</span>${lineTemplate(line)}</div>`;
}

/** All owners of the chosen path, and who changed it last. @param {App} app @param {import("fk/provider_live").ObjectId} id @param {Map<string, import("fk/owners").Owner[]>} owners @param {Map<string, Changer>} changers */
function pathLine(app, id, owners, changers) {
  const path = app.route.params.path ?? selectedPath;
  if (!path) return html`<p class="hint muted">Choose a line to see all owners of its path, and who changed it.</p>`;
  const found = owners.get(path) ?? [];
  const changer = changers.get(path);
  return html`<p class="hint"><code>${visible(path)}</code> ${found.length ? html`owned by ${found.map((owner, index) => html`${index ? ", " : nothing}<strong>${visible(ownerName(owner))}</strong> (${visible(owner.operation)})`)}` : "owned by nobody: defaulted, or set once"}${changer ? html`; last changed at ${digits(changer.revision)} by ${visible(changer.actor)}` : nothing}
    <button type="button" @click=${() => app.openObject(id, { tab: "history", path })}>History of the path</button></p>`;
}

// ---------------------------------------------------------------- who changed a path last

/** @typedef {{revision: number, actor: string, newest: boolean}} Changer */

/** @param {App} app @param {import("fk/provider_live").ObjectId} id @param {any} object @returns {Map<string, Changer>} */
function lastChangers(app, id, object) {
  histories ??= new Lazy(app, 20);
  const revision = object.metadata?.resourceVersion;
  const entry = histories.get(`${Object.values(id).join("|")}|${revision}`, async () => changersOf(await app.provider.history(id), revisionOf(revision ?? 0)));
  return entry.value ?? new Map();
}

/** The last change of each path up to a revision. @param {import("fk/provider_live").Version[]} versions @param {number} until @returns {Map<string, Changer>} */
function changersOf(versions, until) {
  /** @type {Map<string, Changer>} */
  const found = new Map();
  const kept = versions.filter((one) => revisionOf(one.revision) <= until);
  kept.forEach((version, index) => {
    const before = index ? kept[index - 1].object : undefined;
    if (!before) return;
    const newest = index === kept.length - 1;
    const revision = revisionOf(version.revision);
    for (const one of found.values()) one.newest = false;
    for (const { path } of diff(before, version.object)) found.set(path, { revision, actor: version.actor ?? "", newest });
  });
  return found;
}
