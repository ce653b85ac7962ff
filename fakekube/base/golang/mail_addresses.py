"""Checks mail addresses like Go's net/mail: a bare address, one with a display name, or one in a group.

The grammar is regular except for nested comments, and RE2 matches any text in linear time.

Specified by: RFC 5322, as far as net/mail (ParseAddress) follows it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from fakekube.base.golang.netip import is_address

_SPACE: Final = r"[ \t]*"
_COMMENTS: Final = rf"{_SPACE}(?:\((?:[^()\\]|\\.)*\){_SPACE})*"
_BEYOND: Final = r"\x{80}-\x{10ffff}"
_CHARACTER: Final = rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{_BEYOND}-]"
_DOTTED: Final = rf"{_CHARACTER}+(?:\.{_CHARACTER}+)*"
_IN_QUOTES: Final = rf"(?:[ \t!#-\[\]-~{_BEYOND}]|\\[ \t!-~{_BEYOND}])"
_QUOTED: Final = rf'"{_IN_QUOTES}*"'
_MAILBOX: Final = rf'{_SPACE}(?:{_DOTTED}|"{_IN_QUOTES}+")@{_SPACE}(?:{_DOTTED}|\[(?P<literal>[!-Z^-~]*)\])'
_WORD: Final = rf"(?:(?:{_CHARACTER}|\.)+|{_QUOTED})"
_PHRASE: Final = rf"{_SPACE}{_WORD}(?:{_COMMENTS}{_WORD})*{_COMMENTS}"
_NAMED: Final = rf"(?:{_PHRASE})?{_SPACE}<{_MAILBOX}>"

_FORMS: Final = (
    rf"{_MAILBOX}{_COMMENTS}",
    rf"{_NAMED}{_COMMENTS}",
    rf"{_PHRASE}:{_MAILBOX}{_COMMENTS};{_COMMENTS}",
    rf"{_PHRASE}:{_NAMED}{_COMMENTS};{_COMMENTS}",
)


def is_mail_address(text: str) -> bool:
    """Reports whether ParseAddress accepts the text."""
    match = next((found for form in _compiled_forms() if (found := form.fullmatch(text))), None)
    literal = match.group("literal") if match is not None else None
    return match is not None and (literal is None or is_address(literal))


@cache
def _compiled_forms() -> tuple[Any, ...]:
    """Returns the compiled forms. Compiling takes some 25 ms, and few schemas have the format."""
    import re2

    return tuple(re2.compile(f"(?s){form}") for form in _FORMS)
