import { formatRoute, parseRange, parseRoute, toView } from "fk/router";

/** @type {Tests} */
export const tests = {
  "what is formatted reads back": ({ equal }) => {
    for (const params of [{ q: 'name:"a b" -c&d=e' }, { path: 'metadata.labels["a/b"]' }, { q: "100% + 1 ü#?" }, {}]) {
      const route = { view: "objects", parts: ["deployments.apps", "default", "a/b%2F?#"], params };
      const { view, parts, params: read, unknown } = parseRoute(formatRoute(route));
      equal({ view, parts, params: read, unknown }, { ...route, unknown: "" });
    }
  },
  "an unknown view is named, and the home is shown": ({ equal }) => {
    const { view, parts, unknown } = parseRoute("#/nowhere/x?at=1", "report");
    equal([view, parts, unknown], ["report", [], "nowhere"]);
    equal(parseRoute("#/%zz").unknown, "%zz");
  },
  "the cursor, the range, the filter and the trial stay in other views": ({ equal }) => {
    const route = parseRoute("#/timeline?at=5&range=1..2&q=web&trial=W5-ends&sel=c5");
    equal(toView(route, "objects", ["a"], { tab: "history" }).params, { at: "5", range: "1..2", q: "web", trial: "W5-ends", tab: "history" });
  },
  "ranges are ordered": ({ equal }) => equal([parseRange("5..3"), parseRange("3..5"), parseRange("3.."), parseRange(undefined)], [["3", "5"], ["3", "5"], null, null]),
};
