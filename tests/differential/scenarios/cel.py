"""CEL in custom resources: x-kubernetes-validations, its libraries, transitions, messages, reasons, paths, costs and errors."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.definitions import CRDS, DRY, definition, make, obj, served
from tests.differential.pacing import until
from tests.differential.registry import scenario

STR: dict[str, Any] = {"type": "string", "maxLength": 40}
INT: dict[str, Any] = {"type": "integer"}
NUM: dict[str, Any] = {"type": "number"}
BOOL: dict[str, Any] = {"type": "boolean"}
IOS: dict[str, Any] = {"x-kubernetes-int-or-string": True}
VALID = "x-kubernetes-validations"


def arr(items: Any, size: int = 5, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": size, **more}


def named_map(values: Any, size: int = 5, **more: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values, "maxProperties": size, **more}


def ruled(schema: dict[str, Any], *rules: Any) -> dict[str, Any]:
    return {**schema, VALID: [r if isinstance(r, dict) else {"rule": r} for r in rules]}


def single(client: Client, schema: Any, *rules: Any) -> dict[str, Any]:
    return definition(client, obj({"spec": obj({"f": ruled(schema, *rules)})}))


def holds(client: Client, schema: Any, *cases: tuple[Any, list[Any]]) -> None:
    """Whether each rule holds for each of its values; or, where a rule is refused, in which words."""
    rules = [rule if isinstance(rule, list) else [rule] for rule, _ in cases]
    good = [client.post(CRDS, single(client, schema, *r), DRY, silent=True).status == 201 for r in rules]
    body = definition(client, obj({"spec": obj({f"p{i}": ruled(schema, *r) for i, r in enumerate(rules) if good[i]})}))
    with served(client, body) as path:
        for i, (_, values) in enumerate(cases):
            for value in values:
                if good[i]:
                    client.post(path, make(body, spec={f"p{i}": value}), DRY)
                else:
                    client.post(CRDS, single(client, schema, *rules[i]), DRY)


def shows(client: Client, schema: Any, value: Any, *expressions: str) -> None:
    """What each expression (a string) comes to: it is the message of a rule that never holds."""
    holds(client, schema, *(({"rule": "false", "messageExpression": e, "message": "no value"}, [value]) for e in expressions))


def compiles(client: Client, schema: Any, *rules: Any) -> None:
    """What the compiler says about each rule (or None)."""
    for rule in rules:
        client.post(CRDS, single(client, schema, rule), DRY)


def story(client: Client, schema: Any, first: Any, *updates: Any) -> None:
    """Create with a spec, then try to turn it into others, one after the other."""
    body = definition(client, obj({"spec": schema}))
    with served(client, body) as path:
        client.post(path, make(body, spec=first))
        for spec in updates:
            now = client.get(f"{path}/one", silent=True).json
            if isinstance(now, dict):
                client.put(f"{path}/one", {**now, "spec": spec})


# ---------------------------------------------------------------- where rules live


@scenario
def rules_at_every_level(client: Client) -> None:
    """At the root, in spec, in list items, in map values, in nested lists; the field of the error says where."""
    schema = ruled(
        obj(
            {
                "spec": ruled(
                    obj(
                        {
                            "a": ruled(STR, {"rule": "self != 'bad'", "message": "bad a"}),
                            "l": arr(ruled(obj({"n": INT}), "!has(self.n) || self.n > 0")),
                            "m": named_map(ruled(STR, "self.startsWith('x')")),
                            "ll": arr(arr(ruled(INT, "self < 10"))),
                            "whole": ruled(arr(INT), "self.size() != 2"),
                        }
                    ),
                    "!has(self.a) || !has(self.l)",
                )
            }
        ),
        "self.metadata.name != 'forbidden'",
        {"rule": "self.kind == 'Widget' && self.apiVersion.endsWith('/v1') && has(self.spec)", "message": "needs a spec"},
    )
    body = definition(client, schema)
    with served(client, body) as path:
        for spec in (
            {},
            {"a": "bad"},
            {"l": [{"n": 1}, {"n": 0}, {}, {"n": -1}]},
            {"m": {"a": "x1"}},
            {"m": {"a.b": "y"}},
            {"ll": [[1], [2, 11]]},
            {"whole": [1, 2]},
            {"a": "fine", "l": []},
            {"a": "bad", "l": []},
        ):
            client.post(path, make(body, spec=spec), DRY)
        client.post(path, make(body, "forbidden", spec={}), DRY)
        client.post(path, make(body), DRY)
        client.post(path, {**make(body, spec={}), "metadata": {"generateName": "generated-"}}, DRY)


@scenario
def the_parts_of_metadata_that_rules_see(client: Client) -> None:
    """Only name and generateName; labels do not compile."""
    for rule in (
        "self.metadata.name.size() < 5",
        "has(self.metadata.generateName) || self.metadata.name == 'x'",
        "self.metadata.labels.size() == 0",
        "self.metadata.namespace == 'x'",
        "self.metadata.uid == 'x'",
        "has(self.metadata)",
    ):
        client.post(CRDS, definition(client, ruled(obj({"spec": obj({"a": STR})}), rule)), DRY)


@scenario
def reasons_and_paths_of_errors(client: Client) -> None:
    """Each reason has its error type; fieldPath extends the field."""
    schema = obj({"a": obj({"b": STR, "odd-key": STR}), "m": named_map(STR), "l": arr(INT)})
    ways: list[dict[str, Any]] = [
        {"reason": r} for r in ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
    ]
    ways += [{"fieldPath": p} for p in (".a", ".a.b", ".a['odd-key']", ".m.key", ".m['a.b']", ".l")] + [
        {"reason": "FieldValueRequired", "fieldPath": ".a.b", "message": "  spaced  "},
        {"message": "told", "messageExpression": "'computed'"},
        {"message": "told", "messageExpression": "''"},
        {"messageExpression": "' '"},
        {"messageExpression": "'a\\nb'"},
        {"message": "told", "messageExpression": "10 / (has(self.l) ? 1 : 0) > 1 ? 'x' : 'y'"},
        {"messageExpression": "self.a.b"},
    ]
    holds(client, schema, *(({"rule": "has(self.l) && self.l.size() > 3", **way}, [{"a": {}}]) for way in ways))


@scenario
def several_rules_fail_together(client: Client) -> None:
    """All rules of a level are told in order, with their reasons."""
    holds(
        client,
        STR,
        (
            [
                "self.size() > 3",
                {"rule": "self.contains('x')", "message": "no x"},
                {"rule": "self.matches('^[a-z]+$')", "reason": "FieldValueForbidden"},
            ],
            ["Q", "abc", "abcx"],
        ),
        ([{"rule": "self == 'a'", "messageExpression": "'got ' + self"}, "self != 'b'"], ["a", "b", "c"]),
    )


# ---------------------------------------------------------------- transitions


@scenario
def transition_rules(client: Client) -> None:
    """oldSelf: not checked on create; immutable, growing, once-set and never-unset fields."""
    schema = ruled(
        obj(
            {
                "fixed": ruled(STR, "self == oldSelf"),
                "grow": ruled(
                    INT, {"rule": "self >= oldSelf", "messageExpression": "self < 5 ? 'below five' : 'not below five'"}
                ),
                "once": STR,
            }
        ),
        {"rule": "!has(oldSelf.once) || has(self.once)", "message": "once may not be unset"},
    )
    story(
        client,
        schema,
        {"fixed": "a", "grow": 1},
        {"fixed": "b", "grow": 1},
        {"fixed": "a", "grow": 5},
        {"fixed": "a", "grow": 4},
        {"grow": 5},
        {"fixed": "z", "grow": 5, "once": "x"},
        {"fixed": "z"},
        {"fixed": "z", "grow": 0, "once": "y"},
    )


@scenario
def transition_rules_in_lists_and_maps(client: Client) -> None:
    """Items of map lists and map values are matched by key."""
    item = ruled(
        obj({"k": STR, "v": INT}, required=["k"]),
        {"rule": "!has(oldSelf.v) || (has(self.v) && self.v >= oldSelf.v)", "message": "v shrank"},
    )
    schema = obj(
        {
            "l": arr(item, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
            "m": named_map(ruled(STR, "self == oldSelf")),
            "whole": ruled(arr(STR), "oldSelf.all(x, x in self)"),
        }
    )
    story(
        client,
        schema,
        {"l": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "m": {"x": "1"}, "whole": ["p"]},
        {"l": [{"k": "b", "v": 3}, {"k": "a", "v": 0}]},
        {"l": [{"k": "b", "v": 0}]},
        {"l": [{"k": "c", "v": 0}], "m": {"y": "2"}},
        {"m": {"y": "3", "z": "4"}},
        {"whole": ["q"]},
        {"whole": ["q", "r"]},
        {"whole": ["r"]},
    )


@scenario
def optional_old_self(client: Client) -> None:
    """With optionalOldSelf the rule also runs on create; oldSelf is an optional value."""
    schema = obj(
        {
            "a": ruled(
                STR, {"rule": "oldSelf.hasValue() || self == 'start'", "optionalOldSelf": True, "message": "must start at start"}
            ),
            "b": ruled(
                INT,
                {
                    "rule": "self <= oldSelf.orValue(0) + 1",
                    "optionalOldSelf": True,
                    "messageExpression": "oldSelf.hasValue() ? 'one step only' : 'start at one'",
                },
            ),
            "c": ruled(STR, {"rule": "oldSelf.optMap(o, o.size() <= self.size()).orValue(true)", "optionalOldSelf": True}),
        }
    )
    story(
        client,
        schema,
        {"a": "start", "b": 1},
        {"a": "later", "b": 3},
        {"a": "later", "b": 2, "c": "new"},
        {"a": "later", "c": "n"},
        {"b": 5},
        {"b": 1},
    )
    story(client, schema, {"a": "else"})
    story(client, schema, {"b": 2})


@scenario
def transitions_are_ratcheted(client: Client) -> None:
    """A rule that an unchanged value breaks is not an error on update."""
    schema = obj({"a": STR, "b": STR})
    body = definition(client, obj({"spec": schema}))
    with served(client, body) as path:
        client.post(path, make(body, spec={"a": "bad", "b": "x"}), silent=True)
        new = obj({"a": ruled(STR, "self != 'bad'"), "b": ruled(STR, {"rule": "self != 'bad'", "reason": "FieldValueForbidden"})})
        client.patch(
            f"{CRDS}/{body['metadata']['name']}",
            {"spec": {"versions": [{**body["spec"]["versions"][0], "schema": {"openAPIV3Schema": obj({"spec": new})}}]}},
            MERGE,
            silent=True,
        )
        until(lambda: client.post(path, make(body, "two", spec={"a": "bad"}), DRY, silent=True).status == 422)
        for change in ({"b": "y"}, {"b": "bad"}, {"a": "good"}, {"a": "bad"}):
            client.patch(f"{path}/one", {"spec": change}, MERGE)


# ---------------------------------------------------------------- values and conversions


@scenario
def conversions(client: Client) -> None:
    """int, uint, double, string, bytes, bool, duration, timestamp and type()."""
    shows(
        client,
        STR,
        "42",
        "string(int(self) + 1)",
        "string(double(self) / 4.0)",
        "string(uint(self))",
        "string(int(4.7))",
        "string(int(-4.7))",
        "string(1.0)",
        "string(1e21)",
        "string(0.1 + 0.2)",
        "string(1e-7)",
        "string(true)",
        "string(b'abc')",
        "string(bytes('é').size())",
        "string('é'.size())",
        "string(duration('1h30m'))",
        "string(duration('90s').getMinutes())",
        "string(timestamp('2024-01-02T03:04:05Z'))",
        "string(timestamp('2024-01-02T03:04:05.5+02:00'))",
        "string(timestamp('2024-01-02T03:04:05Z').getDayOfWeek())",
        "string(timestamp('2024-03-02T03:04:05Z').getDayOfYear('Europe/Berlin'))",
        "string(timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T12:00:00Z'))",
        "string(timestamp('2024-01-31T00:00:00Z') + duration('24h'))",
        "string(int(timestamp('1970-01-01T00:01:00Z')))",
        "string(int('0x10'))",
        "string(5 % 3) + string(-5 % 3)",
        "string(-7 / 2)",
        "string(type(1) == int)",
        "string(type(self) == string)",
        "string(bool('true'))",
        "string(double('1e3'))",
        "string(int(3u))",
        "string([1,2] + [3] == [1,2,3])",
        "string({'a': 1} == {'a': 1.0})",
        "string(1 == 1.0)",
        "string('b' > 'a')",
        "string(int(double('1e18')))",
        "string(dyn(1) == dyn('1'))",
    )


@scenario
def runtime_errors(client: Client) -> None:
    """Errors while a rule runs: the words of the error are the message's."""
    holds(
        client,
        STR,
        ("int(self) > 0", ["1", "x", "", "9223372036854775808"]),
        ("1 / int(self) > 0", ["1", "0"]),
        ("int(self) % 0 == 1", ["1"]),
        ("[1, 2][int(self)] == 2", ["1", "5", "-1"]),
        ("{'a': 1}[self] == 1", ["a", "b"]),
        ("duration(self) > duration('1s')", ["2s", "x", "1d"]),
        ("timestamp(self) > timestamp('2020-01-01T00:00:00Z')", ["2024-01-01T00:00:00Z", "x"]),
        ("self.matches(self)", ["a", "("]),
        ("bool(self)", ["true", "T", "1", "yes"]),
        ("double(self) > 1.0", ["1.5", "x"]),
        ("uint(self) > 1u", ["2", "-1"]),
        ("9223372036854775807 + int(self) > 0", ["1", "0"]),
        ("dyn(self) > 1", ["x"]),
        ("self == 'x' || int(self) > 0", ["x", "y"]),
        ("int(self) > 0 || true", ["y"]),
        ("self.size() > 1 && int(self) > 0", ["y", "yy", "12"]),
        ("self == 'x' ? true : int(self) > 1", ["x", "y"]),
    )


