"""The strings extension at version 2: characters, parts, cases, joining, quoting, `format`.

Positions count characters. Specified by: cel-go/ext/strings.go, cel-go/ext/formatting.go.
"""

from __future__ import annotations

import binascii
import math
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from operator import itemgetter
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload
from fakekube.apimachinery.cel.libraries.standard import parse_timestamp
from fakekube.apimachinery.cel.values import (
    CelType,
    Duration,
    Mapping,
    Opaque,
    Optional,
    Timestamp,
    UInt,
    double_text,
    kind_of,
    type_of,
)
from fakekube.apimachinery.schema.dns import dns_1035_label, dns_label, dns_subdomain
from fakekube.apimachinery.selectors.labels import label_key, label_value
from fakekube.base.golang import regexp, urls
from fakekube.base.golang.strconv import go_quote, parse_int

# --- The function `format`: `'…%s…'.format([…])` ---------------------------------------------------------------------
# Numbers are printed for the locale en-US, like golang.org/x/text does: with thousands separators, and with `×10` and
# superscript digits for exponents.
#
# Specified by: cel-go/ext/formatting.go.


_RAISED = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_PRECISION: Final = 6
_PRECISE = re.compile(r"\.([0-9]*)")
_PLACE = re.compile("%(%)?")
#: The verbs of clauses.
_CLAUSES: Final = frozenset("sdfebxXo")


def _format_template(template: str, arguments: list[Any]) -> str:
    """Returns the template with its clauses replaced. Raises EvaluationError."""

    def fill(index: int, letter: str, precision: int) -> str:
        return _WRITERS[letter](arguments[index], precision)

    return fill_template(template, len(arguments), fill)


def fill_template(template: str, count: int, fill: Callable[[int, str, int], str], *, is_literal: bool = False) -> str:
    """Replaces the clauses of a template by the results of `fill(argument index, verb, precision)`.

    `is_literal`: a template that is checked at compile time, where an unfinished clause is reported before a missing argument.
    """
    made, end, index = list[str](), 0, 0
    while match := _PLACE.search(template, end):
        made.append(template[end : match.start()])
        end = match.end()
        if match[1]:
            made.append("%")
            continue
        if end == len(template) and (is_literal or index < count):
            raise EvaluationError("unexpected end of string")
        if index >= count:
            raise EvaluationError(f"index {index} out of range")
        letter, precision, end = _clause(template, end)
        made.append(fill(index, letter, precision))
        index += 1
    return "".join((*made, template[end:]))


def _clause(template: str, at: int) -> tuple[str, int, int]:
    """Returns the verb, the precision, and the end of a clause."""
    precise = _PRECISE.match(template, at)
    if precise and precise.end() == len(template):
        raise EvaluationError(f"{_UNREADABLE}: error while parsing precision: could not find end of precision specifier")
    try:
        precision = parse_int(precise[1], "Atoi") if precise else _PRECISION
    except ValueError as problem:
        said = "error while parsing precision: error while converting precision to integer"
        raise EvaluationError(f"{_UNREADABLE}: {said}: {problem}") from None
    place = precise.end() if precise else at
    letter = template[place]
    if letter not in _CLAUSES:
        shown = chr(letter.encode()[0])
        raise EvaluationError(f'{_UNREADABLE}: unrecognized formatting clause "{shown}"')
    return letter, precision, place + 1


_UNREADABLE: Final = "could not parse formatting clause"


def _misfit(words: str, value: Any) -> EvaluationError:
    return EvaluationError(f"error during formatting: {words}, was given {type_of(value).name}")


def _string(value: Any, precision: int = _PRECISION) -> str:
    write = _TEXTS.get(kind_of(value))
    if write is None:
        raise _misfit(MISFITS["s"], value)
    return write(value)


def _inner(value: Any) -> str:
    """Formats a value within a list or map."""
    kind = kind_of(value)
    if kind is str:
        return go_quote(value)
    if kind is bytes:
        return "b" + go_quote(value.decode(errors="replace"))
    if kind is float:
        return f"{value:.{_PRECISION}f}" if abs(value) < float("inf") else f'"{double_text(value)}"'
    if kind in (Timestamp, Duration):
        return f"{'timestamp' if kind is Timestamp else 'duration'}({go_quote(str(value))})"
    return _string(value)


