"""Parses command lines as Go programs do.

A flag is `--name=value`, `--name value`, `-name value` (Go's flag package, in old etcd), `-nvalue` for one letter, or a bare
`--name` for a switch; underscores count as dashes. A switch takes the next argument only if it is true or false. An unknown flag
takes the next argument if it is not a flag. Repeated flags keep all their values, in order.

Invariant: every argument is read exactly once.

Specified by: github.com/spf13/pflag (flag.go, bool.go, string_slice.go) and k8s.io/component-base/cli/flag
(WordSepNormalizeFunc).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from fakekube.base.golang.strconv import TRUE_TEXTS, go_quote
from fakekube.base.golang.timestamps import parse_duration

_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_NANOSECONDS = 1e9


class FlagError(ValueError):
    """A flag has no value or an invalid one; the text is that of pflag."""


def parse(arguments: Sequence[str], *, switches: Collection[str], known: Collection[str]) -> dict[str, list[str]]:
    """Returns the values of each flag, by its name without dashes. Raises FlagError; see `split`."""
    return split(arguments, switches=switches, known=known)[0]


def split(
    arguments: Sequence[str], *, switches: Collection[str], known: Collection[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Returns the values of each flag, by its name without dashes, and the arguments that are not flags.

    Args:
        arguments: the command line, without the program.
        switches: the names of boolean flags.
        known: the names of flags that take a value.

    Raises FlagError if the last argument is a flag that needs a value.
    """
    found: dict[str, list[str]] = {}
    words: list[str] = []
    rest = list(reversed(arguments))
    while rest:
        argument = rest.pop()
        if argument == "--":
            words += reversed(rest)
            break
        if len(argument) < 2 or not argument.startswith("-"):
            words.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if argument[1] in known and argument[2:3] not in ("", "=") and name not in known and name not in switches:
            name, value = argument[1], argument[2:]
        elif not equals:
            value = _following(name, rest, switches, known)
        found.setdefault(name, []).append(value)
    return found, words


def _following(name: str, rest: list[str], switches: Collection[str], known: Collection[str]) -> str:
    """Returns the value of a flag without `=`, and removes it from the following arguments if it is one of them."""
    following = rest[-1] if rest else None
    if name in switches:
        return rest.pop() if following in TRUE_TEXTS | _FALSE else "true"
    if name in known:
        if following is None:
            raise FlagError(f"flag needs an argument: --{name}")
        return rest.pop()
    return "true" if following is None or following.startswith("-") else rest.pop()


# ---------------------------------------------------------------- values


def boolean(name: str, text: str) -> bool:
    """Parses a boolean as strconv.ParseBool does. Raises FlagError."""
    if text in TRUE_TEXTS:
        return True
    if text in _FALSE:
        return False
    raise _invalid(name, text, f"strconv.ParseBool: parsing {go_quote(text)}: invalid syntax")


def integer(name: str, text: str) -> int:
    """Parses a decimal integer. Raises FlagError."""
    try:
        return int(text)
    except ValueError:
        raise _invalid(name, text, f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax") from None


def fraction(name: str, text: str) -> float:
    """Parses a number. Raises FlagError."""
    try:
        return float(text)
    except ValueError:
        raise _invalid(name, text, f"strconv.ParseFloat: parsing {go_quote(text)}: invalid syntax") from None


def seconds(name: str, text: str) -> float:
    """Parses a Go duration, and returns seconds. Raises FlagError."""
    try:
        return parse_duration(text) / _NANOSECONDS
    except ValueError as error:
        raise _invalid(name, text, str(error)) from None


def values(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the items of a flag that may be repeated and contain several items, separated by commas."""
    return tuple(part for text in texts for part in text.split(",") if part)


def mapping(name: str, texts: Sequence[str]) -> dict[str, str]:
    """Returns the pairs of flags such as `A=true,B=false`. Raises FlagError for an item without `=`."""
    return dict(_pairs(name, texts))


def _pairs(name: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for part in values(texts):
        key, equals, value = part.strip().partition("=")
        if not equals:
            raise _invalid(name, part, f"missing = in {go_quote(part)}")
        yield key.strip(), value.strip()


def read_value(name: str, kind: str, texts: Sequence[str]) -> Any:
    """Parses the value of a flag whose dataclass field has the annotation `kind`: all values for a sequence, else the last one.

    Raises FlagError.
    """
    if "Sequence" in kind:
        return values(texts)
    reader = _READERS.get(kind.partition(" ")[0])
    return texts[-1] if reader is None else reader(name, texts[-1])


_READERS: Mapping[str, Callable[[str, str], Any]] = {"bool": boolean, "int": integer, "float": seconds, "Fraction": fraction}


def _invalid(name: str, text: str, reason: str) -> FlagError:
    return FlagError(f'invalid argument {go_quote(text)} for "--{name}" flag: {reason}')
