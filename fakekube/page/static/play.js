/** The cursor: steps from change to change of the filter, and Play, which does so by itself. */

import { isChange, rowOf } from "fk/order";

/** Changes a second. */
export const SPEEDS = [1, 3, 10];

/**
 * The revisions of the changes in the filter, ascending.
 * @param {import("fk/app").App} app @returns {number[]}
 */
export function filteredRevisions(app) {
  const { entries } = app.rows;
  const { changes, requests } = app.store;
  if (app.filtered?.entries !== entries) {
    const found = new Set();
    for (const entry of entries) {
      const row = rowOf(entry);
      if (isChange(entry)) found.add(changes.columns.revision[row]);
      else for (let index = 0; index < requests.columns.writes[row]; index++) found.add(requests.columns.rev[row] + index);
    }
    app.filtered = { entries, revisions: [...found].sort((one, other) => one - other) };
  }
  return app.filtered.revisions;
}

/** Moves the cursor to the previous or next change. @param {import("fk/app").App} app @param {number} step @returns {boolean} whether there was one */
export function moveCursor(app, step) {
  const revisions = filteredRevisions(app);
  const at = app.at ?? Infinity;
  const next = step > 0 ? revisions.find((revision) => revision > at) : revisions.findLast((revision) => revision < at);
  if (next !== undefined) app.setCursor(next);
  return next !== undefined;
}

/** @param {import("fk/app").App} app */
export function createPlay(app) {
  let timer = 0;
  const play = {
    speed: 1,
    running: false,
    toggle: () => (play.running ? play.stop() : play.start()),
    start() {
      const revisions = filteredRevisions(app);
      if (!revisions.length) return app.notice("There is no change in the filter that could be played.");
      if (app.at === null || app.at >= revisions[revisions.length - 1]) app.setCursor(revisions[0]);
      play.running = true;
      schedule();
      app.render();
    },
    stop() {
      play.running = false;
      clearTimeout(timer);
      app.render();
    },
    next() {
      play.speed = SPEEDS[(SPEEDS.indexOf(play.speed) + 1) % SPEEDS.length];
      app.render();
    },
  };
  const schedule = () => {
    timer = setTimeout(() => {
      if (!play.running) return;
      if (moveCursor(app, 1)) schedule();
      else play.stop();
    }, 1000 / play.speed);
  };
  return play;
}
