import { ownerName, ownersOf } from "fk/owners";

const entry = (/** @type {string} */ manager, /** @type {any} */ fieldsV1) => ({ manager, operation: "Apply", time: "t", fieldsV1 });
const owners = (/** @type {any} */ object) => Object.fromEntries([...ownersOf(object)].map(([path, found]) => [path, found.map((one) => one.manager)]));

/** @type {Tests} */
export const tests = {
  "members, items by key, values and indexes": ({ equal }) => {
    const fields = { "f:a": {}, "f:c": { 'k:{"name":"x"}': { ".": {}, "f:image": {} }, 'k:{"name":"gone"}': {} }, "f:s": { 'v:"q"': {} }, "f:l": { "i:1": {} } };
    const object = { a: 1, c: [{ name: "x", image: "i" }], s: ["p", "q"], l: [0, 1], metadata: { managedFields: [entry("m", fields)] } };
    equal(owners(object), { a: ["m"], "c[name=x]": ["m"], "c[name=x].image": ["m"], "s[1]": ["m"], "l[1]": ["m"] });
  },
  "a default member of a key fits an item without it": ({ equal }) => {
    const fields = { "f:ports": { 'k:{"containerPort":80,"protocol":"TCP"}': { ".": {} } } };
    equal(owners({ ports: [{ containerPort: 80 }], metadata: { managedFields: [entry("m", fields)] } }), { "ports[0]": ["m"] });
  },
  "names of the prototype, null and broken keys find nothing": ({ equal }) => {
    const fields = { "f:constructor": {}, "f:c": { 'k:{"constructor":null}': { ".": {} }, "k:{": {}, "v:": {}, "i:9": {}, "x:": {} } };
    equal(owners({ c: [{}], metadata: { managedFields: [entry("m", fields)] } }), {});
    equal(owners({}), {});
  },
  "co-owners stand in the order of managedFields": ({ equal }) => {
    equal(owners({ a: 1, metadata: { managedFields: [entry("one", { "f:a": {} }), entry("two", { "f:a": {} })] } }), { a: ["one", "two"] });
  },
  "the name of an owner has its subresource": ({ equal }) => {
    equal(ownerName({ manager: "m", operation: "Update", subresource: "status", time: "" }), "m/status");
  },
};
