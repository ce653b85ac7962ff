/** Moves the focus to what the next rendering shows. */

/**
 * Calls a function that moves the focus, after the next rendering; not if the person has moved the focus meanwhile, for example into
 * the command line.
 * @param {() => void} moveFocus
 */
export function focusAfterRendering(moveFocus) {
  const before = document.activeElement;
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      const now = document.activeElement; // the body, after the element with the focus was removed
      if (now === before || now === document.body || !now) moveFocus();
    }),
  );
}
