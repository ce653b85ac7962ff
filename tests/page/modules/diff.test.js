import { diff, withoutNoise } from "fk/diff";

/** @type {Tests} */
export const tests = {
  "a missing member is absent, null is a value": ({ equal }) => {
    equal(diff({ a: null }, { b: null }), [{ path: "a", old: null }, { path: "b", new: null }]);
    equal(diff({ a: null }, { a: 0 }), [{ path: "a", old: null, new: 0 }]);
  },
  "items are matched by their merge key": ({ equal }) => {
    const found = diff({ c: [{ name: "a", x: 1 }, { name: "b" }] }, { c: [{ name: "a", x: 2 }, { name: "c" }] });
    equal(found, [{ path: "c[name=a].x", old: 1, new: 2 }, { path: "c[name=b]", old: { name: "b" } }, { path: "c[name=c]", new: { name: "c" } }]);
  },
  "another order is a difference of the list": ({ equal }) => {
    const [one, other] = [[{ name: "a" }, { name: "b" }], [{ name: "b" }, { name: "a" }]];
    equal(diff({ c: one }, { c: other }), [{ path: "c", old: one, new: other }]);
  },
  "lists of values are compared by index only if they are equally long": ({ equal }) => {
    equal(diff({ c: [1, 2] }, { c: [1, 3] }), [{ path: "c[1]", old: 2, new: 3 }]);
    equal(diff({ c: [1, 2] }, { c: [1] }), [{ path: "c", old: [1, 2], new: [1] }]);
  },
  "members of the prototype are no members": ({ equal }) => {
    equal(diff({}, JSON.parse('{"__proto__": 1, "constructor": 2}')), [{ path: "__proto__", new: 1 }, { path: "constructor", new: 2 }]);
  },
  "what every write changes can be left out": ({ equal }) => {
    const paths = ["metadata.managedFields[0].time", "metadata.generation", "metadata.generationX", "spec"];
    equal(withoutNoise(paths.map((path) => ({ path }))).map((one) => one.path), ["metadata.generationX", "spec"]);
  },
};
