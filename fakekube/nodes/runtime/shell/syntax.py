"""The syntax tree of shell programs.

Specified by: POSIX.1-2017, Shell & Utilities, 2.10 (Shell Grammar).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Literal:
    """Literal text."""

    text: str
    quoted: bool = False


@dataclass(slots=True, frozen=True)
class Parameter:
    """`$name`, or `${name op word}`."""

    name: str
    quoted: bool = False
    operator: str = ""
    """"" or one of `:- - := = :? ? :+ + # ## % %% / // : length`."""
    word: Word = ()
    other: Word = ()
    """The replacement of `/`, the length of `:`."""


@dataclass(slots=True, frozen=True)
class Substitution:
    """`$(script)`."""

    script: Script
    quoted: bool = False


@dataclass(slots=True, frozen=True)
class Arithmetic:
    """`$((expression))`."""

    expression: Word
    quoted: bool = False


Part = Literal | Parameter | Substitution | Arithmetic
Word = tuple[Part, ...]


@dataclass(slots=True, frozen=True)
class Redirect:
    """`2>file`, `<file`, `2>&1`, `<<END`."""

    descriptor: int
    operator: str
    """One of `< > >> >| <> <& >& <<`; the target of `<<` is the text of the here-document."""
    target: Word


@dataclass(slots=True, frozen=True)
class Simple:
    """Assignments and a command with its arguments."""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: Sequence[Redirect] = ()


@dataclass(slots=True, frozen=True)
class Group:
    """`{ script; }`."""

    body: Script
    redirects: Sequence[Redirect] = ()


@dataclass(slots=True, frozen=True)
class Subshell:
    """`( script )`."""

    body: Script
    redirects: Sequence[Redirect] = ()


@dataclass(slots=True, frozen=True)
class If:
    """`if … then … elif … else … fi`."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None
    redirects: Sequence[Redirect] = ()


@dataclass(slots=True, frozen=True)
class Loop:
    """`while … do … done`, or `until`."""

    condition: Script
    body: Script
    until: bool
    redirects: Sequence[Redirect] = ()


@dataclass(slots=True, frozen=True)
class For:
    """`for name in words; do … done`."""

    name: str
    words: tuple[Word, ...] | None
    """None for the positional parameters."""
    body: Script
    redirects: Sequence[Redirect] = ()


@dataclass(slots=True, frozen=True)
class Case:
    """`case word in pattern) … ;; esac`."""

    word: Word
    branches: tuple[tuple[tuple[Word, ...], Script], ...]
    redirects: Sequence[Redirect] = ()


@dataclass(slots=True, frozen=True)
class Function:
    """`name() { … }`."""

    name: str
    body: Command
    redirects: Sequence[Redirect] = ()


Command = Simple | Group | Subshell | If | Loop | For | Case | Function


@dataclass(slots=True, frozen=True)
class Pipeline:
    """Commands that are connected by pipes."""

    commands: tuple[Command, ...]
    negated: bool = False


@dataclass(slots=True, frozen=True)
class AndOr:
    """Pipelines joined by `&&` and `||`."""

    first: Pipeline
    rest: tuple[tuple[str, Pipeline], ...] = ()
    background: bool = False


@dataclass(slots=True, frozen=True)
class Script:
    """Lists of commands, one after the other."""

    items: tuple[AndOr, ...]
