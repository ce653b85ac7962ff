"""Strategies for JSON values that fit a schema, and for objects that the API server accepts.

Schemas are those of CustomResourceDefinitions and of the OpenAPI v3 documents of the API. Types, formats, bounds, patterns,
enumerations, required fields and list types are respected; the texts and numbers in rules of CEL become likely values. A
candidate is made for the schema of its resource, and the API server is asked with a dry run. Optional fields that it refuses, or
that lack something, are taken away, and after some refusals the example is given up. So rules that no schema states hold as well:
those in CEL, those of built-in kinds, admission.

Invariants: every object that is drawn was accepted by a dry run in the cluster of the strategy. A schema that allows a finite
value has a strategy; recursive schemas end at `MAX_DEPTH`.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema (structural schemas); OpenAPI 3.0.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from hypothesis import reject
from hypothesis import strategies as st

from fakekube.apimachinery.data import DEFAULT
from fakekube.base.golang.regexp import matcher
from fakekube.base.objects import Object, group_version, group_version_path
from fakekube.controllers.client.client import collection_path
from fakekube.strategies.least_objects import NAMES, NO_NAME, least_object
from fakekube.strategies.patterns import PRINTABLE, texts_like

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.cluster_options import Source


_ATTEMPTS: Final = 6
_REPAIRS: Final = 6
_PART: Final = re.compile(r"[^.\[\]]+|\[[^\]]*\]")

#: Types of OpenAPI whose schemas say less than their readers demand.
_READ_AS: Final[Mapping[str, Mapping[str, Any]]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string", "format": "quantity"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": {"type": "string", "format": "micro-time"},
}
_DEFAULT_NAMES: Final = ("a", "b", "c")


def objects(
    resource: str,
    *,
    cluster: Cluster | None = None,
    definitions: Source | None = None,
    version: str = DEFAULT,
    names: st.SearchStrategy[str] | None = None,
    namespace: str = "default",
) -> st.SearchStrategy[Object]:
    """Returns a strategy for objects of a resource that the API server accepts.

    Args:
        resource: as kubectl names it: "deployments", "widgets.example.com".
        cluster: the cluster that judges; by default one of the strategy's own, without controllers.
        definitions: manifests that are loaded into the strategy's own cluster first, such as CustomResourceDefinitions.
        version: the minor of that cluster.
        names: the names of the objects; by default "a", "b" and "c", or what the kind demands.
        namespace: of namespaced objects.

    Raises UnknownResource when an example is drawn, if the cluster does not serve the resource.
    """
    made: list[_Judge] = []

    def judge() -> _Judge:
        if not made:
            made.append(_Judge(cluster or _own_cluster(definitions, version), resource, namespace))
        return made[0]

    @st.composite
    def draw_accepted(draw: st.DrawFn) -> Object:
        name = draw(judge().names if names is None else names)
        for _ in range(_ATTEMPTS):
            found = judge().accept(name, draw(judge().candidates))
            if found is not None:
                return found
        return reject()

    return draw_accepted()


def _own_cluster(definitions: Source | None, version: str) -> Cluster:
    from fakekube.cluster import Cluster

    made = Cluster(version=version, profile="apiserver")
    if definitions is not None:
        made.load(definitions)
    return made


class _Judge:
    """Makes candidates for one resource of a cluster, and asks the cluster about them."""

    def __init__(self, cluster: Cluster, resource: str, namespace: str) -> None:
        self._cluster = cluster
        self.mapping = cluster.mapping(resource)
        self._path = collection_path(self.mapping, namespace)
        self._document = _document(cluster, self.mapping.group, self.mapping.version)
        kind = (self.mapping.group, self.mapping.kind)
        self.names = st.sampled_from(NAMES.get(kind, _DEFAULT_NAMES))
        least = least_object(*kind, namespace)
        schema = self._schema()
        shown = {name: part for name, part in (schema.get("properties") or {}).items() if name not in _OWN}
        top = {**schema, "properties": shown, "required": [name for name in schema.get("required") or () if name in shown]}
        self.candidates: st.SearchStrategy[Object] = values(top, self._resolve).map(lambda made: _merge(deepcopy(least), made))

    def _schema(self) -> Mapping[str, Any]:
        wanted = (self.mapping.group, self.mapping.version, self.mapping.kind)
        for schema in self._document["components"]["schemas"].values():
            for gvk in schema.get("x-kubernetes-group-version-kind") or ():
                if (gvk["group"], gvk["version"], gvk["kind"]) == wanted:
                    found: Mapping[str, Any] = schema
                    return found
        return {"type": "object"}

    def _resolve(self, reference: str) -> Mapping[str, Any]:
        name = reference.rpartition("/")[2]
        found: Mapping[str, Any] = _READ_AS.get(name) or self._document["components"]["schemas"][name]
        return found

    def accept(self, name: str, candidate: Object) -> Object | None:
        """Returns the object without the optional fields that the cluster refuses; None if it refuses more."""
        version = group_version(self.mapping.group, self.mapping.version)
        metadata = {**candidate.get("metadata", {}), **({} if name == NO_NAME else {"name": name})}
        obj = {"apiVersion": version, "kind": self.mapping.kind, **candidate, "metadata": metadata}
        for _ in range(_REPAIRS):
            answer = self._cluster.request("POST", self._path, body=obj, query={"dryRun": "All"})
            if answer.status < 300 or answer.status == 409:  # an object of this name exists: the strategy is about its content
                return obj
            causes = (answer.json().get("details") or {}).get("causes") or ()
            removed = [_remove(obj, cause.get("field", "")) for cause in reversed(causes)]  # the last items of a list first
            if not any(removed):
                return None
        return None


#: The fields of an object that are not drawn.
_OWN: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


@lru_cache(maxsize=32)
def _document(cluster: Cluster, group: str, version: str) -> Mapping[str, Any]:
    """Returns the OpenAPI v3 document of a group version."""
    path = f"/openapi/v3{group_version_path(group, version)}"
    found: Mapping[str, Any] = cluster.request("GET", path).json()
    return found


def _merge(base: Any, made: Any) -> Any:
    """Returns `made` over `base`: what the base has in objects stays where `made` has nothing, or a list that is empty."""
    if isinstance(base, dict) and isinstance(made, dict):
        return {**base, **{name: _merge(base[name], value) if name in base else value for name, value in made.items()}}
    return base


def _remove(obj: Any, field: str) -> bool:
    """Removes the field of a cause, such as spec.ports[0].name or spec.labels[a.b], or the part that should have it.

    Returns False if there is neither. What is directly below the root stays.
    """
    parts = [part.strip("[]\"'") for part in _PART.findall(field)]
    if not parts or parts[0] == "metadata":
        return False
    found: list[tuple[Any, str | int]] = []
    for part in parts:
        key = int(part) if isinstance(obj, list) and part.isdigit() else part
        try:
            below = obj[key]
        except (IndexError, KeyError, TypeError):  # TypeError: a field is named below a scalar
            break
        found.append((obj, key))
        obj = below
    if not found or (len(found) == 1 and len(parts) > 1):
        return False
    container, last = found[-1]
    del container[last]
    return True


# --- Strategies for JSON values that fit a schema ---------------------------------------------------------------------


Schema = Mapping[str, Any]
Resolve = Callable[[str], Schema]
"""Returns the schema for a `$ref`."""

MAX_DEPTH: Final = 6
_MAX_ITEMS: Final = 3
#: Of more optional fields than the first number, at most the second number are set.
_MANY: Final = 8
_FEW: Final = 3
_LITERALS: Final = re.compile(r"'([^'\\]{1,64})'|\"([^\"\\]{1,64})\"")
_NUMBERS: Final = re.compile(r"(?<![\w.])\d{1,9}(?![\w.])")

_FORMATS: Final[Mapping[str, st.SearchStrategy[str]]] = {
    "date-time": st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)).map(
        lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    ),
    "date": st.dates().map(str),
    "byte": st.binary(max_size=8).map(lambda data: b64encode(data).decode()),
    "duration": st.integers(0, 3600).map(lambda seconds: f"{seconds}s"),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "cidr": st.integers(0, 255).map(lambda number: f"10.{number}.0.0/16"),
    "uuid": st.uuids().map(str),
    "uri": st.sampled_from(("https://example.com", "http://example.com/path")),
    "hostname": st.sampled_from(("example", "a.example.com")),
    "email": st.sampled_from(("a@example.com", "b@example.org")),
    "micro-time": st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)).map(
        lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    ),
    "quantity": st.sampled_from(("1", "100m", "2Gi")),
}


def values(schema: Schema, resolve: Resolve | None = None) -> st.SearchStrategy[Any]:
    """Returns a strategy for values of a schema.

    Args:
        schema: a structural schema, or one of OpenAPI v3.
        resolve: returns the schema that a `$ref` names; without it, a `$ref` is any object.
    """
    return _Values(resolve or (lambda _reference: {"type": "object"})).strategy(schema, _literals(schema), 0)


def _literals(schema: Any) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Returns the texts and numbers in the rules of a schema."""
    texts: dict[str, None] = {}
    numbers: dict[int, None] = {}
    for rule in _rules(schema):
        texts |= dict.fromkeys(one or other for one, other in _LITERALS.findall(rule))
        numbers |= {int(number): None for number in _NUMBERS.findall(_LITERALS.sub("", rule))}
    return tuple(texts), tuple(numbers)