@scenario
def numbers(client: Client) -> None:
    """integer and number fields; mixed arithmetic does not compile, comparisons do."""
    holds(
        client,
        INT,
        ("self > 1", [1, 2]),
        ("self * self < 100", [3, 10, 2**40]),
        ("double(self) / 2.0 == 1.5", [3]),
        ("self > 1.5", [1, 2]),
    )
    holds(
        client,
        NUM,
        ("self > 1.5", [1, 2, 1.5, 1.6]),
        ("self == 3.0", [3, 3.0]),
        ("int(self) == 3", [3.9, 1e30]),
        ("math.ceil(self) == 2.0", [1.2]),
        ("self < 2", [1.5, 2]),
    )
    compiles(
        client,
        INT,
        "self / 2.0 == 1.0",
        "self + 1.5 > 2.0",
        "self == 1.0",
        "self in [1, 2.0]",
        "self + 'a' == 'b'",
        "-self < 0",
        "!self",
        "self ? true : false",
    )


@scenario
def strings(client: Client) -> None:
    """The strings library."""
    shows(
        client,
        STR,
        "Hello World",
        "self.charAt(4)",
        "string(self.indexOf('o'))",
        "string(self.indexOf('o', 5))",
        "string(self.lastIndexOf('o'))",
        "self.lowerAscii()",
        "self.upperAscii()",
        "self.replace('l', 'L')",
        "self.replace('l', 'L', 2)",
        "self.split(' ').join('-')",
        "self.split(' ')[1]",
        "string(self.split('').size())",
        "self.split('l', 2)[1]",
        "self.substring(6)",
        "self.substring(0, 5)",
        "'  x '.trim() + '.'",
        "['a', 'b'].join()",
        "self.reverse()",
        "strings.quote(self + '\\n\"')",
        "string(self.contains('World'))",
        "'%s is %d, %.2f, %x, %b, %e, %o, %%'.format([self, 42, 1.5, 255, 5, 1234.5, 8])",
        "'%s'.format([[1, 'a', true, null, {'k': 1.5}]])",
        "'%X'.format([self])",
        "'%d'.format([1.5])",
        "self.charAt(99)",
        "self.substring(3, 1)",
        "string(self.find('[A-Z]'))",
        "self.findAll('[A-Z]')[1]",
        "string(self.findAll('o', 1).size())",
        "string(self.matches('W.*d$'))",
        "string(self.startsWith('Hell'))",
    )


