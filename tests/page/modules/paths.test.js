import { isWithin, itemNames, member, mergeKey, steps, valueAt } from "fk/paths";

/** @type {Tests} */
export const tests = {
  "names that are no plain words are quoted": ({ equal }) => {
    equal(member("", "spec"), "spec");
    equal(member("metadata.labels", "app.kubernetes.io/name"), 'metadata.labels["app.kubernetes.io/name"]');
    equal(member("data", ""), 'data[""]');
    equal(member("data", "a]b"), 'data["a]b"]');
  },
  "a merge key identifies every item of all lists": ({ equal }) => {
    equal(mergeKey([{ name: "a" }, { name: "b" }], [{ name: "c" }]), ["name"]);
    equal(mergeKey([{ name: "a" }, { name: "a" }]), null);
    equal(mergeKey([{ name: "a" }, {}]), null);
    equal(mergeKey([{ containerPort: 80, protocol: "TCP" }, { containerPort: 80, protocol: "UDP" }]), ["containerPort", "protocol"]);
    equal(mergeKey([{ key: true }, { key: "true" }]), null);
    equal(mergeKey([], []), null);
  },
  "items are named by key, else by index": ({ equal }) => {
    equal(itemNames([{ name: "web" }, { name: "a b" }]), ["[name=web]", '[name="a b"]']);
    equal(itemNames(["x", "y"]), ["[0]", "[1]"]);
  },
  "steps and values read what paths write": ({ equal }) => {
    const path = 'spec.containers[name="a]\\"b"].args[2]["x.y"]';
    equal(steps(path), ["spec", "containers", { item: '[name="a]\\"b"]' }, "args", 2, "x.y"]);
    equal(valueAt({ spec: { containers: [{ name: 'a]"b', args: [0, 1, { "x.y": 7 }] }] } }, path), 7);
    equal(valueAt({ a: [1] }, "a[3]"), undefined);
    equal(valueAt({}, "constructor"), undefined);
  },
  "a path is within itself and its parents, not within a longer name": ({ equal }) => {
    equal([isWithin("spec.a", "spec"), isWithin("spec", "spec"), isWithin("specs.a", "spec"), isWithin("spec[0]", "spec")], [true, true, false, true]);
  },
};
