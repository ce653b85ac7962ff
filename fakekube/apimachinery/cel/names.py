"""Escapes property names as identifiers: `my-key` is `my__dash__key`, `namespace` is `__namespace__`.

Specified by: k8s.io/apiserver/pkg/cel/escaping.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from fakekube.apimachinery.cel.lexer import RESERVED

_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_WORDS: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_SPECIAL = re.compile(r"__|[-./]")
_ESCAPED = re.compile(r"__([^_]+)__")


@lru_cache(maxsize=4096)
def escape(name: str) -> str | None:
    """Returns the identifier of a property; None if it cannot be escaped."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], name)


@lru_cache(maxsize=4096)
def unescape(identifier: str) -> str | None:
    """Returns the property of an identifier; None if it is not one of a property."""
    wrong = False

    def replace(match: re.Match[str]) -> str:
        nonlocal wrong
        word = match[1]
        if word in _WORDS:
            return _WORDS[word]
        wrong = wrong or word not in RESERVED or match[0] != identifier
        return word

    name = _ESCAPED.sub(replace, identifier)
    return None if wrong else name