@scenario
def lists(client: Client) -> None:
    """The lists library, macros and two-variable comprehensions."""
    shows(
        client,
        arr(INT, 8),
        [3, 1, 2, 3],
        "string(self.sort()[0])",
        "self.distinct().size() == 3 ? 'three' : 'else'",
        "string(self.slice(1, 3).size())",
        "string([[1], [2, 3]].flatten().size())",
        "string(lists.range(3).sum())",
        "self.reverse()[0] == 3 ? 'yes' : 'no'",
        "string(self.sum())",
        "string(self.min())",
        "string(self.max())",
        "string(self.isSorted())",
        "string(self.indexOf(3))",
        "string(self.lastIndexOf(3))",
        "string([1,2].sum())",
        "string(self.exists(x, x > 2))",
        "string(self.exists_one(x, x == 3))",
        "string(self.all(x, x > 0))",
        "self.map(x, string(x)).join(',')",
        "string(self.map(x, x * 2)[2])",
        "string(self.map(x, x > 1, x * 2).size())",
        "string(self.filter(x, x > 1)[1])",
        "string(self[0])",
        "string(size(self))",
        "string(3 in self)",
        "string(self.all(i, v, i < 4 && v > 0))",
        "string(self.exists(i, v, i == v))",
        "string(self.transformList(i, v, i * v)[3])",
        "string(self.transformMap(i, v, v * 2)[0])",
        "string(self.existsOne(i, v, v == 1))",
        "string(self.sum() > 8 ? 'big' : 'small')",
        "string([] == [])",
        "string([0.5, 1.5].sum())",
        "string([duration('1s'), duration('2s')].sum())",
        "['b', 'a'].max()",
    )


