"""JSON objects that keep the text in which they came, like runtime.RawExtension.

Such a value behaves as the object that it is, but equals only what has the same text, and is encoded as its text. Values
whose text is that which Go prints are plain dicts.

Specified by: k8s.io/apimachinery/pkg/runtime (extension.go); encoding/json (RawMessage, Compact, Indent).
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

#: A string, a bracket, a comma, a colon, or a scalar that is no string.
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')

#: The characters that json.Marshal escapes.
_ESCAPED: Final = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")
_ESCAPES: Final = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026", b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029"}


def _escaped(token: bytes) -> bytes:
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
        return b"".join(map(_escaped, _TOKENS.findall(self.text)))

    def indented(self, depth: int) -> bytes:
        """Returns the text indented by two spaces, within a document in which its first line has this depth."""
        parts: list[bytes] = []
        before = b""
        for token in map(_escaped, _TOKENS.findall(self.text)):
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
