"""The types of expressions, and their assignability.

Specified by: cel-spec, doc/langdef.md (Gradual type checking); cel-go/common/types/types.go, cel-go/checker/types.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Final, NamedTuple

_DYNAMIC: Final = frozenset({"dyn", "any", "!error!"})


@dataclass(frozen=True, slots=True)
class Type:
    """A type: `int`, `list(A)` … Object types have fields; `A` and `_var1` are type variables."""

    name: str
    parameters: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = field(default=None, compare=False, repr=False)
    is_variable: bool = field(init=False, compare=False, repr=False)
    is_dynamic: bool = field(init=False, compare=False, repr=False)
    """Whether it accepts any type: dyn, any and error."""
    is_generic: bool = field(init=False, compare=False, repr=False)
    """Whether it has a type variable."""

    def __post_init__(self) -> None:
        variable = self.name[:1] == "_" or (len(self.name) == 1 and self.name.isupper())
        object.__setattr__(self, "is_variable", variable)
        object.__setattr__(self, "is_dynamic", self.name in _DYNAMIC)
        object.__setattr__(self, "is_generic", variable or any(part.is_generic for part in self.parameters))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name

    @property
    def is_struct(self) -> bool:
        """Whether it is an object type."""
        return self.fields is not None or self.name.startswith("kubernetes.")


DYN: Final = Type("dyn")
ANY: Final = Type("any")
ERROR: Final = Type("!error!")
BOOL: Final = Type("bool")
INT: Final = Type("int")
STRING: Final = Type("string")

_SCALARS: Final = frozenset({"bool", "bytes", "double", "int", "string", "uint"})
#: Types with whose values null cannot be confused.
_NEVER_NULL: Final = _SCALARS | {"list", "map", "type"}


def list_of(items: Type) -> Type:
    return Type("list", (items,))


def map_of(keys: Type, values: Type) -> Type:
    return Type("map", (keys, values))


def optional_of(content: Type) -> Type:
    return Type("optional_type", (content,))


def read(text: str) -> Type:
    """Parses a type."""
    match = re.fullmatch(r"\s*([\w.]+)(?:\((.*)\))?\s*", text)
    assert match is not None, text
    return Type(match[1], tuple(map(read, _split(match[2]))) if match[2] else ())


def _split(text: str) -> list[str]:
    """Splits at the commas outside of brackets."""
    return re.findall(r"(?:[^,()]|\((?:[^()]|\([^()]*\))*\))+", text)


def equivalent(one: Type, other: Type) -> bool:
    """Reports whether types are equal up to the names of type variables."""
    if one.is_variable or other.is_variable:
        return one.is_variable and other.is_variable
    if one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    return all(map(equivalent, one.parameters, other.parameters))


Bindings = dict[str, Type]


class Unification:
    """The bindings of type variables, which grow during type checking."""

    def __init__(self) -> None:
        self._bindings: Bindings = {}
        self._count = 0

    def new_variable(self) -> Type:
        """Returns a new type variable."""
        self._count += 1
        return Type(f"_var{self._count - 1}")

    def instance(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Returns the types of a signature with new type variables."""
        own: Bindings = {}

        def renew(each: Type) -> Type:
            if each.is_variable:
                if each.name not in own:
                    own[each.name] = self.new_variable()
                return own[each.name]
            return Type(each.name, tuple(map(renew, each.parameters)), each.fields) if each.is_generic else each

        return tuple(map(renew, types))

    def substitute(self, wanted: Type, *, to_dyn: bool = False) -> Type:
        """Replaces type variables by their bindings; with `to_dyn`, unbound ones by dyn."""
        if not wanted.is_generic:
            return wanted
        bound = self._bindings.get(wanted.name) if not wanted.parameters else None
        if bound is not None:
            return self.substitute(bound, to_dyn=to_dyn)
        if wanted.parameters:
            parts = tuple(self.substitute(part, to_dyn=to_dyn) for part in wanted.parameters)
            return wanted if all(map(is_, parts, wanted.parameters)) else Type(wanted.name, parts, wanted.fields)
        return DYN if to_dyn and wanted.is_variable else wanted

    def fits(self, wanted: Type, given: Type) -> bool:
        """Reports whether `given` is assignable to `wanted`; if so, binds type variables."""
        return self.all_fit((wanted,), (given,))

    def all_fit(self, wanted: tuple[Type, ...], given: tuple[Type, ...]) -> bool:
        """Reports whether all types are assignable; binds type variables only if all are."""
        if len(wanted) != len(given):
            return False
        if not any(each.is_generic for each in (*wanted, *given)):
            return all(map(self._fits, wanted, given))
        before = self._bindings
        self._bindings = dict(before)
        if all(map(self._fits, wanted, given)):
            return True
        self._bindings = before
        return False

    def _fits(self, one: Type, other: Type) -> bool:
        if one is other:
            return True
        if other.is_variable:
            valid, known = self._bind(one, other)
            if valid or known:
                return valid
        if one.is_variable:
            return self._bind(other, one)[0]
        if one.is_dynamic or other.is_dynamic:
            return True
        if one.name == "null" or other.name == "null":
            return one.name == other.name or (other if one.name == "null" else one).name not in _NEVER_NULL
        if one.name == "type":
            return other.name == "type"
        if one.name != other.name or len(one.parameters) != len(other.parameters):
            return False
        return all(map(self._fits, one.parameters, other.parameters))

    def _bind(self, content: Type, variable: Type) -> tuple[bool, bool]:
        """Binds a variable. Returns whether the type is valid for it, and whether the variable was bound before."""
        if content == variable:
            return True, True
        bound = self._bindings.get(variable.name)
        if bound is None:
            if self._is_free_of(variable, content):
                self._bindings[variable.name] = content
                return True, False
            return False, False
        if content == bound:
            return True, True
        if not self._fits(content, bound):
            return False, True
        general = self.more_general(content, bound)
        if self._is_free_of(variable, general):
            self._bindings[variable.name] = general
        return True, True

    @staticmethod
    def more_general(one: Type, other: Type) -> Type:
        """Returns the more general of two types that are assignable to each other."""
        return one if _is_as_general(one, other) else other

    def _is_free_of(self, variable: Type, content: Type) -> bool:
        if content == variable:
            return False
        if content.is_variable:
            bound = self._bindings.get(content.name)
            return bound is None or self._is_free_of(variable, bound)
        return all(self._is_free_of(variable, part) for part in content.parameters)