@scenario
def maps(client: Client) -> None:
    """Maps: keys, has(), in, comprehension over keys, optional access."""
    shows(
        client,
        named_map(INT),
        {"a": 1, "b-c": 2, "namespace": 3},
        "string(self.a)",
        "string(self['b-c'])",
        "string('a' in self)",
        "string('zz' in self)",
        "string(has(self.a))",
        "string(has(self.zz))",
        "string(self.size())",
        "string(self.all(k, k.size() > 0))",
        "string(self.exists(k, self[k] == 3))",
        "string(self[?'zz'].orValue(9))",
        "string(self.?a.orValue(9))",
        "string(self.?zz.hasValue())",
        "string(self.all(k, v, v > 0))",
        "self.transformList(k, v, v == 1, k)[0]",
        "string(self.transformMap(k, v, v + 1).a)",
        "string(self.namespace)",
        "string(self == {'a': 1, 'b-c': 2, 'namespace': 3})",
    )
    holds(client, named_map(INT), ("self['zz'] == 1", [{"a": 1}, {"zz": 1}]), ("self.zz == 1", [{"a": 1}, {"zz": 2}]))


@scenario
def urls(client: Client) -> None:
    """The URL library."""
    shows(
        client,
        {**STR, "maxLength": 80},
        "https://user@example.com:8080/a/b%20c?x=1&x=2&y=z#frag",
        "string(isURL(self))",
        "url(self).getScheme()",
        "url(self).getHost()",
        "url(self).getHostname()",
        "url(self).getPort()",
        "url(self).getEscapedPath()",
        "url(self).getQuery()['x'][1]",
        "string(url(self).getQuery().size())",
        "url('https://[::1]:80/').getHostname()",
        "string(isURL('../rel'))",
        "string(isURL('/abs'))",
        "string(isURL(''))",
        "string(url('/abs').getHost().size())",
        "string(url('http://x').getPort().size())",
    )
    holds(
        client,
        STR,
        ("url(self).getScheme() == 'https'", ["https://x", "not a url", "mailto:x"]),
        ("isURL(self)", ["http://a b", "http://%zz", "x:y"]),
    )