def _rules(schema: Any) -> list[str]:
    """Returns the rules in a schema and in those below it."""
    if isinstance(schema, list):
        return [rule for part in schema for rule in _rules(part)]
    if not isinstance(schema, Mapping):
        return []
    own = [str(one.get("rule", "")) for one in schema.get("x-kubernetes-validations") or () if isinstance(one, Mapping)]
    return own + [rule for name, part in schema.items() if name != "x-kubernetes-validations" for rule in _rules(part)]


class _Values:
    """Makes strategies for the schemas of one document."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve

    def strategy(self, schema: Schema, literals: tuple[tuple[str, ...], tuple[int, ...]], depth: int) -> st.SearchStrategy[Any]:
        """Returns the strategy for a schema."""
        schema = self._expand(schema)
        if schema.get("nullable"):
            return st.none() | self.strategy({**schema, "nullable": False}, literals, depth)
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            return st.integers(0, 100) | st.integers(0, 100).map(lambda number: f"{number}%")
        if "oneOf" in schema and "type" not in schema:
            return st.one_of([self.strategy(one, literals, depth) for one in schema["oneOf"]])
        return getattr(self, f"_{schema.get('type', 'object')}")(schema, literals, depth)  # type: ignore[no-any-return]

    def _expand(self, schema: Schema) -> Schema:
        """Returns a schema without `$ref` and without `allOf` of a single schema."""
        for _ in range(MAX_DEPTH):
            if "$ref" in schema:
                schema = {**self._resolve(schema["$ref"]), **{key: value for key, value in schema.items() if key != "$ref"}}
            elif len(schema.get("allOf") or ()) == 1 and "type" not in schema:
                schema = {**schema["allOf"][0], **{key: value for key, value in schema.items() if key != "allOf"}}
            else:
                break
        return schema

    def _boolean(self, _schema: Schema, _literals: Any, _depth: int) -> st.SearchStrategy[Any]:
        return st.booleans()

    def _integer(self, schema: Schema, literals: Any, _depth: int) -> st.SearchStrategy[Any]:
        low, high = _bounds(schema, int)
        whole = st.integers(low, high)
        factor = int(schema.get("multipleOf") or 0)
        if factor > 1:
            whole = st.integers(-(-low // factor), high // factor).map(lambda number: number * factor)
        likely = [value for number in literals[1] for value in (number - 1, number, number + 1) if low <= value <= high]
        return st.sampled_from(likely) | whole if likely and factor <= 1 else whole

    def _number(self, schema: Schema, literals: Any, depth: int) -> st.SearchStrategy[Any]:
        low, high = _bounds(schema, float)
        fractions = st.floats(low, high, allow_nan=False)
        whole = {**schema, "minimum": math.ceil(low), "maximum": math.floor(high)}
        return self._integer(whole, literals, depth) | fractions if whole["minimum"] <= whole["maximum"] else fractions

    def _string(self, schema: Schema, literals: Any, _depth: int) -> st.SearchStrategy[Any]:
        low, high = schema.get("minLength") or 0, schema.get("maxLength")
        high = max(low, 12) if high is None else min(high, max(low, 64))
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        likely = [text for text in literals[0] if low <= len(text) <= high]
        if "pattern" in schema:
            fits, longest = matcher(schema["pattern"]), schema.get("maxLength") or 1 << 20
            made = texts_like(schema["pattern"]).filter(lambda text: low <= len(text) <= longest and fits(text))
            likely = [text for text in likely if fits(text)]
        else:
            made = st.text(PRINTABLE, min_size=low, max_size=high)
        return st.sampled_from(likely) | made if likely else made

    def _array(self, schema: Schema, literals: Any, depth: int) -> st.SearchStrategy[Any]:
        low = schema.get("minItems") or 0
        high = max(low, min(schema.get("maxItems", _MAX_ITEMS), _MAX_ITEMS if depth < MAX_DEPTH else 0))
        items = self.strategy(schema.get("items") or {"type": "string"}, literals, depth + 1) if high else st.nothing()
        if schema.get("x-kubernetes-list-type") == "set" or schema.get("uniqueItems"):
            return st.lists(items, min_size=low, max_size=high, unique_by=repr)
        keys = schema.get("x-kubernetes-list-map-keys")
        if schema.get("x-kubernetes-list-type") == "map" and keys:
            return st.lists(items, min_size=low, max_size=high, unique_by=lambda item: repr([item.get(key) for key in keys]))
        return st.lists(items, min_size=low, max_size=high)

    def _object(self, schema: Schema, literals: Any, depth: int) -> st.SearchStrategy[Any]:
        if schema.get("x-kubernetes-embedded-resource"):
            return st.just({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "embedded"}})
        properties, required = schema.get("properties") or {}, set(schema.get("required") or ())
        fixed = {name: self._defer(part, literals, depth) for name, part in properties.items() if name in required}
        optional = {name: part for name, part in properties.items() if name not in required and depth < MAX_DEPTH}
        if len(optional) > _MANY:
            chosen = st.lists(st.sampled_from(sorted(optional)), unique=True, max_size=_FEW)
            made: st.SearchStrategy[dict[str, Any]] = chosen.flatmap(
                lambda names: st.fixed_dictionaries(
                    {**fixed, **{name: self._defer(optional[name], literals, depth) for name in names}}
                )
            )
        else:
            others = {name: self._defer(part, literals, depth) for name, part in optional.items()}
            made = st.fixed_dictionaries(fixed, optional=others)
        more = schema.get("additionalProperties")
        if properties or not (more or schema.get("x-kubernetes-preserve-unknown-fields")):
            return made
        inner = self._defer(more, literals, depth) if isinstance(more, Mapping) else st.integers(0, 9)
        low = schema.get("minProperties") or 0
        high = max(low, min(schema.get("maxProperties", _MAX_ITEMS), _MAX_ITEMS))
        return st.dictionaries(st.sampled_from(tuple("abcdef")), inner, min_size=low, max_size=high)

    def _defer(self, schema: Schema, literals: Any, depth: int) -> st.SearchStrategy[Any]:
        """Returns the strategy for a part, which is made when it is drawn from: most parts of large schemas never are."""
        return st.deferred(lambda: self.strategy(schema, literals, depth + 1))


def _bounds(schema: Schema, kind: type[Any]) -> tuple[Any, Any]:
    """Returns the least and the greatest value."""
    width = 31 if schema.get("format") == "int32" else 53
    low, high = schema.get("minimum"), schema.get("maximum")
    low = -(1 << width) if low is None else low
    high = (1 << width) - 1 if high is None else high
    step = 1 if kind is int else 1e-3
    low = low + step if schema.get("exclusiveMinimum") else low
    high = high - step if schema.get("exclusiveMaximum") else high
    return kind(low), kind(max(low, high))
