/** What a reader prefers: kept in localStorage, which some browsers refuse for files. */

const DEFAULTS = { theme: "system", shortcuts: "on", panel: "440" };

export class Preferences {
  constructor() {
    this.values = { ...DEFAULTS, ...stored() };
  }

  /** @param {keyof typeof DEFAULTS} name */
  get(name) {
    return this.values[name];
  }

  /** @param {keyof typeof DEFAULTS} name @param {string} value */
  set(name, value) {
    this.values[name] = value;
    try {
      localStorage.setItem("fakekube", JSON.stringify(this.values));
    } catch {
      // the choice holds until the page is closed
    }
    this.apply();
  }

  /** Sets what is preferred on the document. */
  apply() {
    const { theme } = this.values;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }
}

function stored() {
  try {
    const value = JSON.parse(localStorage.getItem("fakekube") ?? "{}");
    return typeof value === "object" && value ? value : {};
  } catch {
    return {};
  }
}