@scenario
def addresses(client: Client) -> None:
    """The IP and CIDR libraries."""
    shows(
        client,
        STR,
        "192.168.0.10",
        "string(isIP(self))",
        "string(ip(self).family())",
        "string(ip(self))",
        "string(ip.isCanonical('::0001'))",
        "string(ip(self).isLoopback())",
        "string(ip('127.0.0.1').isLoopback())",
        "string(ip('0.0.0.0').isUnspecified())",
        "string(ip('169.254.1.1').isLinkLocalUnicast())",
        "string(ip('224.0.0.1').isLinkLocalMulticast())",
        "string(ip(self).isGlobalUnicast())",
        "string(isCIDR('10.0.0.0/8'))",
        "string(cidr('192.168.0.0/24').containsIP(ip(self)))",
        "string(cidr('192.168.0.0/24').containsIP('192.169.0.1'))",
        "string(cidr('192.168.0.0/16').containsCIDR('192.168.1.0/24'))",
        "string(cidr('192.168.1.5/24').masked())",
        "string(cidr('10.0.0.0/8').prefixLength())",
        "string(cidr('10.0.0.0/8').ip())",
        "string(ip('::1').family())",
        "string(ip('::ffff:1.2.3.4').family())",
        "string(isIP('1.2.3'))",
        "string(isIP('fe80::1%en0'))",
        "string(ip(self) == ip('192.168.0.10'))",
    )
    holds(
        client,
        STR,
        ("ip(self).family() == 4", ["1.2.3.4", "::1", "x", "1.2.3.4.5", "01.2.3.4", "::ffff:1.2.3.4"]),
        ("cidr(self).prefixLength() > 8", ["10.0.0.0/8", "10.0.0.0/16", "10.0.0.0", "10.0.0.0/64"]),
    )


