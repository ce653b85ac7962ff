"""Compares and copies trees of plain JSON data of any type, and keeps the texts of values of any form in them.

Invariant: a tree is never changed in place, except by the functions that say so. A value of any form whose text is that which Go
prints stays a plain dict, so that only the others cost anything.

Specified by: k8s.io/apimachinery/pkg/runtime/extension.go (RawExtension).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from fakekube.apimachinery.schema.model import Shape, Type, types_below
from fakekube.base.caches import BoundedCache, trim
from fakekube.base.golang.json_writer import RawObject
from fakekube.base.golang.strings import bytes_of, json_text

#: The parts of an object that are large in most kinds: to compare them costs less than to walk them.
_PARTS = frozenset({"spec", "status"})


#: Stands in a tree for a member of a struct whose form is known: decoders and normalisers leave it as it is.
KNOWN: Final[Any] = object()

#: The maximum length in bytes of the texts by which trees, and the bodies of applies, are recognized.
MAX_TEXT: Final = 5000
#: The maximum number of texts of which all caches share one copy.
_MAX_TEXTS: Final = 1000

_texts: BoundedCache[bytes, bytes] = BoundedCache(_MAX_TEXTS)
"""Texts that callers may keep: equal ones share one copy."""


def text_of(tree: Any) -> bytes | None:
    """Returns the JSON text of a tree, by which equal ones are recognized; equal trees have the same one.

    None if it is too long, and for a tree with values that no text tells: a RawObject, integers beyond 64 bits, invalid UTF-8.
    """
    try:
        text = orjson.dumps(tree, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except orjson.JSONEncodeError:
        return None
    if len(text) > MAX_TEXT:
        return None
    known = _texts.get(text)
    return known if known is not None else _texts.add(kept := trim(text), kept, len(kept))


def unchanged_parts(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """Returns the names of those of spec and status that have the same JSON in both objects."""
    if _PARTS.isdisjoint(new):
        return []
    return [name for name in _PARTS if type(new.get(name)) is dict and _are_identical(new[name], old.get(name))]


def unchanged_members(type_: Type, new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members of an old object that are the same in a new one; both are decoded into a type.

    If the type has values of any form, in which equal numbers may have different texts, these are spec and status at most.
    """
    if holds_any_form(type_):
        return {name: old[name] for name in unchanged_parts(new, old)}
    try:
        return {name: item for name, item in old.items() if name in new and new[name] == item}
    except RecursionError:
        return {}


def are_equal(one: Any, other: Any) -> bool:
    """Compares two trees.

    False for equal ones that nest too deeply: since Python 3.12 the depth of comparisons has a limit that cannot be raised.
    """
    try:
        return bool(one == other)
    except RecursionError:
        return False


def _are_identical(one: Any, other: Any) -> bool:
    """Reports whether two trees have the same JSON text: Python's 1, 1.0 and True are equal, but not identical.

    False for trees that nest too deeply to compare.
    """
    if one is other:
        return True
    try:
        option = orjson.OPT_PASSTHROUGH_SUBCLASS  # a RawObject has a text of its own
        return orjson.dumps(one, option=option) == orjson.dumps(other, option=option)
    except orjson.JSONEncodeError:
        return False


#: The classes of values without parts, which copies share.
_SCALARS = frozenset({str, int, float, bool, type(None)})


def deep_copy(value: Any) -> Any:
    """Returns a deep copy of a tree, which the caller may change."""
    if value.__class__ is dict and _SCALARS.issuperset(map(type, value.values())):
        return dict(value)
    try:
        return orjson.loads(orjson.dumps(value))  # much faster than to walk
    except orjson.JSONEncodeError:  # integers beyond 64 bits, invalid UTF-8
        return _copy(value)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


#: The fields of metadata that have parts, but for managedFields.
_COPIED_METADATA: Final = frozenset({"annotations", "finalizers", "labels", "ownerReferences"})


