/**
 * Addresses: all state that a colleague needs to see the same is in the fragment, so that links work in trace files too.
 *
 *     #/timeline?at=512&range=400..600&q=actor:my-operator&sel=c512
 *     #/objects/deployments.apps/default/web?tab=history&versions=512..560&path=spec.replicas
 *     #/timeline?trial=W5/ends in the report of a check
 */

export const VIEWS = ["timeline", "objects", "requests", "controls", "compare", "report", "scenario"];

/**
 * @typedef {object} Route
 * @property {string} view
 * @property {string[]} parts after the view
 * @property {Record<string, string>} params
 * @property {string} unknown the view that was asked for, if there is none of this name
 */

/** Members of a route that stay when another view is opened. */
const KEPT = ["at", "range", "q", "trial"];

/**
 * @param {string} fragment with or without `#`
 * @param {string} home the view of an empty fragment
 * @returns {Route}
 */
export function parseRoute(fragment, home = "timeline") {
  const [path, query = ""] = split(fragment.replace(/^#?\/?/, ""));
  const [view = "", ...parts] = path.split("/").map(decode);
  const params = Object.fromEntries(new URLSearchParams(query.replaceAll("+", "%2B")));
  const known = VIEWS.includes(view);
  return { view: known ? view : home, parts: known ? parts.filter((part) => part !== "") : [], params, unknown: known || !view ? "" : view };
}

/** @param {string} text */
function split(text) {
  const at = text.indexOf("?");
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {{view: string, parts?: string[], params?: Record<string, string | undefined>}} route @returns {string} */
export function formatRoute({ view, parts = [], params = {} }) {
  const path = [view, ...parts].map((part) => encodeURIComponent(part)).join("/");
  const query = Object.entries(params)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${readable(/** @type {string} */ (value))}`)
    .join("&");
  return `#/${path}${query ? `?${query}` : ""}`;
}

/** Encodes a value, and leaves what is harmless readable. @param {string} value */
function readable(value) {
  return encodeURIComponent(value).replace(/%(3A|2F|2C|5B|5D|3D|3E|3C|22|24)/g, (one) => ("%3E%3C%22".includes(one) ? one : decodeURIComponent(one)));
}

/**
 * The route of another view: cursor, range and filter stay.
 * @param {Route} route @param {string} view @param {string[]} [parts] @param {Record<string, string | undefined>} [params]
 */
export function toView(route, view, parts = [], params = {}) {
  const kept = Object.fromEntries(KEPT.filter((name) => route.params[name] !== undefined).map((name) => [name, route.params[name]]));
  return { view, parts, params: { ...kept, ...params } };
}

/**
 * Two revisions: `400..600`; null if the text is none.
 * @param {string | undefined} text
 * @returns {[string, string] | null}
 */
export function parseRange(text) {
  const match = /^(\d{1,40})\.\.(\d{1,40})$/.exec(text ?? "");
  if (!match) return null;
  return BigInt(match[1]) <= BigInt(match[2]) ? [match[1], match[2]] : [match[2], match[1]];
}
