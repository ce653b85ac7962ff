/**
 * The one axis of all views: requests and changes in the order in which the cluster received and committed them. A request has the
 * position of its number; a change the position after the newest request at the time of its commit.
 *
 * An entry is a row of the Timeline: a request with what it wrote, or a change that no request of the rows explains. Entries are
 * numbers: the row of a request, or -1 minus the row of a change.
 */

/** @param {number} row of a request */
export const requestEntry = (row) => row;
/** @param {number} row of a change */
export const changeEntry = (row) => -1 - row;
/** @param {number} entry */
export const isChange = (entry) => entry < 0;
/** @param {number} entry */
export const rowOf = (entry) => (entry < 0 ? -1 - entry : entry);

/**
 * Merges rows of requests and changes into entries.
 * @param {import("fk/store").Store} store
 * @param {Int32Array} requests rows that pass the filter
 * @param {Int32Array} changes rows that pass the filter
 * @param {(row: number) => boolean} [pinned] changes that are entries although their request is one too
 * @returns {Int32Array}
 */
export function mergedEntries(store, requests, changes, pinned = () => false) {
  const numbers = store.requests.columns.number;
  const { after, request, indirect } = store.changes.columns;
  const shown = new Set();
  for (const row of requests) shown.add(numbers[row]);
  const alone = changes.filter((row) => pinned(row) || indirect[row] === 1 || request[row] < 0 || !shown.has(request[row]));
  const entries = new Int32Array(requests.length + alone.length);
  let size = 0;
  let next = 0;
  for (const row of alone) {
    while (next < requests.length && numbers[requests[next]] <= after[row]) entries[size++] = requestEntry(requests[next++]);
    entries[size++] = changeEntry(row);
  }
  while (next < requests.length) entries[size++] = requestEntry(requests[next++]);
  return entries;
}

/**
 * Gives each entry its newest revision: what the cluster had written when it was over.
 * @param {import("fk/store").Store} store @param {Int32Array} entries
 * @returns {Float64Array}
 */
export function entryRevisions(store, entries) {
  const revisions = new Float64Array(entries.length);
  const { revision, after } = store.changes.columns;
  const { number, rev, writes } = store.requests.columns;
  let change = 0;
  let newest = store.changes.count ? Math.max(0, revision[0] - 1) : 0;
  entries.forEach((entry, index) => {
    const row = rowOf(entry);
    if (isChange(entry)) newest = Math.max(newest, revision[row]);
    else {
      while (change < store.changes.count && after[change] < number[row]) newest = Math.max(newest, revision[change++]);
      if (writes[row]) newest = Math.max(newest, rev[row] + writes[row] - 1);
    }
    revisions[index] = newest;
  });
  return revisions;
}

/**
 * The number of entries that belong to the past of a revision: all before the first entry that has a later one.
 * @param {Float64Array} revisions @param {number} at
 */
export function positionOf(revisions, at) {
  let low = 0;
  let high = revisions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (revisions[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}
