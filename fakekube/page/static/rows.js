/** How a request or a change reads in a table, a tooltip, a title. */

import { html, nothing } from "lit";
import { visible } from "fk/escape";
import { milliseconds, qualified, time } from "fk/format";
import { digits } from "fk/revisions";

/** The shape of a mark: what was done, by shape and colour, never by colour alone. */
export const SHAPES = /** @type {Record<string, string>} */ ({
  create: "▲", update: "■", patch: "■", apply: "■", status: "◧", delete: "▼", deletecollection: "▼", bind: "◆", read: "·", watch: "▬", other: "·",
});

/**
 * The kind of mark of a verb and a resource.
 * @param {string} verb @param {string} resource
 */
export function markKind(verb, resource) {
  if (resource.endsWith("/binding")) return "bind";
  if (resource.endsWith("/status") && /^(update|patch|apply)$/.test(verb)) return "status";
  if (verb === "get" || verb === "list") return "read";
  return SHAPES[verb] ? verb : "other";
}

/** The kind of mark of a change. @param {string} type @param {string} sub */
export function changeKind(type, sub) {
  if (type === "ADDED") return "create";
  if (type === "DELETED") return "delete";
  return sub === "status" ? "status" : "update";
}

/** @param {import("fk/store").Table} table @param {number} row */
export function nameOf(table, row) {
  return qualified(table.text("namespace", row), table.text("name", row));
}

/** The class of a status code. @param {number} code */
export function codeClass(code) {
  if (code === 0) return "in-flight";
  return code >= 500 ? "code bad" : code >= 400 ? "code warn" : "code";
}

/** `#120 update deployments.apps default/web`. @param {import("fk/store").Table} requests @param {number} row */
export function requestTitle(requests, row) {
  const resource = requests.text("resource", row);
  return visible(`#${requests.value("number", row)} ${requests.text("verb", row)} ${resource ? `${resource} ${nameOf(requests, row)}` : requests.text("path", row)}`.trim());
}

/** One line about a request. @param {import("fk/store").Table} requests @param {number} row */
export function requestLine(requests, row) {
  const code = requests.value("code", row);
  return `${requestTitle(requests, row)} by ${visible(requests.text("actor", row))}: ${code || "in flight"}, ${milliseconds(requests.value("ms", row))} ms`;
}

/** One line about a change. @param {import("fk/store").Table} changes @param {number} row */
export function changeLine(changes, row) {
  const verb = { ADDED: "created", DELETED: "deleted" }[changes.text("type", row)] ?? "changed";
  const kind = changes.text("kind", row) || changes.text("resource", row);
  return visible(`revision ${digits(changes.value("revision", row))}: ${kind} ${nameOf(changes, row)} ${verb} by ${changes.text("actor", row) || changes.text("reason", row)}`);
}

/** The revisions that a request wrote: `520`, `520 +2`. @param {import("fk/store").Table} requests @param {number} row */
export function wroteText(requests, row) {
  const writes = requests.value("writes", row);
  if (!writes) return "";
  return digits(requests.value("rev", row)) + (writes > 1 ? ` +${writes - 1}` : "");
}

/** Changed paths in one line. @param {string[] | undefined} paths */
export function pathsText(paths) {
  if (!paths?.length) return "";
  const shown = paths.filter((path) => !/^metadata\.(managedFields|resourceVersion|generation)\b/.test(path));
  const [first = "", ...rest] = shown;
  return visible(first + (rest.length ? ` +${rest.length}` : ""));
}

/** @param {number} seconds */
export function timeCell(seconds) {
  return html`<time>${time(seconds)}</time>`;
}

/** An actor with the colour of its lane. @param {import("fk/app").App} app @param {string} actor @param {string} side */
export function actorCell(app, actor, side) {
  return actor ? html`<span class="actor ${colourClass(app, actor, side)}">${visible(actor)}</span>` : nothing;
}

/** Clients have one of seven hues by the order of their appearance; the cluster's own actors are grey. @param {import("fk/app").App} app @param {string} actor @param {string} side */
export function colourClass(app, actor, side) {
  if (side === "fault") return "hue-fault";
  if (side !== "client") return "hue-own";
  const hues = (app.hues ??= new Map());
  if (!hues.has(actor)) hues.set(actor, hues.size);
  const hue = hues.get(actor);
  return hue < 7 ? `hue-${hue}` : "hue-more";
}
