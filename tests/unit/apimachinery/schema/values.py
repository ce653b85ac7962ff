"""Hypothesis strategies for values of built-in types, right and wrong."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fakekube.apimachinery.schema.builtin import builtins
from fakekube.apimachinery.schema.model import Shape, Type

#: Kinds with every shape among them.
KINDS = [
    ("", "v1", "Pod"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "DeleteOptions"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ControllerRevision"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("resource.k8s.io", "v1", "ResourceSlice"),
]

types = st.sampled_from(KINDS).map(lambda kind: builtins().kind_type(*kind))

#: What JSON does not escape and YAML does not read.
_CONTROLS = "".join(map(chr, (*range(0x7F, 0xA0), 0xFFFE, 0xFFFF)))
#: Characters that every format can say.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters=_CONTROLS)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS, max_size=8)
    | st.sampled_from(["1Gi", "0.5", "2024-01-01T00:00:00Z", "dGVzdA==", "80%"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "spec", "name", "containers", "labels", "a"]), inner)
    ),
    max_leaves=8,
)

_LEAVES: dict[Shape, st.SearchStrategy[Any]] = {
    Shape.STRING: st.text(CHARACTERS, max_size=5),
    Shape.BOOLEAN: st.booleans(),
    Shape.INTEGER: st.integers(-(2**31), 2**31 - 1),
    Shape.NUMBER: st.integers(-5, 5) | st.floats(-5, 5),
    Shape.BYTES: st.sampled_from(["", "dGVzdA==", "dGVz\ndA=="]),
    Shape.TIME: st.sampled_from(["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5+02:00"]),
    Shape.MICRO_TIME: st.sampled_from(["2024-01-01T00:00:00.000001Z", "2024-01-01T00:00:00.000000-01:00"]),
    Shape.QUANTITY: st.sampled_from(["0.5", "1024Mi", "1e3", "0", "100m"]) | st.integers(0, 10),
    Shape.INT_OR_STRING: st.integers(0, 10) | st.sampled_from(["", "25%"]),
}


@st.composite
def right_values(draw: st.DrawFn, type_: Type, depth: int = 0) -> Any:
    """A value without mistakes; nulls included."""
    if depth > 0 and draw(st.integers(0, 9)) == 0:
        return None
    shape = type_.shape
    if shape is Shape.STRUCT:
        few = min(len(type_.fields), 4 if depth < 7 else 0)
        names = draw(st.lists(st.sampled_from(list(type_.fields)), max_size=few, unique=True)) if few else []
        return {name: draw(right_values(type_.fields[name].type, depth + 1)) for name in names}
    if shape is Shape.LIST:
        assert type_.items is not None
        return [draw(right_values(type_.items, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
    if shape is Shape.MAP:
        assert type_.items is not None
        keys = draw(st.lists(st.sampled_from(["z", "a", "m"]), max_size=2, unique=True))
        return {key: draw(right_values(type_.items, depth + 1)) for key in keys}
    if shape is Shape.UNION:
        assert type_.items is not None
        assert type_.alternative is not None
        return draw(right_values(draw(st.sampled_from([type_.items, type_.alternative])), depth + 1))
    return draw(_LEAVES.get(shape, json_values))


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Type, Any]:
    """A type, and a value without mistakes."""
    type_ = draw(types)
    assert type_ is not None
    return type_, draw(right_values(type_))


@st.composite
def mistaken_values(draw: st.DrawFn) -> tuple[Type, Any]:
    """A type, and a value with something of any form put into it somewhere."""
    type_, value = draw(typed_values())
    holder = value
    while True:
        inner = [key for key in holder if isinstance(holder[key], dict) and holder[key]]
        if not inner or draw(st.booleans()):
            break
        holder = holder[draw(st.sampled_from(inner))]
    names = sorted(holder) or ["metadata"]
    holder[draw(st.sampled_from([*names, "unheard-of"]))] = draw(json_values)
    return type_, value
