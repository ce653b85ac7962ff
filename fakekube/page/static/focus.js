/** Moves the focus to what a rendering shows. */

/** What is to have the focus as soon as it is shown, and what had it when that was asked for. @type {{find: () => Element | null | undefined, before: Element | null} | null} */
let wanted = null;

/**
 * Moves the focus to an element after the rendering that shows it; not if the person has moved the focus meanwhile, for example into
 * the command line.
 * @param {() => Element | null | undefined} find returns nothing before the element is shown
 */
export function focusAfterRendering(find) {
  wanted = { find, before: document.activeElement };
}

/** Moves the focus to what is wanted, if it is shown now. Each rendering ends with this. */
export function moveFocus() {
  if (!wanted || document.querySelector("dialog[open]")) return;
  const now = document.activeElement; // the body, after the element with the focus was removed
  if (now && now !== wanted.before && now !== document.body) {
    wanted = null;
    return;
  }
  const found = wanted.find();
  if (!found) return;
  wanted = null;
  /** @type {HTMLElement} */ (found).focus({ preventScroll: true });
}

/** Leaves the focus where it is: the person has gone on, for example to type in a field. */
export function keepFocus() {
  wanted = null;
}

/** Moves the focus to the tabs of the panel, as soon as it has been read. @param {import("fk/app").App} app */
export function focusPanel(app) {
  focusAfterRendering(() => document.querySelector(".panel [role=tab][aria-selected=true]"));
  app.render();
}
