"""Encodes JSON that orjson cannot: deeply nested documents, and scalars in another form. It does not recurse.

Invariant: memory is bounded. Indentation can make a document a thousand times longer than its compact form, so the
length of the parts is checked before they are joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

# --- JSON objects that keep the text in which they came, like runtime.RawExtension -----------------------------------
# Such a value behaves as the object that it is, but equals only what has the same text, and is encoded as its text. Values
# whose text is that which Go prints are plain dicts.
#
# Specified by: k8s.io/apimachinery/pkg/runtime (extension.go); encoding/json (RawMessage, Compact, Indent).


#: A string, a bracket, a comma, a colon, or a scalar that is no string.
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')

#: The characters that json.Marshal escapes.
_ESCAPED: Final = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")
_ESCAPES: Final = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026", b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029"}


def _escape(token: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], token)


class RawObject(dict[str, Any]):
    """A JSON object and its text. It is not changed after it was made.

    Args:
        value: what the text says.
        text: valid JSON.
    """

    __slots__ = ("text",)
    text: bytes

    def __init__(self, value: dict[str, Any], text: bytes) -> None:
        super().__init__(value)
        self.text = text

    @property
    def compact(self) -> bytes:
        """The text as json.Marshal writes it: without spaces between its tokens, with some characters escaped."""
        return b"".join(map(_escape, _TOKENS.findall(self.text)))

    def indent(self, depth: int) -> bytes:
        """Returns the text indented by two spaces, within a document in which its first line has this depth."""
        parts: list[bytes] = []
        before = b""
        for token in map(_escape, _TOKENS.findall(self.text)):
            if before in (b"{", b"[") and token in (b"}", b"]"):
                depth -= 1
            elif before in (b"{", b"[", b",") or token in (b"}", b"]"):
                depth -= token in (b"}", b"]")
                parts.append(b"\n" + b"  " * depth)
            parts.append(b": " if token == b":" else token)
            depth += token in (b"{", b"[")
            before = token
        return b"".join(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RawObject) and self.text == other.text

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def plain_form(value: Any) -> Any:
    """Encodes an instance of a subclass for orjson (OPT_PASSTHROUGH_SUBCLASS). Raises TypeError."""
    if isinstance(value, RawObject):
        return orjson.Fragment(value.compact)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, dict | list):
        return value.copy()
    raise TypeError(f"{type(value).__name__} has no JSON form")


#: The maximum length of a document in bytes: twice that of ten thousand levels with one line each.
LONGEST: Final = 1 << 30


def write_json(value: Any, scalar: Callable[[Any], bytes], *, pretty: bool = False, sort_keys: bool = False) -> bytes:
    """Encodes a value as JSON.

    Args:
        value: plain JSON data; `bytes` in it are encoded JSON.
        scalar: encodes keys and scalars.
        pretty: indent by two spaces like Go's json.MarshalIndent; else compact.
        sort_keys: sort the members by name.

    Raises:
        OverflowError: the document exceeds the maximum length.
    """
    colon = b": " if pretty else b":"
    parts: list[bytes] = []
    todo: list[tuple[Any, int]] = [(value, 0)]
    while todo:
        item, depth = todo.pop()
        kind = type(item)
        if kind is bytes:
            parts.append(item)
        elif kind is RawObject:
            parts.append(item.indent(depth) if pretty else item.compact)
        elif item and (kind is dict or kind is list):
            opening, closing = (b"{", b"}") if kind is dict else (b"[", b"]")
            line = b"\n" + b"  " * depth if pretty else b""
            inner = line + b"  " if pretty else b""
            next_line = b"," + inner
            parts.append(opening)
            todo.append((line + closing, depth))
            if kind is dict:
                names = sorted(item) if sort_keys else list(item)
                labels, members = [scalar(name) + colon for name in names], [item[name] for name in names]
            else:
                labels, members = [b""] * len(item), item
            for number in range(len(members) - 1, -1, -1):
                todo.append((members[number], depth + 1))
                todo.append((labels[number], depth))
                todo.append((next_line if number else inner, depth))
        else:
            parts.append(scalar(item))
    if pretty and sum(map(len, parts)) > LONGEST:
        raise OverflowError("the document is too long")
    return b"".join(parts)