def _map(value: Mapping) -> str:
    for key in value:
        if kind_of(key) not in _KEYS:
            raise EvaluationError(f"error during formatting: no formatting function for map key of type {type_of(key).name}")
    entries = sorted(((_inner(key), _inner(value.find(key))) for key in value), key=itemgetter(0))
    return "{" + ", ".join(f"{key}:{content}" for key, content in entries) + "}"


_KEYS: Final = frozenset({str, bool, int, UInt})
_TEXTS: dict[type, Callable[[Any], str]] = {
    str: lambda value: value,
    bool: lambda value: "true" if value else "false",
    int: str,
    UInt: lambda value: str(int(value)),
    float: double_text,
    bytes: lambda value: value.decode(errors="replace"),
    type(None): lambda value: "null",
    CelType: lambda value: value.name,
    Timestamp: str,
    Duration: str,
    Mapping: _map,
    list: lambda value: f"[{', '.join(map(_inner, value))}]",
}


def _decimal(value: Any, precision: int) -> str:
    if value.__class__ in (int, UInt):
        return str(int(value))
    raise _misfit(MISFITS["d"], value)


def _number(value: Any, letter: str) -> float:
    if value.__class__ is float:
        return float(value)
    if value.__class__ is str and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise _misfit(MISFITS[letter], value)


def _endless(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


#: Numbers in a template that the real printer rejects.
_LARGEST_NUMBER: Final = 10_000_009
_REFUSED: Final = "%!(NOVERB)"
#: The maximum number of decimals of a double.
_MOST_DECIMALS: Final = 1100


def _format_fixed(value: Any, precision: int) -> str:
    number = _number(value, "f")
    if precision > _LARGEST_NUMBER:
        return _REFUSED
    if not abs(number) < float("inf"):
        return _endless(number)
    text = f"{number or 0.0:,.{min(precision, _MOST_DECIMALS)}f}"
    least = precision & 0xFF  # the real printer keeps it in a byte: there may be more, if they are not zero
    whole, _, decimals = text.partition(".")
    decimals = decimals[:least].ljust(least, "0") + decimals[least:].rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def _scientific(value: Any, precision: int) -> str:
    """Formats with an exponent; as in cel-go, the precision of the clause is the width."""
    number = _number(value, "e")
    if precision > _LARGEST_NUMBER:
        return _REFUSED
    if not abs(number) < float("inf"):
        return _endless(number).rjust(precision)
    mantissa, _, exponent = f"{number:.{_PRECISION}e}".partition("e")
    power = int(exponent)
    sign = "-" if power < 0 else ""
    return (f"{mantissa}×10" + f"{sign}{abs(power):02d}".translate(_RAISED)).rjust(precision)


def _format_based(letter: str) -> Callable[[Any, int], str]:
    def write(value: Any, precision: int) -> str:
        if value.__class__ in (int, UInt) or (value.__class__ is bool and letter == "b"):
            return format(int(value), letter)
        if letter in "xX" and value.__class__ in (str, bytes):
            text = (value.encode() if isinstance(value, str) else value).hex()
            return text.upper() if letter == "X" else text
        raise _misfit(MISFITS[letter], value)

    return write


_HEX: Final = "only integers, byte buffers, and strings can be formatted as hex"
_BINARY: Final = "only integers and bools can be formatted as binary"
_OCTAL: Final = "octal clause can only be used on integers"
_DECIMAL: Final = "decimal clause can only be used on integers"
_FIXED: Final = "fixed-point clause can only be used on doubles"
_SCIENTIFIC: Final = "scientific clause can only be used on doubles"
_STRING: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
)

