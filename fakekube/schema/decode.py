"""Reading parsed JSON as a built-in type: Go's decoder, message for message.

Theory of operation: each type is compiled once into a decoder, a closure `(value, walk) -> tree`, that knows
two roads.

* The quick road (`walk` is None) is for values with nothing wrong in them. A struct looks at the names it is
  given, in their order; for each such layout there is a plan of what to do with which field, in the order of
  the type. The first irregularity ends it.
* The careful road then goes through the value in the order of the document, because that decides which
  mistake is told: the *first* wrong type is remembered and told at the end, but a value with a form of its
  own (a time, a quantity …) that cannot be read ends everything at once. `Walk.stack` holds where we are;
  texts of paths are made only when something is wrong.

Invariant: where there is no mistake, both roads lead to the same tree.

The result is a tree of its own in the field order of the type: unknown fields dropped (and reported), nulls
and zero values of `omitempty` fields dropped, the zero values that Go always prints present, maps sorted. Two
things stay as they came: lists and maps that are empty but not null (defaulting may tell them from absent
ones; `printing.normalise` drops them), and values of any form (RawExtension, JSON, FieldsV1), which are
shared with the input.

Specified by: sigs.k8s.io/json (Go's encoding/json, case-sensitive, with strict errors), and the UnmarshalJSON
of the types in k8s.io/apimachinery and k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from typing import Any

from fakekube.schema.decoders import decoder
from fakekube.schema.model import Type
from fakekube.schema.strict import Strict
from fakekube.schema.walk import DecodeError, Decoder, Irregularity, Literals, Walk
from fakekube.schema.zero import zero

__all__ = ["DecodeError", "Strict", "decode"]


def decode(type_: Type, value: Any, strict: Strict | None = None, literals: Literals | None = None) -> Any:
    """Read parsed JSON as a type.

    Args:
        type_: what it should be.
        value: what `codecs` made of the body; not changed, but values of any form in it become part of the
        result. strict: told of unknown fields and duplicates. literals: reads the body once more, with each
        number that is no integer as the text it was written as; asked
            only where such a text matters (messages, quantities). Without it, numbers are taken to be written
            as Python writes them.

    Raises:
        DecodeError: in the real server's words.
    """
    if value is None:
        return zero(type_)
    tree = _decoded(decoder(type_), value, strict, literals)
    if strict is not None:
        strict.finish(type_, value)
    return tree


def _decoded(read: Decoder, value: Any, strict: Strict | None, literals: Literals | None) -> Any:
    try:
        return read(value, None)
    except Irregularity:
        walk = Walk(strict, literals)
        tree = read(value, walk)
        if walk.error is not None:
            raise DecodeError(walk.error) from None
        return tree
