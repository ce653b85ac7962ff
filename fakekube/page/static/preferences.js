/** What a reader prefers: kept in localStorage, which some browsers refuse for files, and which anything may have written. */

/** @typedef {{name: string, text: string}} NamedFilter */
/** @typedef {{theme: string, shortcuts: string, panel: string, filters: NamedFilter[]}} Values */

/** @type {Values} */
const DEFAULTS = { theme: "system", shortcuts: "on", panel: "440", filters: [] };
const KEY = "fakekube";

/** Bounds of the saved filters. */
export const MAX_FILTERS = 50;
export const MAX_NAME = 60;
export const MAX_TEXT = 2000;

/** What is a value of a preference; what is none is read as the default. @type {{[name in keyof Values]: (value: any) => any}} */
const READERS = {
  theme: (value) => (["system", "light", "dark"].includes(value) ? value : undefined),
  shortcuts: (value) => (["on", "off"].includes(value) ? value : undefined),
  panel: (value) => (/^\d{3,4}$/.test(String(value)) ? String(value) : undefined),
  filters: (value) => (Array.isArray(value) ? value.filter(isFilter).map(({ name, text }) => ({ name, text })).slice(0, MAX_FILTERS) : undefined),
};

/** @param {any} value */
function isFilter(value) {
  return typeof value?.name === "string" && typeof value.text === "string" && value.name.trim() !== "" && value.name.length <= MAX_NAME && value.text.length <= MAX_TEXT;
}

export class Preferences {
  constructor() {
    this.values = stored();
    /** What the storage did not take; it holds until the page is closed. @type {Partial<Values>} */
    this.unkept = {};
  }

  /** Takes over what another page of the cluster has stored. */
  reload() {
    this.values = stored();
    this.apply();
  }

  /** @template {keyof Values} Name @param {Name} name @returns {Values[Name]} */
  get(name) {
    return this.unkept[name] ?? this.values[name];
  }

  /**
   * @template {keyof Values} Name
   * @param {Name} name @param {Values[Name]} value
   * @returns {string} why the storage did not take the value, which then holds until the page is closed; empty if it did
   */
  set(name, value) {
    const values = { ...stored(), [name]: value };
    const problem = store(values);
    if (problem) this.unkept[name] = value;
    else {
      this.values = values;
      delete this.unkept[name];
    }
    this.apply();
    return problem;
  }

  /**
   * Changes a preference only if the storage takes it; what another page has stored meanwhile stays.
   * @template {keyof Values} Name
   * @param {Name} name @param {(value: Values[Name]) => Values[Name]} change
   * @returns {string} why it was not stored; empty if it was
   */
  change(name, change) {
    const values = stored();
    const changed = { ...values, [name]: change(values[name]) };
    const problem = store(changed);
    if (!problem) this.values = changed;
    return problem;
  }

  /** Why nothing can be stored; empty if it can. @returns {string} */
  get readOnly() {
    return store(stored());
  }

  /** Sets what is preferred on the document. */
  apply() {
    const theme = this.get("theme");
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }
}

/** @returns {Values} */
function stored() {
  let found;
  try {
    found = JSON.parse(localStorage.getItem(KEY) ?? "null");
  } catch {
    found = null; // refused, or no JSON
  }
  const values = Object.entries(READERS).map(([name, read]) => [name, (Object.hasOwn(found ?? {}, name) ? read(found[name]) : undefined) ?? DEFAULTS[/** @type {keyof Values} */ (name)]]);
  return Object.fromEntries(values);
}

/** @param {Values} values @returns {string} why they were not stored */
function store(values) {
  try {
    localStorage.setItem(KEY, JSON.stringify(values));
    return "";
  } catch (error) {
    const isFull = error instanceof DOMException && /quota/i.test(error.name);
    return isFull ? "The storage of this browser is full." : "This browser stores nothing for this page.";
  }
}
