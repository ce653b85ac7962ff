"""Types made by hand for the tests of patches, and values of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from fakekube.apimachinery.schema.model import Field, ListType, MapType, Shape, Type

STRING = Type(Shape.STRING, "string", "string")
INT32 = Type(Shape.INTEGER, "int32", "int32", format="int32")
BOOLEAN = Type(Shape.BOOLEAN, "bool", "bool")
QUANTITY = Type(Shape.QUANTITY, "Quantity", "resource.Quantity")
ANY = Type(Shape.ANY, "JSON", "v1.JSON")


def struct(type_name: str, /, *, atomic: bool = False, **fields: Type | Field) -> Type:
    """A built-in struct; fields that are given as types are optional."""
    made: Mapping[str, Field] = {key: field if isinstance(field, Field) else Field(key, field) for key, field in fields.items()}
    map_type = MapType.ATOMIC if atomic else MapType.GRANULAR
    return Type(Shape.STRUCT, type_name, f"v1.{type_name}", resolve=lambda: made, map_type=map_type)


def map_of(items: Type, *, atomic: bool = False) -> Type:
    map_type = MapType.ATOMIC if atomic else MapType.GRANULAR
    return Type(Shape.MAP, f"map {items.name}", f"map[string]{items.go}", items=items, map_type=map_type)


def list_of(items: Type, list_type: ListType = ListType.ATOMIC, *keys: str) -> Type:
    name = f"list {items.name} {list_type.value} {keys}"
    return Type(Shape.LIST, name, f"[]{items.go}", items=items, list_type=list_type, list_map_keys=keys)


TAG = struct("Tag", k=INT32, v=STRING)

ITEM = struct(
    "Item",
    name=Field("name", STRING, required=True),
    value=STRING,
    tags=list_of(TAG, ListType.MAP, "k"),
    names=list_of(STRING, ListType.SET),
)

PORT = struct("Port", port=INT32, protocol=Field("protocol", STRING, default="TCP", row={"v": "TCP"}), note=STRING)

#: One field of every way to merge.
SPEC = struct(
    "Spec",
    text=STRING,
    number=INT32,
    flag=BOOLEAN,
    labels=map_of(STRING),
    selector=map_of(STRING, atomic=True),
    inner=struct("Inner", a=STRING, b=struct("Deep", c=STRING)),
    whole=struct("Whole", atomic=True, a=STRING, b=STRING),
    set=list_of(STRING, ListType.SET),
    atoms=list_of(STRING),
    items=list_of(ITEM, ListType.MAP, "name"),
    ports=list_of(PORT, ListType.MAP, "port", "protocol"),
    parts=map_of(struct("Part", x=STRING, y=STRING)),
    any=ANY,
)

THING = struct(
    "Thing",
    metadata=Field("metadata", struct("Meta", name=STRING, labels=map_of(STRING), annotations=map_of(STRING))),
    spec=Field("spec", SPEC),
    status=Field("status", struct("Status", phase=STRING)),
)

_words = st.sampled_from(["a", "b", "c"])
_numbers = st.integers(0, 3)
_anything = st.recursive(
    st.none() | st.booleans() | _numbers | _words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words, inner, max_size=2),
    max_leaves=4,
)


def _some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)


def _items(required: dict[str, Any], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


_tag = _items({"k": _numbers}, v=_words)
_item = _items(
    {"name": _words},
    value=_words,
    tags=st.lists(_tag, max_size=2, unique_by=lambda tag: tag["k"]),
    names=st.lists(_words, max_size=2, unique=True),
)
_port = _items({"port": _numbers}, protocol=st.sampled_from(["TCP", "UDP"]), note=_words)

#: Values of SPEC without what the real server would never print, nor repeated items.
specs = _some(
    text=_words,
    number=_numbers,
    flag=st.booleans(),
    labels=st.dictionaries(_words, _words, max_size=2),
    selector=st.dictionaries(_words, _words, max_size=2),
    inner=_some(a=_words, b=_some(c=_words)),
    whole=_some(a=_words, b=_words),
    set=st.lists(_words, max_size=3, unique=True),
    atoms=st.lists(_words, max_size=3),
    items=st.lists(_item, max_size=3, unique_by=lambda item: item["name"]),
    ports=st.lists(_port, max_size=3, unique_by=lambda port: (port["port"], port.get("protocol", "TCP"))),
    parts=st.dictionaries(_words, _some(x=_words, y=_words), max_size=2),
    any=_anything,
)

#: Values of THING.
things = st.builds(lambda spec: {"metadata": {"name": "t"}, "spec": spec}, specs)
