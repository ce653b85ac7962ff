import { lineText, yamlLines, yamlText } from "fk/yaml_lines";

/** @type {Tests} */
export const tests = {
  "members, lists and empty values": ({ equal }) => {
    equal(yamlText({ a: { b: [1, { c: "x" }], d: [], e: {} }, f: null }), "a:\n  b:\n  - 1\n  - c: x\n  d: []\n  e: {}\nf: null\n");
  },
  "words that YAML 1.1 takes for something else are quoted": ({ equal }) => {
    for (const word of ["yes", "Off", "null", "~", "1", "1e3", "0x1", "", "- a", "a: b", "#x", "on", "é"]) equal(yamlText({ a: word }), `a: ${JSON.stringify(word)}\n`);
    equal(yamlText({ yes: "plain-word/1.0" }), '"yes": plain-word/1.0\n');
  },
  "several lines are blocks": ({ equal }) => {
    equal(yamlText({ a: "one\ntwo\n", b: "one\ntwo" }), "a: |\n  one\n  two\nb: |-\n  one\n  two\n");
    equal(yamlText({ a: " one\ntwo" }), 'a: " one\\ntwo"\n');
  },
  "lines have the paths of their values": ({ equal }) => {
    equal(yamlLines({ spec: { containers: [{ name: "web", "x.y": 1 }] } }).map((line) => line.path), ["spec", "spec.containers", "spec.containers[name=web].name", 'spec.containers[name=web]["x.y"]']);
  },
  "long lists and texts are folded on demand": ({ equal }) => {
    const value = { l: Array.from({ length: 150 }, (_, index) => index), t: Array.from({ length: 30 }, () => "x").join("\n") };
    equal(yamlLines(value, { fold: true }).filter((line) => line.kind === "folded").map(lineText), ["# … 50 more items", "  # … 10 more lines"]);
    equal(yamlLines(value).filter((line) => line.kind === "folded"), []);
  },
};
