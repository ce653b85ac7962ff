/** Whether the page is being printed: tables then have their rows in the document, and drawings more pixels. */

const query = matchMedia("print");
let begun = false;

/** How many rows of a table are printed. */
export const PRINTED_ROWS = 2000;

export function isPrinting() {
  return begun || query.matches;
}

/** The pixels of a drawing for each pixel of the page. */
export function pixelRatio() {
  return Math.max(devicePixelRatio || 1, isPrinting() ? 2 : 1);
}

/** Calls a function when printing begins or ends. @param {() => void} changed */
export function onPrinting(changed) {
  const set = (/** @type {boolean} */ value) => () => {
    begun = value;
    changed();
  };
  addEventListener("beforeprint", set(true));
  addEventListener("afterprint", set(false));
  query.addEventListener("change", changed);
}
