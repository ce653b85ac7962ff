"""Encodes Warning headers: deduplicates and truncates the texts.

Texts with control characters are omitted. If the texts exceed 4,096 characters in total, each is truncated to 256,
and no more are added once the truncated ones reach 4,096.

Specified by: k8s.io/apiserver/pkg/endpoints/filters/warning.go, k8s.io/apimachinery/pkg/util/net
(NewWarningHeader).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

_CODE: Final = 299
_NO_AGENT: Final = "-"
_MAXIMUM_OF_ALL: Final = 4 * 1024
_MAXIMUM_OF_ONE_WHEN_CUT: Final = 256


def warning_headers(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Returns the headers for these texts, in order."""
    unique = [text for text in dict.fromkeys(texts) if text]
    sendable = [text for text in unique if _sendable(text)]
    if sum(map(len, sendable)) > _MAXIMUM_OF_ALL:
        sendable = _cut(sendable)
    return [("Warning", _header(text)) for text in sendable]


def _sendable(text: str) -> bool:
    """Reports whether a text has no control characters and is valid UTF-8 (no surrogates: see `base.golang.strings`)."""
    return text.isprintable() or not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def _cut(texts: list[str]) -> list[str]:
    kept, written = [], 0
    for text in texts:
        if written >= _MAXIMUM_OF_ALL:
            break
        kept.append(text[:_MAXIMUM_OF_ONE_WHEN_CUT])
        written += len(kept[-1])
    return kept


def _header(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{_CODE} {_NO_AGENT} "{quoted}"'.encode().decode("latin-1")