#: Verb → the error for arguments of a wrong type.
MISFITS: Final = {"s": _STRING, "d": _DECIMAL, "f": _FIXED, "e": _SCIENTIFIC, "b": _BINARY, "x": _HEX, "X": _HEX, "o": _OCTAL}
_WRITERS: Final[dict[str, Callable[[Any, int], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _format_fixed,
    "e": _scientific,
    "b": _format_based("b"),
    "x": _format_based("x"),
    "X": _format_based("X"),
    "o": _format_based("o"),
}


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


def _join(parts: list[Any], separator: str = "") -> str:
    if parts and parts[0].__class__ is not str:
        raise no_such_overload("join(list, string)" if separator else "join(list)")
    for part in parts:
        if part.__class__ is not str:
            raise EvaluationError(f"join: invalid input: {part}")
    return separator.join(parts)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
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
    ("join", True, list): _join,
    ("join", True, list, str): _join,
    ("lowerAscii", True, str): lambda text: text.translate(_LOWER),
    ("upperAscii", True, str): lambda text: text.translate(_UPPER),
    ("replace", True, str, str, str): _replace,
    ("replace", True, str, str, str, int): _replace,
    ("split", True, str, str): _split,
    ("split", True, str, str, int): _split,
    ("substring", True, str, int): _substring,
    ("substring", True, str, int, int): _substring_to,
    ("trim", True, str): lambda text: text.strip(_SPACE),
    ("jsonpatch.escapeKey", False, str): lambda text: text.replace("~", "~0").replace("/", "~1"),
    ("strings.quote", False, str): lambda text: f'"{text.translate(_QUOTED)}"',
    ("format", True, str, list): _format_template,
}


# --- Regular expressions -----------------------------------------------------------------------------------------------
# Specified by: cel-go/common/stdlib (matches), k8s.io/apiserver/pkg/cel/library/regex.go.


def compile_pattern(pattern: str) -> Any:
    """Compiles a pattern. Raises EvaluationError with Go's error message."""
    try:
        return regexp.compile_pattern(pattern)
    except regexp.PatternError as error:
        raise EvaluationError(str(error)) from None


def _legal(pattern: str) -> Any:
    try:
        return compile_pattern(pattern)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    match = _legal(pattern).search(text)
    return match.group() if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Finds all matches like Go, which skips an empty match directly after another match."""
    found, end = [], -1
    for match in _legal(pattern).finditer(text):
        if match.end() > match.start() or match.start() != end:
            found.append(match.group())
        end = match.end()
    return found[:limit] if limit >= 0 else found


REGEX_FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("matches", True, str, str): _matches,
    ("matches", False, str, str): _matches,
    ("find", True, str, str): _find,
    ("findAll", True, str, str): _find_all,
    ("findAll", True, str, str, int): _find_all,
}


# --- Named formats -----------------------------------------------------------------------------------------------------
# Specified by: k8s.io/apiserver/pkg/cel/library/format.go.


Check = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Format(Opaque):
    """A named format; equality is that of the names."""

    type_name = "kubernetes.NamedFormat"
    name: str
    check: Check = field(compare=False)
    pattern_size: int = field(default=0, compare=False)
    """The length of its pattern, for the cost of a validation."""


def _prefix(check: Callable[[str, bool], Sequence[str]]) -> Check:
    """Returns the validator of a prefix of a name."""
    return lambda text: check(text, True)


def _reads(read: Callable[[str], object], problem: str) -> Check:
    def check(text: str) -> Sequence[str]:
        try:
            read(text)
        except (ValueError, binascii.Error, EvaluationError):
            return [problem]
        return ()

    return check


def _date(text: str) -> date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    return date.fromisoformat(text)


def _uuid(text: str) -> None:
    if not re.fullmatch(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", text, re.IGNORECASE):
        raise ValueError(text)


def _base64(text: str) -> None:
    if not text or b64decode(text, validate=True) is None:
        raise ValueError(text)


def _uri(text: str) -> Sequence[str]:
    try:
        urls.parse_request_uri(text)
    except ValueError as problem:
        return [str(problem)]
    return ()


_FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", dns_label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", dns_subdomain, 60),
    "dns1035Label": Format("DNS1035Label", dns_1035_label, 30),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix(dns_label), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix(dns_subdomain), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix(dns_1035_label), 30),
    "qualifiedName": Format("QualifiedName", label_key, 60),
    "labelValue": Format("LabelValue", label_value, 40),
    "uri": Format("URI", _uri, 1103),
    "uuid": Format("uuid", _reads(_uuid, "does not match the UUID format"), 70),
    "byte": Format("byte", _reads(_base64, "invalid base64"), 84),
    "date": Format("date", _reads(_date, "invalid date"), 71),
    "datetime": Format("datetime", _reads(parse_timestamp, "invalid datetime"), 71),
}


def _validate(named: Format, text: str) -> Optional:
    problems = list(named.check(text))
    return Optional(problems) if problems else Optional()


def _find_format(name: str) -> Optional:
    return Optional(_FORMATS[name]) if name in _FORMATS else Optional()


def _constant(named: Format) -> Callable[[], Format]:
    return lambda: named


FORMAT_FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    **{(f"format.{name}", False): _constant(named) for name, named in _FORMATS.items()},
    ("format.named", False, str): _find_format,
    ("validate", True, Format, str): _validate,
}
