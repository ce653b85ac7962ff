/** What the page uses of @tanstack/virtual-core. */
export const elementScroll: unknown;
export const observeElementOffset: unknown;
export const observeElementRect: unknown;
export class Virtualizer<Scroll, Item> {
  constructor(options: object);
  options: any;
  scrollElement: Scroll | null;
  scrollOffset: number | null;
  scrollRect: { width: number; height: number } | null;
  range: { startIndex: number; endIndex: number } | null;
  setOptions(options: object): void;
  getVirtualItems(): { index: number; start: number; size: number; key: Item | any }[];
  getTotalSize(): number;
  scrollToIndex(index: number, options?: object): void;
  scrollToOffset(offset: number, options?: object): void;
  measure(): void;
  _didMount(): () => void;
  _willUpdate(): void;
}
