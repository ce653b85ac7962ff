"""The syntax tree of shell programs, and which of them need nothing of the image that they run in.

Specified by: POSIX.1-2017, Shell & Utilities, 2.10 (Shell Grammar).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final


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


#: Commands whose effect does not depend on files or other programs.
_INDEPENDENT: Final = frozenset(
    {
        *(
            ":",
            "[",
            "break",
            "continue",
            "date",
            "echo",
            "exit",
            "export",
            "expr",
            "false",
            "kill",
            "let",
            "local",
            "printf",
            "read",
        ),
        *("readonly", "return", "seq", "set", "shift", "sleep", "test", "trap", "true", "umask", "unset", "usleep", "wait"),
    }
)
_READS_FILE: Final = frozenset({"<", "<>"})
#: The operators of `test` that ask for files.
_TESTS_FILE: Final = frozenset({*(f"-{letter}" for letter in "bcdefghkLprsSuwx"), "-nt", "-ot", "-ef"})


def is_independent(words: Sequence[str]) -> bool:
    """Reports whether a command does the same in every image: it reads no files and has no arguments that name some."""
    name = words[0].rpartition("/")[2] if words else ""
    if name == "sleep":
        return not words[-1].startswith("inf")
    return name in _INDEPENDENT and (name not in ("[", "test") or _TESTS_FILE.isdisjoint(words))


def needs_image(script: Script) -> bool:
    """Reports whether a program uses files or programs of the image that it runs in."""
    own = {one.name for one in _walk(script) if isinstance(one, Function)}
    return any(
        (isinstance(one, Redirect) and one.operator in _READS_FILE and _text(one.target) != "/dev/null")
        or (isinstance(one, Simple) and _needs_image(one, own))
        for one in _walk(script)
    )


def _needs_image(command: Simple, own: set[str]) -> bool:
    words = [_text(one) for one in command.words]
    if words and words[0] in own:
        return False
    while words and words[0] in ("exec", "command", "builtin"):
        words = words[1:]
    return bool(words) and not is_independent(words)


def _text(word: Word) -> str:
    """Returns the literal text of a word; variables and substitutions are `$`."""
    return "".join(part.text if isinstance(part, Literal) else "$" for part in word)


def process_name(commands: Sequence[Command]) -> str:
    """Returns what ps shows of a process that a shell starts for commands: a command of literal words, or else the shell."""
    words = commands[0].words if len(commands) == 1 and isinstance(commands[0], Simple) else ()
    literal = words and all(isinstance(part, Literal) for word in words for part in word)
    return " ".join(map(_text, words)) if literal else "sh"


def _walk(node: Any) -> Iterator[Any]:
    """Yields all nodes of a tree."""
    if isinstance(node, tuple | list):
        for one in node:
            yield from _walk(one)
    elif is_dataclass(node):
        yield node
        for field in fields(node):
            yield from _walk(getattr(node, field.name))
