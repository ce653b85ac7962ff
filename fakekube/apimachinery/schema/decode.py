"""Decodes parsed JSON into a built-in type, with the errors of Go's decoder.

Theory of operation: each type is compiled once into a decoder, a closure `(value, walk) -> tree`, with two modes.

* The fast path (`walk` is None) decodes valid values. A struct takes the names of its members in their order as its
  layout; for each layout it caches a plan of the fields in the order of the type. The first irregularity ends the
  fast path.
* The slow path then walks the value in the order of the document, which determines the error to report: the *first*
  type mismatch is recorded and raised at the end, but an invalid value of a type with a custom JSON form (a time, a
  quantity …) ends the decoding at once. `Walk.stack` contains the current position; paths are formatted only for
  errors.

Invariant: for a valid value, both paths return the same tree.

The result is a new tree in the field order of the type: unknown fields are dropped (and reported), nulls and zero
values of `omitempty` fields are dropped, the zero values that Go always prints are present, maps are sorted. Two
kinds of values stay unchanged: lists and maps that are empty but not null (defaulting may distinguish them from absent
ones; `printing.normalise` drops them), and values of any type (RawExtension, JSON, FieldsV1), which are shared with
the input.

Specified by: sigs.k8s.io/json (Go's encoding/json, case-sensitive, with strict errors), and the UnmarshalJSON
of the types in k8s.io/apimachinery and k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery.schema.decoders import decoder
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.printing import zero
from fakekube.apimachinery.schema.strict import Strict
from fakekube.apimachinery.schema.walk import DecodeError, Decoder, Literals, SlowPathRequired, Walk

__all__ = ["DecodeError", "Strict", "decode"]


def decode(type_: Type, value: Any, strict: Strict | None = None, literals: Literals | None = None) -> Any:
    """Decodes parsed JSON into a type.

    Args:
        type_: the type to decode into.
        value: the parsed body; not changed, but values of any type in it become part of the result.
        strict: collects unknown fields and duplicates.
        literals: parses the body again, with each number that is not an integer as its literal text; called only if a
            literal is needed (messages, quantities). Without it, the literals are those that Python prints.

    Raises:
        DecodeError: the value does not fit the type.
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
    except SlowPathRequired:
        walk = Walk(strict, literals)
        tree = read(value, walk)
        if walk.error is not None:
            raise DecodeError(walk.error) from None
        return tree
