import { diff } from "fk/diff";
import { pythonLiteral } from "fk/escape";
import { parseExact, stringifyExact } from "fk/exact_json";
import { yamlText } from "fk/yaml_lines";

const BIG = '{"a":9007199254740993,"b":[-9223372036854775808,1.5],"c":{"d":"12345678901234567890","e":9007199254740991}}';

/** @type {Tests} */
export const tests = {
  "integers beyond 2^53 keep their digits"({ equal, ok }) {
    const value = parseExact(BIG);
    equal(String(value.a), "9007199254740993");
    ok(typeof value.c.d === "string" && typeof value.c.e === "number", "the others");
    equal(stringifyExact(value), BIG);
    equal(JSON.parse(stringifyExact(value, 2)).c.d, "12345678901234567890");
  },
  "no member or text of an object is taken for a mark"({ equal }) {
    for (const text of ['{"integer":"9007199254740993","x":9007199254740993}', '{"x":9007199254740993,"y":{"integer1":"1"}}', '["\\"9007199254740993",9007199254740993]']) {
      equal(stringifyExact(parseExact(text)), text);
    }
  },
  "they are printed, compared and copied exactly"({ equal }) {
    const [before, after] = ['{"a":9007199254740993}', '{"a":9007199254740992}'].map(parseExact);
    equal(yamlText(before), "a: 9007199254740993\n");
    equal(diff(before, parseExact('{"a":9007199254740993}')), []);
    equal(stringifyExact(diff(before, after)), '[{"path":"a","old":9007199254740993,"new":9007199254740992}]');
    equal(pythonLiteral(before), '{"a": 9007199254740993}');
  },
};