@scenario
def quantities(client: Client) -> None:
    """The quantity library."""
    shows(
        client,
        STR,
        "1500m",
        "string(isQuantity(self))",
        "string(quantity(self).asApproximateFloat())",
        "string(quantity('10k').asInteger())",
        "string(quantity('1Gi').asInteger())",
        "string(quantity(self).isInteger())",
        "string(quantity(self).sign())",
        "string(quantity('-1').sign())",
        "string(quantity(self).isGreaterThan(quantity('1')))",
        "string(quantity(self).isLessThan(quantity('1')))",
        "string(quantity(self).compareTo(quantity('1.5')))",
        "string(quantity(self).add(quantity('500m')).asInteger())",
        "string(quantity(self).sub(1).asApproximateFloat())",
        "string(quantity(self) == quantity('1.5'))",
        "string(isQuantity('1 Gi'))",
        "string(isQuantity('1e3'))",
        "string(isQuantity('1.5Gi'))",
        "string(isQuantity('0x1'))",
        "string(quantity('1e3').asInteger())",
    )
    holds(
        client,
        STR,
        ("quantity(self).asInteger() > 1", ["5", "x", "1500m", "10E"]),
        ("quantity(self).isLessThan(quantity('1Gi'))", ["1Mi", "2Gi", "", "1GB"]),
    )
    holds(client, IOS, ("type(self) == string ? isQuantity(self) : self > 0", ["1Gi", "junk", 5, 0]))


@scenario
def formats(client: Client) -> None:
    """The named formats library."""
    shows(
        client,
        STR,
        "Not_A_Label",
        "format.dns1123Label().validate(self).value()[0]",
        "string(format.dns1123Label().validate('ok').hasValue())",
        "string(format.named('dns1123Subdomain').hasValue())",
        "string(format.named('nonsense').hasValue())",
        "string(format.uuid().validate(self).hasValue())",
        "format.date().validate(self).value()[0]",
        "format.datetime().validate('2024-01-01').value()[0]",
        "format.labelValue().validate('a b').value()[0]",
        "format.qualifiedName().validate('a/b/c').value()[0]",
        "format.uri().validate('x y').value()[0]",
        "format.byte().validate('!').value()[0]",
        "string(format.dns1035Label().validate('1a').hasValue())",
        "string(format.dns1123LabelPrefix().validate('a-').hasValue())",
        "string(format.dns1123SubdomainPrefix().validate('a.').hasValue())",
        "string(format.dns1035LabelPrefix().validate('a-').hasValue())",
    )
    holds(
        client,
        STR,
        ("!format.dns1123Subdomain().validate(self).hasValue()", ["a.b", "A", ""]),
        ("format.named('uuid').value().validate(self) == optional.none()", ["0f8fad5b-d9cb-469f-a165-70867728950e", "no"]),
        ("format.named(self).hasValue()", ["byte", "bite"]),
    )


@scenario
def semantic_versions(client: Client) -> None:
    """The semver library."""
    shows(
        client,
        STR,
        "1.2.3-alpha.1+build",
        "string(isSemver(self))",
        "string(semver(self).major())",
        "string(semver(self).minor())",
        "string(semver(self).patch())",
        "string(semver(self).isLessThan(semver('1.2.3')))",
        "string(semver(self).isGreaterThan(semver('1.2.2')))",
        "string(semver(self).compareTo(semver('1.2.3-alpha.1')))",
        "string(isSemver('v1.2.3'))",
        "string(isSemver('v1.2', true))",
        "string(semver('v1.2', true).patch())",
        "string(isSemver('01.2.3'))",
        "string(isSemver('01.2.3', true))",
        "string(semver('1.0.0') == semver('1.0.0'))",
        "string(isSemver('1.0'))",
    )
    holds(
        client,
        STR,
        ("semver(self).major() == 1", ["1.0.0", "2.0.0", "1.0", "x"]),
        ("semver(self, true).minor() == 0", ["1", "v1.0", "1.1", "?"]),
    )


@scenario
def sets_and_optionals(client: Client) -> None:
    """The sets library and optional values."""
    shows(
        client,
        arr(STR),
        ["a", "b"],
        "string(sets.contains(self, ['a']))",
        "string(sets.contains(self, ['c']))",
        "string(sets.equivalent(self, ['b', 'a', 'a']))",
        "string(sets.intersects(self, ['b', 'z']))",
        "optional.of('x').value()",
        "optional.none().orValue('none')",
        "self[?5].orValue('missing')",
        "self[?0].orValue('missing')",
        "string(optional.ofNonZeroValue('').hasValue())",
        "optional.of('x').or(optional.of('y')).value()",
        "optional.of('x').optMap(v, v + v).orValue('')",
        "self[?1].optFlatMap(v, v == 'b' ? optional.of('got b') : optional.none()).orValue('other')",
        "string([?self[?0], ?self[?7]].size())",
        "string({?'k': self[?9]}.size())",
        "optional.none().value()",
        "cel.bind(x, self[0], x + x)",
    )
    compiles(
        client,
        arr(STR),
        "optional.of(self) == self",
        "sets.contains(self, [1])",
        "self[?0].size() > 1",
        "cel.bind(x, self[0], x == 'a')",
        "self.first().hasValue()",
        "self.?a.hasValue()",
        "sets.union(self, self).size() > 1",
    )


