/** What the page uses of Lit; the shipped file has no types. */
export const nothing: unique symbol;
export const noChange: unique symbol;
export function html(strings: TemplateStringsArray, ...values: unknown[]): unknown;
export function render(value: unknown, container: Element | DocumentFragment, options?: object): unknown;
export function ref(callback: (element: Element | undefined) => void): unknown;
export function classMap(classes: Record<string, unknown>): unknown;
export function ifDefined(value: unknown): unknown;
export function live(value: unknown): unknown;
export class Directive {
  constructor(part: unknown);
  render(...values: any[]): unknown;
  update(part: any, values: any[]): unknown;
}
export function directive(made: new (part: any) => Directive): (...values: any[]) => unknown;
