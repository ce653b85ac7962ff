"""The strings extension at version 2: characters, parts, cases, joining, quoting, `format`.

Positions count characters. Specified by: cel-go/ext/strings.go, cel-go/ext/formatting.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload
from fakekube.apimachinery.cel.libraries.formatting import formatted

_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code + 32: code for code in range(ord("A"), ord("Z") + 1)}
_QUOTED: Final = str.maketrans(
    {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"'}
)


def _out_of_range(position: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {position}")


def _character(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _out_of_range(position)
    return text[position : position + 1]


def _index(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_before(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def _joined(parts: list[Any], separator: str = "") -> str:
    if parts and parts[0].__class__ is not str:
        raise no_such_overload("join(list, string)" if separator else "join(list)")
    for part in parts:
        if part.__class__ is not str:
            raise EvaluationError(f"join: invalid input: {part}")
    return separator.join(parts)


def _replaced(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    characters = list(text)
    if 0 < count < len(characters):
        return [*characters[: count - 1], "".join(characters[count - 1 :])]
    return characters


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_to(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise _out_of_range(position)
    return text[start:end]


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("charAt", True, str, int): _character,
    ("indexOf", True, str, str): _index,
    ("indexOf", True, str, str, int): _index,
    ("lastIndexOf", True, str, str): _last_index,
    ("lastIndexOf", True, str, str, int): _last_index_before,
    ("join", True, list): _joined,
    ("join", True, list, str): _joined,
    ("lowerAscii", True, str): lambda text: text.translate(_LOWER),
    ("upperAscii", True, str): lambda text: text.translate(_UPPER),
    ("replace", True, str, str, str): _replaced,
    ("replace", True, str, str, str, int): _replaced,
    ("split", True, str, str): _split,
    ("split", True, str, str, int): _split,
    ("substring", True, str, int): _substring,
    ("substring", True, str, int, int): _substring_to,
    ("trim", True, str): lambda text: text.strip(_SPACE),
    ("jsonpatch.escapeKey", False, str): lambda text: text.replace("~", "~0").replace("/", "~1"),
    ("strings.quote", False, str): lambda text: f'"{text.translate(_QUOTED)}"',
    ("format", True, str, list): formatted,
}