def copy_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of the metadata of a stored object, which shares managedFields: these are never changed in place."""
    copy = dict(metadata)
    for name in _COPIED_METADATA & copy.keys():
        copy[name] = deep_copy(copy[name])
    return copy


def copy_with_texts(value: Any) -> Any:
    """Returns a deep copy of a tree, which shares the values that keep their text (`RawObject`): these are not changed."""
    try:
        return orjson.loads(orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_SUBCLASS))
    except orjson.JSONEncodeError:
        return _copy_with_texts(value)


def _copy_with_texts(value: Any) -> Any:
    if value.__class__ is dict:
        return {name: _copy_with_texts(item) for name, item in value.items()}
    if value.__class__ is list:
        return [_copy_with_texts(item) for item in value]
    return value


def in_order(value: Any) -> Any:
    """Returns a deep copy with sorted keys and unchanged numbers."""
    if isinstance(value, dict):
        return {name: in_order(value[name]) for name in sorted(value)}
    return [in_order(item) for item in value] if isinstance(value, list) else value


# --- The texts of values of any form (runtime.RawExtension) in objects that came as JSON --------------------------------


#: What Go may print in another form: in texts escapes and characters that it escapes, elsewhere fractions, exponents and -0.
_ESCAPED: Final = re.compile(r"[\\<>&\u2028\u2029]")
_AMBIGUOUS_NUMBER: Final = re.compile(r"\d[.eE]|-0")
_TEXT_WITHOUT_ESCAPES: Final = re.compile('"[^"]*"')
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_decoder: Final = json.JSONDecoder(strict=False)

#: The names under which a type keeps what it holds.
_RAW_VALUES: Final = "raw values"
_ANY_FORM: Final = "any form"
_FLOATS: Final = "floats"


def holds_raw_values(type_: Type) -> bool:
    """Reports whether objects of a type may contain values of any form."""
    known: bool | None = type_.compiled.get(_RAW_VALUES)
    return _holds(type_, _RAW_VALUES, (Shape.RAW,)) if known is None else known


def holds_any_form(type_: Type) -> bool:
    """Reports whether a type contains untyped values, other than managedFields, which are sorted anyway."""
    known: bool | None = type_.compiled.get(_ANY_FORM)
    return _holds(type_, _ANY_FORM, (Shape.RAW, Shape.ANY)) if known is None else known


def holds_floats(type_: Type) -> bool:
    """Reports whether objects of a type may contain floats, which Go prints in another form, or values of any form."""
    known: bool | None = type_.compiled.get(_FLOATS)
    return _holds(type_, _FLOATS, (Shape.RAW, Shape.ANY, Shape.NUMBER)) if known is None else known


def _holds(type_: Type, name: str, shapes: tuple[Shape, ...]) -> bool:
    """Reports whether a type contains one of these shapes; the type keeps the answer under a name."""
    found: bool = any(inner.shape in shapes for inner in types_below(type_))
    type_.compiled[name] = found
    return found


def keep_texts(type_: Type, tree: Any, source: bytes) -> Any:
    """Returns a tree whose values of any form are RawObjects, where their text in the source is not that of Go.

    Args:
        type_: the type of the tree; see `holds_raw_values`.
        tree: what was decoded from the source; changed in place.
        source: valid JSON.
    """
    try:
        text = source.decode()
        return _keep_texts(type_, tree, text, _after_space(text, 0))
    except (UnicodeDecodeError, RecursionError, ValueError):  # not read again: the values are shown as Go prints them
        return tree


def compact(type_: Type, tree: Any) -> Any:
    """Returns the tree, changed in place, with texts without spaces: a patch of the JSON of an object leaves no others."""
    if type_.shape is Shape.RAW:
        return raw_value(tree, tree.compact.decode()) if isinstance(tree, RawObject) else tree
    if isinstance(tree, dict) and type_.shape is Shape.STRUCT:
        for name, field in type_.fields.items():
            if name in tree and holds_raw_values(field.type):
                tree[name] = compact(field.type, tree[name])
    elif isinstance(tree, list) and type_.items is not None:
        tree[:] = [compact(type_.items, item) for item in tree]
    return tree


def without_texts(type_: Type, tree: Any) -> Any:
    """Returns the tree without the texts of its values of any form; what has none is shared."""
    if type_.shape is Shape.RAW:
        return dict(tree) if isinstance(tree, RawObject) else tree
    if isinstance(tree, dict) and type_.shape is Shape.STRUCT:
        held = {name: type_.fields[name].type for name in tree if name in type_.fields}
        return {**tree, **{name: without_texts(of, tree[name]) for name, of in held.items() if holds_raw_values(of)}}
    if isinstance(tree, list) and type_.items is not None:
        return [without_texts(type_.items, item) for item in tree]
    return tree


def _keep_texts(type_: Type, tree: Any, text: str, at: int) -> Any:
    """Returns a tree with the texts of its values of any form; `at` is where the tree begins in the text."""
    if type_.shape is Shape.RAW:
        if not isinstance(tree, dict):
            return tree
        return raw_value(tree, text[at : _decoder.raw_decode(text, at)[1]])
    if isinstance(tree, dict) and type_.shape is Shape.STRUCT and text[at] == "{":
        for name, start in _parts(text, at):
            field = type_.fields.get(name)
            if field is not None and name in tree and holds_raw_values(field.type):
                tree[name] = _keep_texts(field.type, tree[name], text, start)
    elif isinstance(tree, list) and type_.items is not None and text[at] == "[":
        for index, (_, start) in enumerate(_parts(text, at)):
            tree[index] = _keep_texts(type_.items, tree[index], text, start)
    return tree


def raw_value(value: dict[str, Any], text: str) -> dict[str, Any]:
    """Returns the object that a text of JSON says, with the text if it is not that of Go."""
    if text == json_text(value) and not _is_ambiguous(text):
        return dict(value)
    return RawObject(value, bytes_of(text))


def _is_ambiguous(text: str) -> bool:
    """Reports whether Go may print a compact text of JSON in another form."""
    return _ESCAPED.search(text) is not None or _AMBIGUOUS_NUMBER.search(_TEXT_WITHOUT_ESCAPES.sub("", text)) is not None


def _parts(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yields the members of an object, or the items of a list (without names), and where their values begin."""
    has_names = text[at] == "{"
    at = _after_space(text, at + 1)
    while text[at] not in "}]":
        name = ""
        if has_names:
            name, at = _decoder.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        yield name, at
        at = _after_space(text, _decoder.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
