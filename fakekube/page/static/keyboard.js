/** The keys of all views. Single keys do nothing in fields, and can be switched off (WCAG 2.1.4). */

import { focusAfterRendering } from "fk/focus";
import { helpDialog } from "fk/help";
import { moveCursor } from "fk/play";
import { openSavedMenu } from "fk/saved_filters";

/** Keys after `g`. @type {Record<string, string>} */
const VIEWS = { t: "timeline", o: "objects", r: "requests", c: "controls", e: "report", s: "scenario" };

/** For how many milliseconds a key waits for the second one of its shortcut. */
const LEADER_WAITS = 5000;

/** When `g` was pressed: by the time of the event, since a busy page may handle it later. */
let leader = -Infinity;

/** @param {import("fk/app").App} app @param {KeyboardEvent} event */
export function handleKey(app, event) {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    app.openCommand();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing || app.commandOpen) return;
  if (app.dialog) return dialogKey(app, event);
  if (event.key === "Escape") return escape(app, event);
  if (isField(event.target) || app.preferences.get("shortcuts") === "off") return;
  if (event.timeStamp - leader < LEADER_WAITS && (VIEWS[event.key] || event.key === "f")) {
    leader = -Infinity;
    event.preventDefault();
    if (event.key === "f") openFindings(app);
    else openView(app, VIEWS[event.key]);
    return;
  }
  leader = event.key === "g" ? event.timeStamp : -Infinity;
  if (app.view.key?.(app, event)) event.preventDefault();
  else if (ACTIONS[event.key] && !(event.key === " " && isButton(event.target))) {
    event.preventDefault();
    ACTIONS[event.key](app);
  }
}

/** @type {Record<string, (app: import("fk/app").App) => void>} */
const ACTIONS = {
  "/": () => document.getElementById("filter")?.focus(),
  s: openSavedMenu,
  ":": (app) => {
    app.openCommand();
  },
  "?": (app) => app.openDialog(helpDialog(app)),
  "[": (app) => moveCursor(app, -1),
  "]": (app) => moveCursor(app, 1),
  n: (app) => app.setCursor(null),
  " ": (app) => app.play.toggle(),
  y: (app) => app.copyLink(),
  f: (app) => {
    app.presenting = !app.presenting;
    app.render();
  },
  ".": () => /** @type {HTMLElement | null} */ (document.querySelector(".panel details.menu summary, main details.menu summary"))?.click(),
};
ACTIONS.F = ACTIONS.f;

/** @param {import("fk/app").App} app @param {string} view */
function openView(app, view) {
  if ((view === "report" && !app.report) || (view === "scenario" && !app.scenario)) return;
  app.open(view);
  app.focusView();
}

/** Shows the findings, which are beside the Timeline, and moves to the first. @param {import("fk/app").App} app */
function openFindings(app) {
  app.open("timeline", [], { sel: undefined });
  if (app.findings.length) focusAfterRendering(() => document.querySelector(".finding button"));
  else app.notice("There are no findings.");
}

/** Escape closes a dialog at once; a browser tells of its own closing later. @param {import("fk/app").App} app @param {KeyboardEvent} event */
function dialogKey(app, event) {
  if (event.key !== "Escape") return;
  event.preventDefault();
  app.closeDialog();
}

/** Leaves one thing at a time: a field, the presentation, a message, the panel, an object's page, a range of time. @param {import("fk/app").App} app @param {KeyboardEvent} event */
function escape(app, event) {
  if (isField(event.target)) {
    /** @type {HTMLElement} */ (event.target).blur();
    app.focusView();
  } else if (app.presenting) app.presenting = false;
  else if (app.message) app.message = null;
  else if (app.route.params.sel !== undefined) app.set({ sel: undefined });
  else if (app.route.parts.length) app.open(app.route.view);
  else if (app.route.params.range) app.set({ range: undefined });
  app.render();
}

/** @param {EventTarget | null} target */
function isField(target) {
  return target instanceof HTMLElement && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
}

/** @param {EventTarget | null} target */
function isButton(target) {
  return target instanceof HTMLElement && /^(BUTTON|SUMMARY|A)$/.test(target.tagName);
}
