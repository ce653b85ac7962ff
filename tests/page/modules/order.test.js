import { entryRevisions, mergedEntries, positionOf } from "fk/order";
import { Store } from "fk/store";

/** Requests 0 to 3, of which 1 wrote 10 and 11 and 3 wrote 14; 12 was written indirectly by 1, 13 by nobody. */
function sample() {
  const store = new Store();
  store.addRequests({ strings: [""], columns: { number: [0, 1, 2, 3], rev: [0, 10, 0, 14], writes: [0, 2, 0, 1] } });
  store.addChanges({ strings: [""], columns: { revision: [10, 11, 12, 13, 14], after: [1, 1, 1, 2, 3], request: [1, 1, 1, -1, 3], indirect: [0, 0, 1, 0, 0] } });
  return store;
}
const all = (/** @type {number} */ count) => Int32Array.from({ length: count }, (_, index) => index);

/** @type {Tests} */
export const tests = {
  "a change is an entry of its own if no request explains it": ({ equal }) => {
    const store = sample();
    equal([...mergedEntries(store, all(4), all(5))], [0, 1, -3, 2, -4, 3]);
  },
  "changes of hidden requests are entries": ({ equal }) => equal([...mergedEntries(sample(), Int32Array.of(0), all(5))], [0, -1, -2, -3, -4, -5]),
  "pinned changes are entries beside their request": ({ equal }) => equal([...mergedEntries(sample(), all(4), all(5), (row) => row === 4)], [0, 1, -3, 2, -4, 3, -5]),
  "an entry has the newest revision at its end": ({ equal }) => {
    const store = sample();
    equal([...entryRevisions(store, mergedEntries(store, all(4), all(5)))], [9, 11, 12, 12, 13, 14]);
  },
  "the past of a revision ends before the first later entry": ({ equal }) => {
    const revisions = Float64Array.of(9, 11, 12, 12, 13, 14);
    equal([8, 9, 10, 12, 99].map((at) => positionOf(revisions, at)), [0, 1, 1, 4, 6]);
  },
};