def _is_as_general(one: Type, other: Type) -> bool:
    if one in (DYN, ANY) or one.is_variable:
        return True
    if other in (DYN, ANY) or other.is_variable or one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    return one.name == "type" or all(map(_is_as_general, one.parameters, other.parameters))


# --- The overloads of functions and operators: types of arguments → type of the result -------------------------------
# A method's first argument is its target. Letters are types that the arguments determine.
#
# Specified by: cel-go/common/stdlib, cel-go/ext, k8s.io/apiserver/pkg/cel/library.


class Signature(NamedTuple):
    """An overload of a function."""

    arguments: tuple[Type, ...]
    result: Type
    key: str
    """The types of the arguments as they are written in the tables."""
    is_generic: bool
    """Whether the types have a type variable."""


_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: Final = ("int", "uint", "double", "duration")
_FORMAT_NAMES: Final = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)
_ORDER: Final = " | ".join(
    f"{pair} bool"
    for pair in (
        "bool bool",
        "int int",
        "int double",
        "int uint",
        "uint uint",
        "uint double",
        "uint int",
        "double double",
        "double int",
        "double uint",
        "string string",
        "bytes bytes",
        "timestamp timestamp",
        "duration duration",
    )
)
_SIZE: Final = "bytes int | list(A) int | map(A,B) int | string int"
_ARITHMETIC: Final = " | ".join(f"{kind} {kind} {kind}" for kind in ("double", "int", "uint"))
_GETTERS: Final = ("getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek")
_TIMES: Final = ("getHours", "getMinutes", "getSeconds", "getMilliseconds")
_QUANTITY, _SEMVER, _URL, _IP, _CIDR, _FORMAT = (
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.URL",
    "net.IP",
    "net.CIDR",
    "kubernetes.NamedFormat",
)

_AUTHORIZER, _PATH_CHECK, _GROUP_CHECK, _RESOURCE_CHECK, _DECISION = (
    f"kubernetes.authorization.{name}" for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)

