/** What the page uses of jsdiff. */
export function diffLines(old: string, now: string, options?: object): { value: string; added?: boolean; removed?: boolean; count?: number }[];
