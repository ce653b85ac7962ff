/** What the page uses of xterm.js. */
export class FitAddon {
  fit(): void;
}
export class Terminal {
  constructor(options?: object);
  cols: number;
  rows: number;
  loadAddon(addon: FitAddon): void;
  open(element: HTMLElement): void;
  focus(): void;
  write(data: string | Uint8Array): void;
  parser: { registerOscHandler(code: number, handler: (data: string) => boolean): void };
  onData(listener: (data: string) => void): void;
  onBinary(listener: (data: string) => void): void;
  onResize(listener: (size: { cols: number; rows: number }) => void): void;
}
