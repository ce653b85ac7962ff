/**
 * A virtualised grid of rows of one height. One tab stop: the grid itself has the focus, and names the active row.
 *
 * The rows of the DOM are slots that are used again while scrolling: slot `s` shows the rows `i` with `i % slots === s`, so that a
 * scroll step changes only the slots that came into view.
 */

import { html, nothing, ref, render, classMap, ifDefined } from "lit";
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "virtual";
import { count } from "fk/format";
import { begin, end } from "fk/measure";
import { place } from "fk/place";
import { PRINTED_ROWS, isPrinting, onPrinting } from "fk/printing";

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {string} width for grid-template-columns
 * @property {(index: number) => any} cell
 * @property {string} [class]
 * @property {number} [min] the width of the grid in pixels from which the column is shown
 * @property {string} [help] the description of the title
 */

/**
 * @typedef {object} GridOptions
 * @property {string} label
 * @property {number} count
 * @property {Column[]} columns
 * @property {number} active the index of the active row, -1 for none
 * @property {(index: number) => void} onActive
 * @property {(index: number) => void} [onOpen] Enter or double click
 * @property {(index: number, event: KeyboardEvent) => boolean} [onKey] returns whether it handled the key
 * @property {(index: number, event: MouseEvent) => boolean} [onClick] returns whether it handled the click
 * @property {(index: number) => Record<string, boolean>} [rowClass]
 * @property {(index: number) => {level: number, expanded: boolean | undefined}} [tree]
 * @property {any} [empty] what is shown without rows
 * @property {boolean} [follow] whether the end is followed while it is in view
 * @property {string} [address] what the address selects: the active row is scrolled into view when this changes
 */

export const ROW_HEIGHT = 26;
const HEADER_HEIGHT = 28;
let grids = 0;

export class Grid {
  constructor() {
    this.id = `grid${++grids}`;
    /** @type {HTMLElement | undefined} */
    this.element = undefined;
    /** @type {HTMLElement | undefined} */
    this.body = undefined;
    this.width = 0;
    this.atEnd = true;
    this.unseen = 0;
    /** @type {string | undefined} */
    this.revealed = undefined;
    /** @type {GridOptions} */
    this.options = { label: "", count: 0, columns: [], active: -1, onActive: () => {} };
    onPrinting(() => this.#renderRows());
    this.attach = (/** @type {Element | undefined} */ element) => this.#attached(/** @type {HTMLElement | undefined} */ (element));
    this.attachBody = (/** @type {Element | undefined} */ element) => {
      this.body = /** @type {HTMLElement | undefined} */ (element);
      if (this.body) this.#renderRows();
    };
  }

  /** @param {GridOptions} options */
  template(options) {
    const grown = options.count - this.options.count;
    const following = options.follow && this.atEnd && options.count !== this.options.count;
    if (options.follow && !this.atEnd && grown > 0 && this.options.count) this.unseen += grown;
    if (this.atEnd || options.count < this.options.count) this.unseen = 0;
    this.options = options;
    this.shown = options.columns.filter((column) => !column.min || this.width === 0 || this.width >= column.min);
    queueMicrotask(() => this.#update(following ?? false));
    const columns = this.shown.map((column) => column.width).join(" ");
    return html`<div class="grid-frame">
      <div class="grid" id=${this.id} role=${options.tree ? "treegrid" : "grid"} tabindex="0" aria-label=${options.label} aria-rowcount=${options.count + 1}
        aria-colcount=${this.shown.length} aria-activedescendant=${ifDefined(options.active >= 0 ? `${this.id}-${options.active}` : undefined)}
        @keydown=${this.onKeyDown} @click=${this.onClick} @dblclick=${this.onDoubleClick} @scroll=${this.onScroll} ${ref(this.attach)} ${place({ "--columns": columns })}>
        <div role="rowgroup" class="grid-head"><div role="row" class="grid-row" aria-rowindex="1">
          ${this.shown.map((column) => html`<div role="columnheader" class=${column.class ?? ""} title=${ifDefined(column.help)}>${column.title}</div>`)}
        </div></div>
        <div role="rowgroup" class="grid-body" ${ref(this.attachBody)} ${place({ height: `${options.count * ROW_HEIGHT}px` })}></div>
      </div>
      ${options.count === 0 && options.empty ? html`<div class="empty">${options.empty}</div>` : nothing}
      ${this.unseen > 0 ? html`<button type="button" class="unseen" @click=${() => this.toEnd()}>${this.unseen.toLocaleString("en-US")} new ↓</button>` : nothing}
    </div>`;
  }

  /** @param {HTMLElement | undefined} element */
  #attached(element) {
    if (element === this.element) return;
    this.cleanup?.();
    this.virtualizer = undefined;
    this.element = element;
    this.revealed = undefined;
    if (!element) return;
    this.virtualizer = new Virtualizer(this.#virtualOptions());
    this.cleanup = this.virtualizer._didMount();
    this.virtualizer._willUpdate();
  }

  #virtualOptions() {
    return {
      count: this.options.count,
      getScrollElement: () => this.element ?? null,
      estimateSize: () => ROW_HEIGHT,
      overscan: 6,
      paddingStart: 0,
      scrollPaddingEnd: HEADER_HEIGHT,
      scrollToFn: elementScroll,
      observeElementRect,
      observeElementOffset,
      onChange: () => {
        begin("fk:scroll");
        this.#renderRows();
        end("fk:scroll");
      },
    };
  }

  /** Takes over new options after the page was rendered. @param {boolean} following */
  #update(following) {
    if (!this.virtualizer || !this.element) return;
    const width = this.element.clientWidth;
    const wider = (this.width !== width) && this.options.columns.some((column) => column.min && (column.min <= this.width) !== (column.min <= width));
    this.width = width;
    this.virtualizer.setOptions(this.#virtualOptions());
    this.virtualizer._willUpdate();
    if (following) this.toEnd();
    this.#revealAddress();
    this.#renderRows();
    if (wider) this.onResize?.();
  }

  /** Shows the active row once for each address: also of a link that was just opened, as soon as its row is there. */
  #revealAddress() {
    const { active, address } = this.options;
    if (!this.element?.clientHeight || active < 0 || address === undefined || address === this.revealed) return;
    this.revealed = address;
    const top = active * ROW_HEIGHT;
    const height = this.element.clientHeight - HEADER_HEIGHT;
    const { scrollTop } = this.element;
    if (top >= scrollTop && top + ROW_HEIGHT <= scrollTop + height) return;
    this.element.scrollTop = Math.max(0, top - height / 2);
    this.atEnd = false;
  }

