/** What is measured of the page: browsers keep every measure until it is cleared, so only the latest are kept. */

const KEPT = 200;

/** @param {string} name */
export function begin(name) {
  performance.clearMarks(`${name}-start`);
  performance.mark(`${name}-start`);
}

/** Ends what was begun; nothing happens if it was not. @param {string} name */
export function end(name) {
  if (!performance.getEntriesByName(`${name}-start`).length) return;
  if (performance.getEntriesByName(name).length >= KEPT) performance.clearMeasures(name);
  performance.measure(name, `${name}-start`);
  performance.clearMarks(`${name}-start`);
}
