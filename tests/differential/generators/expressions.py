"""Draws CEL expressions: mostly of the type that is asked for, over the libraries of Kubernetes, now and then with a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.differential.random_stories import Steady

# fmt: off

Names = Mapping[str, Sequence[str]]
"""By type (`bool`, `int`, `string`, `list` of strings, `map` of strings, `any`), the expressions that a place knows."""

_STRINGS = ("''", "'a'", "'abc'", "'a-b-c'", "'A_b é'", "'10.0.0.1'", "'fd00::1/64'", "'10.0.0.0/8'", "'1Gi'", "'100m'", "'https://a.b:80/c?d=e'", "'1.2.3'", "'1.2.3-rc.1'", "'5s'", "'2020-01-01T00:00:00Z'", "'42'", "'%s'", "r'\\d+'", "'[a-z]+'", "'('", "'aGk='")
_INTS = ("0", "1", "2", "-1", "10", "9223372036854775807")
_DEEPEST = 3


class Expressions:
    """Draws expressions over the names of one place."""

    def __init__(self, rng: Steady, names: Names) -> None:
        self.rng, self.names = rng, names
        self._local: list[str] = []

    def of(self, kind: str, depth: int = 0) -> str:
        """An expression of a type."""
        if self.rng.random() < 0.012:
            return str(self.rng.choice([f"{self.of('any', _DEEPEST)}.nope()", "nope", f"nope({self.of('string', _DEEPEST)})", "1 +", "self.", "'x", "[1, 'a']", "null", "dyn(1)", "1.5", "{'a': 1}", "type(1)"]))
        if depth >= _DEEPEST or self.rng.random() < 0.15 * depth:
            return self._leaf(kind)
        rules: Mapping[str, Sequence[Callable[[int], str]]] = {
            "bool": self._BOOLS, "int": self._NUMBERS, "string": self._TEXTS, "list": self._LISTS, "map": self._MAPS, "any": self._ANYS,
        }
        return self.rng.choice(rules[kind])(self, depth + 1)

    def _leaf(self, kind: str) -> str:
        known = list(self.names.get(kind, ()))
        if kind == "string" and self._local:
            known += self._local * 2
        if known and self.rng.random() < 0.75:
            return str(self.rng.choice(known))
        return str(
            self.rng.choice(
                {"bool": ("true", "false"), "int": _INTS, "string": _STRINGS, "list": ("['a', 'b']", "[]", "['a', 'a', '']"), "map": ("{'a': 'b'}", "{}"), "any": _STRINGS + _INTS}[kind]
            )
        )

    def _loop(self, depth: int, macro: str, body: str) -> str:
        """A macro over a list, whose body knows the variable of the macro."""
        source = self.of("list", depth)
        name = f"e{len(self._local)}"
        self._local.append(name)
        try:
            return f"{source}.{macro}({name}, {self.of(body, depth)})"
        finally:
            self._local.pop()

    def _pair(self, kind: str, depth: int, *operators: str) -> str:
        return f"{self.of(kind, depth)} {self.rng.choice(operators)} {self.of(kind, depth)}"

    def _within(self, depth: int, template: str, *kinds: str) -> str:
        return template.format(*(self.of(kind, depth) for kind in kinds))

    _BOOLS = (
        lambda s, d: s._pair("int", d, "<", "<=", ">", ">=", "==", "!="),
        lambda s, d: s._pair("string", d, "==", "!=", "<"),
        lambda s, d: f"({s._pair('bool', d, '&&', '||')})",
        lambda s, d: f"({s._pair('bool', d, '&&', '||')})",
        lambda s, d: f"!{s.of('bool', d)}",
        lambda s, d: s._within(d, s.rng.choice(["{}.startsWith({})", "{}.endsWith({})", "{}.contains({})", "{}.matches({})"]), "string", "string"),
        lambda s, d: s._within(d, "{} in {}", "string", "list"),
        lambda s, d: s._within(d, "{} in {}", "string", "map"),
        lambda s, d: s._loop(d, s.rng.choice(["all", "exists", "exists_one"]), "bool"),
        lambda s, d: s._loop(d, s.rng.choice(["all", "exists"]), "bool"),
        lambda s, d: f"has({s.rng.choice([one for one in s.names.get('any', ('self.x',)) if '.' in one and '(' not in one] or ['self.x'])})",
        lambda s, d: s._within(d, "({} ? {} : {})", "bool", "bool", "bool"),
        lambda s, d: s._within(d, s.rng.choice(["isQuantity({})", "isIP({})", "isCIDR({})", "isURL({})", "isSemver({})", "ip.isCanonical({})"]), "string"),
        lambda s, d: s._within(d, s.rng.choice(["quantity({}).isGreaterThan(quantity({}))", "quantity({}).isLessThan(quantity({}))", "quantity({}).add(quantity({})).isInteger()", "cidr({}).containsIP({})", "semver({}).isLessThan(semver({}))", "duration({}) > duration({})", "timestamp({}) == timestamp({})", "ip({}) == ip({})"]), "string", "string"),
        lambda s, d: s._within(d, s.rng.choice(["sets.contains({}, {})", "sets.intersects({}, {})", "sets.equivalent({}, {})", "{} == {}"]), "list", "list"),
        lambda s, d: s._within(d, s.rng.choice(["{}.isSorted()", "optional.of({}).hasValue()", "{}.exists(i, v, i > 0 && v == 'a')", "{}.all(i, v, i < 2)"]), "list"),
        lambda s, d: s._within(d, s.rng.choice(["format.named({}).hasValue()", "format.dns1123Label().validate({}).hasValue()", "format.uuid().validate({}).hasValue()", "bool({})", "url({}).getScheme() == 'https'", "ip({}).isLoopback()", "optional.none().hasValue() || {} == ''"]), "string"),
    )
    _NUMBERS = (
        lambda s, d: f"({s._pair('int', d, '+', '-', '*', '/', '%')})",
        lambda s, d: s._within(d, "size({})", s.rng.choice(["string", "list", "map"])),
        lambda s, d: s._within(d, "{}.size()", s.rng.choice(["string", "list", "map"])),
        lambda s, d: s._within(d, "int({})", "string"),
        lambda s, d: s._within(d, s.rng.choice(["{}.indexOf({})", "{}.lastIndexOf({})"]), "string", "string"),
        lambda s, d: s._within(d, s.rng.choice(["{}.indexOf({})", "{}.lastIndexOf({})"]), "list", "string"),
        lambda s, d: s._within(d, "({} ? {} : {})", "bool", "int", "int"),
        lambda s, d: s._within(d, s.rng.choice(["quantity({}).asInteger()", "quantity({}).sign()", "ip({}).family()", "cidr({}).prefixLength()", "semver({}).major()", "timestamp({}).getFullYear()", "duration({}).getSeconds()", "quantity({}).compareTo(quantity('1'))", "math.abs(int({}))"]), "string"),
        lambda s, d: f"-{s.of('int', d)}",
        lambda s, d: s._within(d, s.rng.choice(["[{}, {}].sum()", "[{}, {}].min()", "[{}, {}].max()"]), "int", "int"),
    )
    _TEXTS = (
        lambda s, d: s._pair("string", d, "+"),
        lambda s, d: s._within(d, s.rng.choice(["string({})", "{}.format([1])"]), s.rng.choice(["int", "bool", "string"])),
        lambda s, d: s._within(d, s.rng.choice(["{}.lowerAscii()", "{}.upperAscii()", "{}.trim()", "{}.reverse()", "strings.quote({})", "url({}).getHost()", "string(ip({}))", "string(cidr({}).masked())", "string(quantity({}))", "string(duration({}))", "string(base64.decode({}))", "url({}).getEscapedPath()"]), "string"),
        lambda s, d: s._within(d, s.rng.choice(["{}.replace({}, {})", "{}.replace({}, {}, 1)"]), "string", "string", "string"),
        lambda s, d: s._within(d, s.rng.choice(["{}.substring({})", "{}.charAt({})", "{}.substring(0, {})"]), "string", "int"),
        lambda s, d: s._within(d, s.rng.choice(["{}.join({})", "{}.join()"]) if s.rng.random() < 0.1 else "{}.join({})", "list", "string"),
        lambda s, d: s._within(d, "{}[{}]", "list", "int"),
        lambda s, d: s._within(d, "{}[{}]", "map", "string"),
        lambda s, d: s._within(d, "{}.find({})", "string", "string"),
        lambda s, d: s._within(d, "'%s is %d, %s'.format([{}, {}, {}])", "string", "int", "any"),
        lambda s, d: s._within(d, "({} ? {} : {})", "bool", "string", "string"),
        lambda s, d: s._within(d, s.rng.choice(["{}[?{}].orValue('none')", "optional.of({}[{}]).value()"]), "map", "string"),
    )
    _LISTS = (
        lambda s, d: s._within(d, "[{}, {}]", "string", "string"),
        lambda s, d: s._loop(d, "map", "string"),
        lambda s, d: s._loop(d, "filter", "bool"),
        lambda s, d: s._within(d, s.rng.choice(["{}.split({})", "{}.findAll({})", "{}.split({}, 2)", "[{}, {}]"]), "string", "string"),
        lambda s, d: s._within(d, "{} + {}", "list", "list"),
        lambda s, d: s._within(d, "{}.map(k, k)", "map"),
        lambda s, d: s._within(d, "({} ? {} : {})", "bool", "list", "list"),
    )
    _MAPS = (
        lambda s, d: s._leaf("map"),
        lambda s, d: s._within(d, "{{{}: {}}}", "string", "string"),
    )
    _ANYS = (
        lambda s, d: s.of(s.rng.choice(["bool", "int", "string", "list"]), d),
        lambda s, d: s._leaf("any"),
    )
