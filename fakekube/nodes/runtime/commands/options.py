"""Parses the options of commands."""

from __future__ import annotations

import getopt
from collections.abc import Sequence

from fakekube.nodes.runtime.program import Program, Usage

__all__ = ["options", "size"]


def options(
    program: Program, short: str, long: Sequence[str] = (), *, mixed: bool = True, aliases: dict[str, str] | None = None
) -> tuple[dict[str, str], list[str]]:
    """Returns the options, by letter or name without dashes, and the operands.

    Args:
        program: whose arguments are read.
        short, long: as for `getopt`.
        mixed: options may come after operands.
        aliases: long options that mean the same as another one.

    Raises:
        Usage: an option is unknown, or lacks its argument.
    """
    read = getopt.gnu_getopt if mixed else getopt.getopt
    try:
        found, operands = read(list(program.args), short, list(long))
    except getopt.GetoptError as error:
        unknown = "not recognized" in error.msg
        text = f"unrecognized option: {error.opt}" if unknown else f"option requires an argument: {error.opt}"
        raise Usage(text) from None
    names = aliases or {}
    return {names.get(name.lstrip("-"), name.lstrip("-")): value for name, value in found}, list(operands)


_UNITS = {"b": 512, "k": 1024, "K": 1024, "kB": 1000, "M": 1024**2, "MB": 1000**2, "G": 1024**3, "GB": 1000**3}


def size(text: str) -> int:
    """Parses a number with a unit, such as 10k. Raises Usage."""
    digits = text.rstrip("bkKMGB")
    try:
        return int(digits) * _UNITS.get(text[len(digits) :], 1)
    except ValueError:
        raise Usage(f"invalid number '{text}'") from None
