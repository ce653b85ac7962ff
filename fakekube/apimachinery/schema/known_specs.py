"""Remembers what became of the specs of objects, by their text.

Clients send the same spec again and again: the pods of a workload, the objects of a test suite, what was read and is written
again. To encode a spec as JSON and to decode its remembered form costs a tenth of what its decoder, its defaults and its
normalisation cost.

Invariants: a form depends on nothing but the type, the defaults of the kind, and the text of the spec. A spec that `decode_spec`
returns belongs to the caller; one of `normalised_spec` is shared with other objects and never changed. The number and the length
of specs have bounds; of a spec that was seen once, only the text is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import orjson

from fakekube.apimachinery.schema import printing
from fakekube.apimachinery.schema.decode import decoder
from fakekube.apimachinery.schema.defaults import Defaulter, set_no_defaults
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.trees import KNOWN, are_equal, copy_metadata, deep_copy, holds_any_form, text_of
from fakekube.base.caches import BoundedCache

#: The part of objects that is large in most kinds, and alike in many objects.
SPEC: Final = "spec"

#: The maximum number of specs in each cache.
_MAX_SPECS: Final = 500

_decoded: BoundedCache[tuple[Type, Defaulter | None, bytes], bytes] = BoundedCache(_MAX_SPECS)
"""The text of a spec in a body → that of the decoded spec with its constant defaults; empty for one that was seen once."""
_defaulted: BoundedCache[tuple[Defaulter, bytes], bytes] = BoundedCache(_MAX_SPECS)
"""The text of a spec → that with its constant defaults; empty for one that has them."""
_normalised: BoundedCache[tuple[Type, bool, bytes], Any] = BoundedCache(_MAX_SPECS)
"""The text of a spec → the normalised spec, stored or not; None for one that was seen once."""


class _LastDecoded(threading.local):
    """The spec that a thread has decoded last, as it was before; nothing changes it."""

    type: Type | None = None
    spec: Any = None
    text = b""


_last_decoded: Final = _LastDecoded()


def text_of_spec(type_: Type, tree: Mapping[str, Any]) -> bytes | None:
    """Returns a text that tells the decoded spec of an object of a type; None if it has no spec, or none that a text tells.

    The text is that of the body if decoding, defaults and admission have left the spec as it was there: to compare it costs less
    than to encode it again. Its members may be in another order, and its integers written as `1.0`.
    """
    spec = tree.get(SPEC)
    if not spec or spec.__class__ is not dict:
        return None
    if type_ is _last_decoded.type and are_equal(spec, _last_decoded.spec):
        return _last_decoded.text
    return text_of(spec)


def decode_spec(type_: Type, default: Defaulter | None, value: Any) -> Any:
    """Returns the decoded spec of an object with its constant defaults: a new tree, in which values of any form may be those of
    the body.

    Args:
        type_: the type of the kind.
        default: sets the constant defaults of the kind; None: they are not set.
        value: the spec in the body.

    Raises:
        SlowPathRequired, DecodeError: the object must be decoded as a whole.
    """
    text = text_of(value)
    if text and not holds_any_form(type_):  # a decoded tree with such a value would share it
        _last_decoded.type, _last_decoded.spec, _last_decoded.text = type_, value, text
    key = type_, default, text or b""
    known = _decoded.get(key)
    if known:
        return orjson.loads(known)
    holder = {SPEC: decoder(type_.fields[SPEC].type)(value, None)}
    if default is not None:
        default(holder)
    form = b"" if known is None else text_of(holder[SPEC])
    if text and form is not None:
        _decoded.add(key, form)
        if form and default is not None:
            _defaulted.add((default, form), b"")
    return holder[SPEC]


def decode_changes(type_: Type, value: Mapping[str, Any], old: Mapping[str, Any], default: Defaulter | None) -> dict[str, Any]:
    """Returns the decoded object of a document that was made from another object, with its constant defaults.

    It is a new tree, in which values of any form may be those of the document. Members that both share are copied and not
    decoded; metadata is taken member by member.

    Args:
        type_: the type of the kind.
        value: the document.
        old: a decoded object, whose type holds no values with texts of their own.
        default: sets the constant defaults of the kind; None: they are not set.

    Raises:
        SlowPathRequired, DecodeError: the document must be decoded as a whole.
    """
    shared = {name: item for name, item in value.items() if item.__class__ in _CONTAINERS and item is old.get(name)}
    known, has_defaults = _copy_parts(shared, default)
    spec, metadata, before = value.get(SPEC), value.get("metadata"), old.get("metadata")
    if spec and spec.__class__ is dict and SPEC not in known and SPEC in type_.fields:
        known[SPEC], has_defaults = decode_spec(type_, default, spec), True
    members, left = {**value, **dict.fromkeys(known, KNOWN)}, {}
    if metadata.__class__ is dict and before is not None and "metadata" not in known:
        left = copy_metadata({name: item for name, item in metadata.items() if item is not None and item is before.get(name)})
        members["metadata"] = {**metadata, **dict.fromkeys(left, KNOWN)}
    tree: dict[str, Any] = decoder(type_)(members, None)
    tree.update(known)
    if left:
        tree["metadata"].update(left)
    if default is not None:
        set_defaults(default, tree, but_spec=has_defaults)
    return tree


#: The classes of members that are copied; to decode others costs no more.
_CONTAINERS: Final = (dict, list)


def set_defaults(default: Defaulter, obj: dict[str, Any], *, but_spec: bool = False) -> None:
    """Sets the constant defaults of a kind in a decoded object, in place; fields may be out of order afterwards.

    `but_spec`: the spec has its defaults already, since `decode_spec` has made it.
    """
    if default is set_no_defaults or (but_spec and obj.keys() <= _USUAL and _are_in_spec(default)):
        return
    spec = obj.get(SPEC)
    text = text_of(spec) if spec and not but_spec else None
    known = b"" if but_spec else _defaulted.get((default, text)) if text is not None else None
    if known is not None and spec is not None:
        del obj[SPEC]
        default(obj)
        obj[SPEC] = orjson.loads(known) if known else spec
        return
    default(obj)
    form = text_of(spec) if text is not None else None
    if text is not None and form is not None:
        _defaulted.add((default, text), form)
        _defaulted.add((default, form), b"")


#: The members of most bodies with a spec.
_USUAL: Final = frozenset({"metadata", SPEC})


@cache
def _are_in_spec(default: Defaulter) -> bool:
    """Reports whether all constant defaults of a kind are in the spec: they set nothing in an object of only metadata."""
    empty: dict[str, Any] = {"metadata": {}}
    default(empty)
    return empty == {"metadata": {}}


def _copy_parts(parts: Mapping[str, Any], default: Defaulter | None) -> tuple[dict[str, Any], bool]:
    """Returns copies of parts of a stored object, and whether the spec among them has its constant defaults."""
    copies, has_defaults = {}, False
    for name, item in parts.items():
        if name == "metadata":
            copies[name] = copy_metadata(item)
            continue
        spec = _copy_with_defaults(default, item) if name == SPEC and default is not None else None
        has_defaults = has_defaults or spec is not None
        copies[name] = deep_copy(item) if spec is None else spec
    return copies, has_defaults


def _copy_with_defaults(default: Defaulter, spec: Any) -> Any | None:
    """Returns a copy of a decoded spec with its constant defaults; None if these are not known."""
    text = text_of(spec)
    known = None if text is None else _defaulted.get((default, text))
    return None if known is None else orjson.loads(known or text or b"")


def normalised_spec(type_: Type, tree: Mapping[str, Any], *, stored: bool, text: bytes | None = None) -> dict[str, Any]:
    """Returns the spec of an object as `printing.normalise` makes it, for its argument `parts`.

    Empty for an object without a spec, and for a spec that was not seen before. `text`: that of the spec, if it is known.

    Raises:
        KeyError: the spec has a field that the type does not declare.
    """
    text = text or text_of_spec(type_, tree)
    if text is None:
        return {}
    key = type_, stored, text
    form = _normalised.get(key, _UNSEEN)
    if form is _UNSEEN:
        _normalised.add(key, None)
        return {}
    if form is None:  # a copy, since normalised parts are those of the tree, which its owner may change
        form = _normalised.add(key, deep_copy(printing.normalise(type_.fields[SPEC].type, tree[SPEC], stored=stored)))
    return {SPEC: form}


_UNSEEN: Final = object()