  /** Called when the template must be rendered again: other columns fit, or the end was reached. @type {(() => void) | undefined} */
  onResize = undefined;

  #renderRows() {
    if (!this.body || !this.virtualizer) return;
    if (isPrinting()) {
      this.slots = 0;
      this.#renderPrinted(this.body);
      return;
    }
    const items = this.virtualizer.getVirtualItems();
    const first = items.length ? items[0].index : 0;
    const slots = Math.max(items.length, this.slots ?? 0);
    this.slots = slots;
    const rows = new Array(slots).fill(-1);
    for (let index = first; index < first + slots && index < this.options.count; index++) rows[index % slots] = index;
    render(rows.map((index) => (index < 0 ? nothing : this.#row(index))), this.body);
  }

  /** All rows up to a limit, one below the other. @param {HTMLElement} body */
  #renderPrinted(body) {
    const rows = Array.from({ length: Math.min(this.options.count, PRINTED_ROWS) }, (_, index) => this.#row(index));
    const left = this.options.count - rows.length;
    render([...rows, left > 0 ? html`<div class="printed-part">${count(rows.length)} of ${count(this.options.count)} rows</div>` : nothing], body);
  }

  /** @param {number} index */
  #row(index) {
    const { options } = this;
    const tree = options.tree?.(index);
    const classes = { "grid-row": true, active: index === options.active, ...options.rowClass?.(index) };
    return html`<div role="row" class=${classMap(classes)} id=${`${this.id}-${index}`} data-index=${index} aria-rowindex=${index + 2} aria-selected=${index === options.active ? "true" : "false"}
      aria-level=${ifDefined(tree?.level)} aria-expanded=${ifDefined(tree?.expanded === undefined ? undefined : String(tree.expanded))} ${place({ transform: `translateY(${index * ROW_HEIGHT}px)` })}>
      ${(this.shown ?? []).map((column) => html`<div role="gridcell" class=${column.class ?? ""}>${column.cell(index)}</div>`)}
    </div>`;
  }

  /** @param {number} index */
  reveal(index) {
    this.virtualizer?.scrollToIndex(index, { align: "auto" });
  }

  toEnd() {
    if (this.element) this.element.scrollTop = this.element.scrollHeight;
    this.unseen = 0;
    this.atEnd = true;
  }

  onScroll = () => {
    if (!this.element) return;
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    this.atEnd = scrollTop + clientHeight >= scrollHeight - ROW_HEIGHT;
    if (this.atEnd && this.unseen) {
      this.unseen = 0;
      this.onResize?.();
    }
  };

  /** @param {Event} event @returns {number} */
  #indexOf(event) {
    const row = /** @type {HTMLElement} */ (event.target).closest("[data-index]");
    return row ? Number(/** @type {HTMLElement} */ (row).dataset.index) : -1;
  }

  onClick = (/** @type {MouseEvent} */ event) => {
    const index = this.#indexOf(event);
    if (index < 0 || /** @type {HTMLElement} */ (event.target).closest("a, button")) return;
    if (this.options.onClick?.(index, event)) return;
    this.options.onActive(index);
  };

  onDoubleClick = (/** @type {MouseEvent} */ event) => {
    const index = this.#indexOf(event);
    if (index >= 0) this.options.onOpen?.(index);
  };

  onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { active, count } = this.options;
    if (active >= 0 && this.options.onKey?.(active, event)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const page = Math.max(1, Math.floor(((this.element?.clientHeight ?? 0) - HEADER_HEIGHT) / ROW_HEIGHT) - 1);
    const target = { ArrowDown: active + 1, ArrowUp: active < 0 ? count - 1 : active - 1, Home: 0, End: count - 1, PageDown: active + page, PageUp: active - page }[event.key];
    if (target !== undefined && count) {
      event.preventDefault();
      const index = Math.max(0, Math.min(count - 1, target));
      this.options.onActive(index);
      this.reveal(index);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      this.options.onOpen?.(active);
    }
  };
}