_FUNCTIONS: Final[dict[str, str]] = {
    "_==_": "A A bool",
    "_!=_": "A A bool",
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ORDER),
    "_+_": "bytes bytes bytes | double double double | duration duration duration | duration timestamp timestamp"
    " | timestamp duration timestamp | int int int | list(A) list(A) list(A) | string string string | uint uint uint",
    "_-_": "double double double | duration duration duration | int int int | timestamp duration timestamp"
    " | timestamp timestamp duration | uint uint uint",
    "_*_": _ARITHMETIC,
    "_/_": _ARITHMETIC,
    "_%_": "int int int | uint uint uint",
    "!_": "bool bool",
    "-_": "double double | int int",
    "_&&_": "bool bool bool",
    "_||_": "bool bool bool",
    "_?_:_": "bool A A A",
    "@not_strictly_false": "bool bool",
    "cel.@mapInsert": "map(A,B) A B map(A,B) | map(A,B) map(A,B) map(A,B)",
    "@in": "A list(A) bool | A map(A,B) bool",
    "_[_]": "list(A) int A | map(A,B) A B | optional_type(list(A)) int optional_type(A)"
    " | optional_type(map(A,B)) A optional_type(B)",
    "_[?_]": "list(A) int optional_type(A) | optional_type(list(A)) int optional_type(A)"
    " | map(A,B) A optional_type(B) | optional_type(map(A,B)) A optional_type(B)",
    "size": _SIZE,
    "int": "int int | double int | duration int | string int | timestamp int | uint int",
    "uint": "uint uint | double uint | int uint | string uint",
    "double": "double double | int double | string double | uint double",
    "bool": "bool bool | string bool",
    "string": f"string string | bool string | bytes string | double string | duration string | int string"
    f" | timestamp string | uint string | {_IP} string | {_CIDR} string",
    "bytes": "bytes bytes | string bytes",
    "timestamp": "timestamp timestamp | int timestamp | string timestamp",
    "duration": "duration duration | int duration | string duration",
    "dyn": "A dyn",
    "type": "A type(A)",
    "matches": "string string bool",
    "jsonpatch.escapeKey": "string string",
    "strings.quote": "string string",
    "lists.range": "int list(int)",
    "optional.of": "A optional_type(A)",
    "optional.none": "optional_type(A)",
    "optional.ofNonZeroValue": "A optional_type(A)",
    "optional.unwrap": "list(optional_type(A)) list(A)",
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), "list(A) list(A) bool"),
    "url": f"string {_URL}",
    "isURL": "string bool",
    "ip": f"string {_IP}",
    "isIP": "string bool",
    "ip.isCanonical": "string bool",
    "cidr": f"string {_CIDR}",
    "isCIDR": "string bool",
    "quantity": f"string {_QUANTITY}",
    "isQuantity": "string bool",
    "sign": f"{_QUANTITY} int",
    "semver": f"string {_SEMVER} | string bool {_SEMVER}",
    "isSemver": "string bool | string bool bool",
    "format.named": f"string optional_type({_FORMAT})",
    **{f"format.{name}": _FORMAT for name in _FORMAT_NAMES},
}