@scenario
def regular_expressions(client: Client) -> None:
    """RE2 syntax in matches, find and findAll."""
    holds(
        client,
        STR,
        ("self.matches('^(foo|bar)[0-9]{2,3}$')", ["foo12", "bar1234", "xfoo12"]),
        ("self.matches('(?i)abc')", ["xABCx", "ab"]),
        ("self.matches('\\\\d+\\\\.\\\\d')", ["1.5", "15"]),
        ("matches(self, r'^\\p{Lu}')", ["Élan", "élan"]),
        ("self.find('[0-9]+') == '12'", ["ab12cd34", "ab"]),
        ("self.findAll('[0-9]+') == ['12', '34']", ["ab12cd34", "12"]),
        ("self.matches('^$')", ["", " "]),
    )
    compiles(
        client,
        STR,
        "self.matches('(?=x)')",
        "self.matches('[')",
        "self.matches('a**')",
        "self.matches(r'\\1')",
        "self.matches('a{2000}')",
        "self.matches(5)",
        "self.find('(') == ''",
    )


@scenario
def reserved_names_are_escaped(client: Client) -> None:
    """__x__ forms for reserved words, dots, dashes, slashes and underscores."""
    names = {
        "in": "__in__",
        "namespace": "__namespace__",
        "my-key": "my__dash__key",
        "my.key": "my__dot__key",
        "my/key": "my__slash__key",
        "under__score": "under__underscores__score",
        "true": "__true__",
        "package": "__package__",
        "self": "self",
        "type": "type",
        "size": "size",
        "x_y": "x_y",
    }
    body = definition(
        client,
        obj(
            {
                "spec": ruled(
                    obj({n: {**STR, "nullable": n == "size"} for n in names}),
                    *({"rule": f"!has(self.{e}) || self.{e} == 'ok'", "message": f"{n} is not ok"} for n, e in names.items()),
                )
            }
        ),
    )
    with served(client, body) as path:
        for name in names:
            client.post(path, make(body, spec={name: "no"}), DRY)
        client.post(path, make(body, spec=dict.fromkeys(names, "ok")), DRY)
    compiles(
        client,
        obj({"1st": STR, "if": STR, "while": STR, "a b": STR, "": STR, "ü": STR, "int": STR}),
        "has(self.__if__)",
        "has(self.if)",
        "has(self.while)",
        "has(self.__while__)",
        "has(self.int)",
        "has(self.ü)",
    )


@scenario
def int_or_string_and_null(client: Client) -> None:
    """int-or-string fields are dynamic; nullable fields compare with null."""
    holds(
        client,
        IOS,
        ("self == 5 || self == '50%'", [5, "5", "50%"]),
        ("type(self) == int ? self < 10 : self.endsWith('%')", [5, 50, "5%", "5"]),
        ("self > 3", [4, 2, "4"]),
        ("string(self) == '7'", [7, "7", 8]),
    )
    body = definition(
        client,
        obj(
            {
                "spec": ruled(
                    obj({"n": {**STR, "nullable": True}, "o": obj({"x": STR}, nullable=True), "d": {**STR, "default": "d"}}),
                    {"rule": "!has(self.n) || self.n.size() > 1", "message": "n is short"},
                    {"rule": "has(self.d)", "message": "no d"},
                    {"rule": "!has(self.o) || has(self.o.x)", "message": "o has no x"},
                    "!has(self.n) || dyn(self.n) != 'forbidden'",
                )
            }
        ),
    )
    with served(client, body) as path:
        for spec in (
            {},
            {"n": None},
            {"n": "x"},
            {"n": "xy"},
            {"o": None},
            {"o": {}},
            {"n": "forbidden"},
            {"n": "ok", "o": {"x": "1"}},
        ):
            client.post(path, make(body, spec=spec), DRY)


