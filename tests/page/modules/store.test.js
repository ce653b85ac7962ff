import { digits, revisionOf, setBase } from "fk/revisions";
import { KEPT_ROWS, Store, Strings, Table } from "fk/store";

const table = () => new Table({ number: "f", name: "s", paths: "S" }, "number", new Strings());
const rows = (/** @type {number[]} */ numbers, /** @type {string} */ suffix = "") => ({
  strings: ["", ...numbers.map((number) => `n${number}${suffix}`)],
  columns: { number: numbers, name: numbers.map((_, index) => index + 1), paths: numbers.map((number) => [`p${number}${suffix}`]) },
});
const content = (/** @type {Table} */ one) => Array.from({ length: one.count }, (_, row) => [one.value("number", row), one.text("name", row), one.value("paths", row)?.[0]]);

/** @type {Tests} */
export const tests = {
  "rows with a known key replace the former ones": ({ equal }) => {
    const one = table();
    one.add(rows([1, 2, 3]));
    one.add(rows([2, 4], "b"));
    equal(content(one), [[1, "n1", "p1"], [2, "n2b", "p2b"], [3, "n3", "p3"], [4, "n4b", "p4b"]]);
  },
  "a late row moves what the same batch has changed": ({ equal }) => {
    const one = table();
    one.add(rows([0, 2, 3]));
    one.add(rows([2, 1, 4], "b"));
    equal(content(one), [[0, "n0", "p0"], [1, "n1b", "p1b"], [2, "n2b", "p2b"], [3, "n3", "p3"], [4, "n4b", "p4b"]]);
  },
  "a batch in any order becomes ordered rows": ({ equal }) => {
    const one = table();
    one.add(rows([5, 3, 9, 1, 7]));
    equal(content(one).map(([number, name]) => [number, name]), [[1, "n1"], [3, "n3"], [5, "n5"], [7, "n7"], [9, "n9"]]);
  },
  "older pages come before, without what is there": ({ equal }) => {
    const one = table();
    one.add(rows([5, 6]));
    one.addOlder(rows([3, 4, 5], "old"));
    equal(content(one), [[3, "n3old", "p3old"], [4, "n4old", "p4old"], [5, "n5", "p5"], [6, "n6", "p6"]]);
  },
  "the oldest rows are dropped": ({ equal }) => {
    const store = new Store();
    store.addRequests({ strings: [""], columns: { number: Array.from({ length: KEPT_ROWS + 10 }, (_, index) => index) } });
    equal([store.requests.count, store.requests.value("number", 0), store.requests.find(9), store.requests.find(10)], [KEPT_ROWS, 10, -1, 0]);
  },
  "removed rows leave the others in order": ({ equal }) => {
    const one = table();
    one.add(rows([1, 2, 3, 4]));
    one.remove(new Set([0, 2]));
    equal(content(one), [[2, "n2", "p2"], [4, "n4", "p4"]]);
  },
  "the request of a heartbeat is one": ({ equal }) => {
    const store = new Store();
    store.addRequests({ strings: [""], columns: { number: [7, 8] } });
    store.addChanges({ strings: ["", "initial"], columns: { revision: [1, 2, 3], request: [-1, 7, 8], reason: [1, 0, 0], heartbeat: [0, 1, 0] } });
    equal([store.requests.value("heartbeat", 0), store.requests.value("heartbeat", 1), store.changes.value("heartbeat", 0)], [1, 0, 2]);
  },
  "revisions beyond 2^53 keep their digits": ({ equal }) => {
    const big = "340282366920938463463374607431768211455";
    setBase(big);
    equal([digits(revisionOf(big)), revisionOf(big) - revisionOf("340282366920938463463374607431768211450"), revisionOf("5")], [big, 5, 0]);
    setBase(1);
    equal(digits(revisionOf(512)), "512");
  },
};