_METHODS: Final[dict[str, str]] = {
    "size": _SIZE,
    **dict.fromkeys(("contains", "startsWith", "endsWith", "matches"), "string string bool"),
    **dict.fromkeys(_GETTERS, "timestamp int | timestamp string int"),
    **dict.fromkeys(_TIMES, "timestamp int | timestamp string int | duration int"),
    "charAt": "string int string",
    **dict.fromkeys(("indexOf", "lastIndexOf"), "list(A) A int | string string int | string string int int"),
    "join": "list(string) string | list(string) string string",
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim"), "string string"),
    "replace": "string string string string | string string string int string",
    "split": "string string list(string) | string string int list(string)",
    "substring": "string int string | string int int string",
    "format": "string list(dyn) string",
    "find": "string string string",
    "findAll": "string string list(string) | string string int list(string)",
    "isSorted": " | ".join(f"list({kind}) bool" for kind in _COMPARABLE),
    "sum": " | ".join(f"list({kind}) {kind}" for kind in _SUMMABLE),
    **dict.fromkeys(("min", "max"), " | ".join(f"list({kind}) {kind}" for kind in _COMPARABLE)),
    "slice": "list(A) int int list(A)",
    "flatten": "list(list(A)) list(A) | list(dyn) int list(dyn)",
    "distinct": "list(A) list(A)",
    "reverse": "list(A) list(A)",
    "sort": " | ".join(f"list({kind}) list({kind})" for kind in _COMPARABLE),
    **dict.fromkeys(("first", "last"), "list(A) optional_type(A)"),
    "hasValue": "optional_type(A) bool",
    "value": "optional_type(A) A",
    "or": "optional_type(A) optional_type(A) optional_type(A)",
    "orValue": "optional_type(A) A A",
    "unwrapOpt": "list(optional_type(A)) list(A)",
    **dict.fromkeys(("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"), f"{_URL} string"),
    "getQuery": f"{_URL} map(string,list(string))",
    "family": f"{_IP} int",
    **dict.fromkeys(
        ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"), f"{_IP} bool"
    ),
    "containsIP": f"{_CIDR} string bool | {_CIDR} {_IP} bool",
    "containsCIDR": f"{_CIDR} string bool | {_CIDR} {_CIDR} bool",
    "ip": f"{_CIDR} {_IP}",
    "prefixLength": f"{_CIDR} int",
    "masked": f"{_CIDR} {_CIDR}",
    **dict.fromkeys(("isGreaterThan", "isLessThan"), f"{_QUANTITY} {_QUANTITY} bool | {_SEMVER} {_SEMVER} bool"),
    "compareTo": f"{_QUANTITY} {_QUANTITY} int | {_SEMVER} {_SEMVER} int",
    "asApproximateFloat": f"{_QUANTITY} double",
    "asInteger": f"{_QUANTITY} int",
    "isInteger": f"{_QUANTITY} bool",
    **dict.fromkeys(("add", "sub"), f"{_QUANTITY} {_QUANTITY} {_QUANTITY} | {_QUANTITY} int {_QUANTITY}"),
    **dict.fromkeys(("major", "minor", "patch"), f"{_SEMVER} int"),
    "validate": f"{_FORMAT} string optional_type(list(string))",
    "@sortByAssociatedKeys": " | ".join(f"list(A) list({kind}) list(A)" for kind in _COMPARABLE),
    "path": f"{_AUTHORIZER} string {_PATH_CHECK}",
    "group": f"{_AUTHORIZER} string {_GROUP_CHECK}",
    "serviceAccount": f"{_AUTHORIZER} string string {_AUTHORIZER}",
    "resource": f"{_GROUP_CHECK} string {_RESOURCE_CHECK}",
    **dict.fromkeys(
        ("subresource", "namespace", "name", "fieldSelector", "labelSelector"), f"{_RESOURCE_CHECK} string {_RESOURCE_CHECK}"
    ),
    "check": f"{_PATH_CHECK} string {_DECISION} | {_RESOURCE_CHECK} string {_DECISION}",
    **dict.fromkeys(("errored", "allowed"), f"{_DECISION} bool"),
    **dict.fromkeys(("error", "reason"), f"{_DECISION} string"),
}

#: Function or macro → the minor whose libraries introduced it (k8s.io/apiserver/pkg/cel/environment/base.go); the oldest
#: supported minor has all others.
_INTRODUCED: Final[dict[str, int]] = {
    **dict.fromkeys(("semver", "isSemver", "major", "minor", "patch"), 33),
    **dict.fromkeys(("slice", "flatten", "lists.range", "distinct", "reverse", "sort", "sortBy"), 34),
}


def functions_too_new(minor: int) -> frozenset[str]:
    """Returns the functions and macros that a new expression cannot use yet: those that the minor itself introduced.

    Expressions that are written must work after a downgrade by one minor (DefaultCompatibilityVersion).
    """
    return frozenset(name for name, since in _INTRODUCED.items() if since >= minor)


def _signature(text: str) -> Signature:
    *arguments, result = text.split()
    types, made = tuple(map(read, arguments)), read(result)
    return Signature(types, made, " ".join(arguments), any(each.is_generic for each in (made, *types)))


#: (name, is it a method?) → overloads.
SIGNATURES: Final[dict[tuple[str, bool], tuple[Signature, ...]]] = {
    (name, member): tuple(map(_signature, text.split(" | ")))
    for member, table in ((False, _FUNCTIONS), (True, _METHODS))
    for name, text in table.items()
}