@scenario
def preserved_fields_are_invisible(client: Client) -> None:
    """What only preserve-unknown-fields keeps cannot be named; whole objects compare without it."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    compiles(client, {**free, "properties": {"a": STR}}, "has(self.a)", "has(self.b)", "self.b == 1", "self == oldSelf")
    compiles(
        client,
        obj({"any": {"x-kubernetes-preserve-unknown-fields": True}}),
        "has(self.any)",
        "self.any == 1",
        "self.any.x == 1",
        "dyn(self).any == 1",
    )
    holds(
        client,
        {**free, "properties": {"a": STR}},
        ("!has(self.a) || self.a == 'x'", [{"b": 1}, {"a": "y", "b": 1}]),
        ("self == oldSelf", [{"q": 1}]),
    )


@scenario
def embedded_resources(client: Client) -> None:
    """apiVersion, kind and metadata.name of an embedded resource can be used."""
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    compiles(
        client, embedded, "self.kind == 'Pod'", "self.metadata.name == 'x'", "self.metadata.labels.size() > 1", "self.spec.x == 1"
    )
    holds(
        client,
        embedded,
        (
            "self.kind == 'Pod' && self.apiVersion == 'v1'",
            [{"kind": "Pod", "apiVersion": "v1"}, {"kind": "Job", "apiVersion": "batch/v1"}],
        ),
        (
            "self.metadata.name.startsWith('p')",
            [{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "q"}}, {"kind": "Pod", "apiVersion": "v1"}],
        ),
    )


@scenario
def formatted_strings_have_types(client: Client) -> None:
    """date and date-time are timestamps, duration is a duration, byte is bytes."""
    body = definition(
        client,
        obj(
            {
                "spec": obj(
                    {
                        "d": ruled({"type": "string", "format": "date"}, "self.getFullYear() == 2024"),
                        "t": ruled({"type": "string", "format": "date-time"}, "self > timestamp('2024-01-01T00:00:00Z')"),
                        "u": ruled(
                            {"type": "string", "format": "duration"},
                            {
                                "rule": "self < duration('1h')",
                                "messageExpression": "self > duration('90m') ? 'much too long' : 'too long'",
                            },
                        ),
                        "b": ruled({"type": "string", "format": "byte", "maxLength": 20}, "size(self) < 3 && self != b'no'"),
                        "i": ruled({"type": "integer", "format": "int32"}, "self + 1 > 0"),
                        "p": ruled({"type": "string", "format": "ipv4"}, "self.startsWith('1')"),
                    }
                )
            }
        ),
    )
    with served(client, body) as path:
        for spec in (
            {"d": "2024-05-05"},
            {"d": "2023-05-05"},
            {"t": "2024-05-05T00:00:00Z"},
            {"t": "2023-05-05T00:00:00Z"},
            {"u": "30m"},
            {"u": "2h"},
            {"u": "junk"},
            {"b": "aGk="},
            {"b": "bm8="},
            {"b": "aGVsbG8="},
            {"i": -5},
            {"p": "2.2.2.2"},
            {"d": "junk"},
            {"u": "1 day"},
        ):
            client.post(path, make(body, spec=spec), DRY)
    compiles(
        client,
        {"type": "string", "format": "date"},
        "self == '2024-01-01'",
        "self.size() > 1",
        "self == oldSelf",
        "string(self) == 'x'",
    )


# ---------------------------------------------------------------- costs


@scenario
def estimated_costs(client: Client) -> None:
    """Without limits of size the estimate is too high; with them it passes."""
    text = {"type": "string"}
    compiles(
        client, arr(text, 1000), "self.all(x, self.exists_one(y, x == y))", "self.all(x, x.matches('^a'))", "self.size() < 5"
    )
    compiles(
        client,
        {"type": "array", "items": text},
        "self.all(x, x.contains('a'))",
        "self.isSorted()",
        {"rule": "size(self) > 1", "messageExpression": "self.join(', ')"},
    )
    compiles(
        client,
        {"type": "array", "items": obj({"l": {"type": "array", "items": text}})},
        "self.all(o, o.l.all(x, x.startsWith('a')))",
    )
    compiles(client, named_map(text, 100000), "self.all(k, k.matches('a.*b'))", "self.exists(k, self[k] == 'x')")
    compiles(client, {"type": "array", "items": ruled(obj({"a": text}), "self.a.contains('x')")}, "self.size() > 0")


@scenario
def costs_at_run_time(client: Client) -> None:
    """A rule, or all rules together, may use up the budget of one request."""
    body = definition(
        client,
        obj(
            {
                "spec": obj(
                    {
                        "s": ruled({"type": "string", "maxLength": 30000}, "self.matches('^(a|aa)+$')"),
                        "l": ruled(
                            arr({"type": "string", "maxLength": 20}, 250),
                            {"rule": "self.all(x, self.all(y, x.contains(y) || !y.contains(x) || x == y))"},
                        ),
                    }
                )
            }
        ),
    )
    with served(client, body) as path:
        for spec in (
            {"s": "a" * 100},
            {"s": "a" * 30000},
            {"s": "b" * 30000},
            {"l": ["abcdefghij"] * 30},
            {"l": ["abcdefghij"] * 250},
            {"l": [f"item-{i}-{'x' * 8}" for i in range(250)]},
        ):
            client.post(path, make(body, spec=spec), DRY)
