/** Sets style properties of an element one by one: the Content-Security-Policy forbids style attributes. */

import { Directive, directive, noChange } from "lit";

class Place extends Directive {
  /** @param {Record<string, string>} properties */
  render(properties) {
    void properties;
    return noChange;
  }

  /** @param {any} part @param {[Record<string, string>]} values */
  update(part, [properties]) {
    for (const [name, value] of Object.entries(properties)) {
      if (this.set?.[name] !== value) part.element.style.setProperty(name, value);
    }
    this.set = properties;
    return noChange;
  }
}

/** `<div ${place({"--row": "12", width: "20px"})}>`. */
export const place = directive(Place);
