import { KEYS, filteredRows, parseFilter, resourceMatches, term, withTerm, withoutTerm } from "fk/filter";
import { Store } from "fk/store";

/** A store with requests by actor, verb, resource, name, code, ms. @param {any[][]} rows */
function requests(rows) {
  const names = ["actor", "verb", "resource", "name", "code", "ms", "own", "heartbeat"];
  const strings = [""];
  const intern = (/** @type {string} */ text) => (strings.includes(text) ? strings.indexOf(text) : strings.push(text) - 1);
  /** @type {Record<string, any[]>} */
  const columns = { number: rows.map((_, index) => index) };
  names.forEach((name, place) => {
    columns[name] = rows.map((row) => (typeof row[place] === "string" ? intern(row[place]) : (row[place] ?? 0)));
  });
  const store = new Store();
  store.addRequests({ strings, columns });
  return store.requests;
}

const TABLE = requests([
  ["kubectl", "get", "pods", "web", 200, 3],
  ["my-operator", "patch", "deployments.apps", "web", 409, 30],
  ["my-operator", "patch", "deployments.apps/status", "api", 200, 1],
  ["kubelet", "update", "leases.coordination.k8s.io", "node", 200, 1, 1, 1],
]);
const found = (/** @type {string} */ text) => [...filteredRows(parseFilter(text), TABLE)];

/** @type {Tests} */
export const tests = {
  "terms are joined by AND, values by OR, and - negates": ({ equal }) => {
    equal(found("actor:my-operator verb:patch"), [1, 2]);
    equal(found("actor:kubectl,kubelet"), [0, 3]);
    equal(found("-actor:my-operator"), [0, 3]);
    equal(found(""), [0, 1, 2, 3]);
  },
  "codes are numbers, classes and ranges": ({ equal }) => {
    equal([found("code:409"), found("code:4xx"), found("code>399"), found("code<300"), found("code:400..499")], [[1], [1], [1], [0, 2, 3], [1]]);
    equal(found("ms>2 ms<20"), [0]);
  },
  "words match names, resources and actors as substrings without case": ({ equal }) => {
    equal([found("WEB"), found("operator"), found("-heartbeats"), found('"web"')], [[0, 1], [1, 2], [0, 1, 2], [0, 1]]);
  },
  "own reads and writes": ({ equal }) => equal([found("own:true"), found("own:writes"), found("own:reads"), found("own:false")], [[3], [3], [], [0, 1, 2]]),
  "resources match like requests.where": ({ equal }) => {
    const wanted = ["deployments", "deployments.apps", "deployments/status", "deployments/*", "*", "pods"];
    equal(wanted.map((one) => resourceMatches("deployments.apps/status", one)), [false, false, true, true, true, false]);
    equal(resourceMatches("deployments.apps", "deployments"), true);
  },
  "errors of syntax are told, and nothing is guessed": ({ ok, equal }) => {
    for (const text of ["colour:red", "code:", "verb>3", "code>x", '"open', "-"]) ok(parseFilter(text).error, text);
    equal(parseFilter("colour:red").terms, []);
    ok(parseFilter("constructor:a").error);
  },
  "a written term reads back as the same value": ({ equal }) => {
    for (const value of ["web", "a b", 'q"uote', "a,b", "back\\slash", "-x", "ä", "a:b"]) {
      equal(parseFilter(term("name", value)).terms.map((one) => [one.key, one.values]), [["name", [value]]]);
    }
  },
  "terms are replaced and removed": ({ equal }) => {
    equal(withTerm("name:a -name:b web", "name:c"), "-name:b web name:c");
    const filter = parseFilter("a b c");
    equal(withoutTerm("a b c", filter.terms[1]), "a c");
  },
  "every key is told in the help": ({ ok }) => Object.values(KEYS).forEach((text) => ok(text)),
};
