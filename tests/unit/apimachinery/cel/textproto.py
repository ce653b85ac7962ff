"""Reads the text format of protocol buffers, as far as the language's public vectors use it: into dicts of lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["Message", "read"]

Message = dict[str, list[Any]]

_TOKEN = re.compile(
    r"""\#[^\n]*|\s+|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<extension>\[[\w./]+\])"""
    r"""|(?P<word>[-+]?[\w.+-]+)|(?P<mark>[{}:<>,;\[\]])"""
)


def read(source: str) -> Message:
    """The fields of a message: name → values in order. Texts are bytes."""
    tokens = _tokens(source)
    return _message(tokens, None)


def _tokens(source: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(source):
        if match.lastgroup:
            yield match.lastgroup, match.group()
    yield "end", ""


def _message(tokens: Iterator[tuple[str, str]], closing: str | None) -> Message:
    fields: Message = {}
    pushed: list[tuple[str, str]] = []

    def take() -> tuple[str, str]:
        return pushed.pop() if pushed else next(tokens)

    while (token := take())[1] != (closing or ""):
        if token[1] in (",", ";"):
            continue
        name = token[1].strip("[]")
        following = take()
        if following[1] == ":":
            following = take()
        values = fields.setdefault(name, [])
        if following[1] == "[":
            while (item := take())[1] != "]":
                if item[1] != ",":
                    values.append(_value(item, tokens))
            continue
        value = _value(following, tokens)
        while following[0] == "text" and (more := take()):
            if more[0] != "text":
                pushed.append(more)
                break
            value += _value(more, tokens)
        values.append(value)
    return fields


def _value(token: tuple[str, str], tokens: Iterator[tuple[str, str]]) -> Any:
    kind, text = token
    if text in ("{", "<"):
        return _message(tokens, "}" if text == "{" else ">")
    if kind == "text":
        return _unescaped(text[1:-1])
    return text


_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<byte>[0-9a-fA-F]{1,2})|(?:u|U)(?P<code>[0-9a-fA-F]{4,8})|(?P<plain>.))", re.DOTALL
)
_PLAIN = {"a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v"}


def _unescaped(text: str) -> bytes:
    pieces, end = [], 0
    for match in _ESCAPE.finditer(text):
        pieces += [text[end : match.start()].encode(), _escaped(match)]
        end = match.end()
    return b"".join([*pieces, text[end:].encode()])


def _escaped(match: re.Match[str]) -> bytes:
    if match["octal"]:
        return bytes([int(match["octal"], 8)])
    if match["byte"]:
        return bytes([int(match["byte"], 16)])
    if match["code"]:
        return chr(int(match["code"], 16)).encode()
    return _PLAIN.get(match["plain"], match["plain"].encode())
