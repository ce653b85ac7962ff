"""The command find: an expression of tests and actions, which is evaluated for each file of a tree.

Invariant: a file is looked at once; a directory that an action has pruned or removed is not entered.

Specified by: POSIX (find), busybox findutils/find.c.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fakekube.nodes.runtime.commands.listing import size_of
from fakekube.nodes.runtime.filesystem import BlockDevice, Device, Directory, File, Node, Place, Socket, Symlink
from fakekube.nodes.runtime.program import Command, Program, Usage
from fakekube.nodes.runtime.regular_expressions import compile_posix, glob
from fakekube.nodes.runtime.scheduling import breathe


class _Found(NamedTuple):
    """A file in the tree."""

    path: str
    """As shown, which begins with an operand."""
    place: Place
    node: Node


class _Visit(NamedTuple):
    """A file that is to be looked at."""

    path: str
    place: Place
    depth: int
    is_left: bool = False
    """Whether it is a directory whose entries have been looked at."""


#: Evaluates an expression for a file.
_Expression = Callable[[_Found], Awaitable[bool]]
#: Decides for a file.
_Test = Callable[[_Found], bool]


class _Quit(Exception):
    """The action -quit."""


@dataclass(slots=True)
class _Search:
    """One call of the command."""

    program: Program
    most: int = 1 << 30
    least: int = 0
    deep: bool = False
    """Whether the entries of a directory come before it."""
    stays: bool = False
    """Whether directories of other file systems are not entered."""
    acts: bool = False
    """Whether the expression has an action; files are printed if it has none."""
    pruned: bool = False
    """Whether the directory that was looked at last is not entered."""
    code: int = 0
    gathered: list[tuple[list[str], list[str]]] = field(default_factory=list)
    """The commands with all files, which are run at the end, and their files."""


async def _find(program: Program) -> int:
    args = list(program.args)
    tops: list[str] = []
    while args and args[0] in ("-H", "-L", "-P"):
        args.pop(0)
    while args and args[0][:1] not in ("-", "!", "("):
        tops.append(args.pop(0))
    search = _Search(program)
    expression = _Parser(search, args).parse()
    try:
        for top in tops or ["."]:
            await _walk(search, expression, top)
    except _Quit:
        pass
    for command, paths in search.gathered:
        search.code = await program.run([*command, *paths]) or search.code
    return search.code


async def _walk(search: _Search, expression: _Expression, top: str) -> None:
    program = search.program
    try:
        place = program.files.find_place(top, program.cwd, follow=False)
    except OSError as error:
        search.code = await program.complain_about(top, error)
        return
    pending = [_Visit(top, place, 0)]
    while pending:
        await breathe()
        visit = pending.pop()
        try:
            pending += await _look_at(search, expression, visit)
        except OSError as error:
            search.code = await program.complain_about(visit.path, error)


async def _look_at(search: _Search, expression: _Expression, visit: _Visit) -> Sequence[_Visit]:
    """Evaluates the expression; returns what is to be looked at next, the last one first. Raises OSError."""
    files, place = search.program.files, visit.place
    node = files.require_present(place, visit.path)
    comes_later = search.deep and isinstance(node, Directory) and not visit.is_left
    search.pruned = False
    if visit.depth >= search.least and not comes_later:
        await expression(_Found(visit.path, place, node))
    if visit.is_left or not isinstance(node, Directory) or visit.depth >= search.most or search.pruned:
        return [visit._replace(is_left=True)] if comes_later else ()
    files.require_present(place, visit.path)
    below = visit.path.rstrip("/")
    entries = [
        _Visit(f"{below}/{child.name}", child, visit.depth + 1)
        for child in reversed(files.children(place))
        if not (search.stays and isinstance(child.node, Directory) and child.node.kind)
    ]
    return [visit._replace(is_left=True), *entries] if comes_later else entries


# --- The expression ---------------------------------------------------------------------------------------------------


class _Parser:
    """Parses the words of an expression. Raises Usage."""

    def __init__(self, search: _Search, words: list[str]) -> None:
        self._search = search
        self._words = words[::-1]
        """The next word is the last one."""

    def parse(self) -> _Expression:
        """Returns the expression; it prints the files if it has no action."""
        made = self._alternatives() if self._words else _pass_all
        if self._words:
            raise Usage(f"unrecognized: {self._words[-1]}")
        return made if self._search.acts else _evaluate_all([made, self._print("\n")])

    def _alternatives(self) -> _Expression:
        made = [self._sequence()]
        while self._words and self._words[-1] in ("-o", "-or"):
            self._words.pop()
            made.append(self._sequence())
        return _evaluate_any(made)

    def _sequence(self) -> _Expression:
        made = [self._primary()]
        while self._words and self._words[-1] not in ("-o", "-or", ")"):
            if self._words[-1] in ("-a", "-and"):
                self._words.pop()
            made.append(self._primary())
        return _evaluate_all(made)

    def _primary(self) -> _Expression:
        word, is_negated = self._next("expression"), False
        while word in ("!", "-not"):
            word, is_negated = self._next("expression"), not is_negated
        made = self._operand(word)
        return _evaluate_negated(made) if is_negated else made

    def _operand(self, word: str) -> _Expression:
        if word == "(":
            made = self._alternatives()
            if self._next("(") != ")":
                raise Usage("unpaired '('")
            return made
        if word in _TESTS:
            return _evaluate_test(_TESTS[word])
        if word in _TESTS_WITH_VALUE:
            return _evaluate_test(_TESTS_WITH_VALUE[word](self._search.program, self._next(word)))
        action = _ACTIONS.get(word)
        if action is None:
            raise Usage(f"unrecognized: {word}")
        return action(self)

    def _next(self, word: str) -> str:
        if not self._words:
            raise Usage(f"{word} requires an argument")
        return self._words.pop()

    # --- Actions and options ------------------------------------------------------------------------------------------

    def _print(self, end: str) -> _Expression:
        async def act(found: _Found) -> bool:
            await self._search.program.write(found.path + end)
            return True

        self._search.acts = True
        return act

    def _delete(self) -> _Expression:
        async def act(found: _Found) -> bool:
            program = self._search.program
            if isinstance(found.node, Directory) and found.node.entries:
                self._search.code = await program.complain(f"{found.path}: Directory not empty")
                return False
            program.files.remove_place(found.place)
            return True

        self._search.acts = self._search.deep = True
        return act

    def _execute(self) -> _Expression:
        words: list[str] = []
        while (last := self._next("-exec")) not in (";", "+"):
            words.append(last)
        if not words:
            raise Usage("-exec requires an argument")
        self._search.acts = True
        if last == "+":
            paths: list[str] = []
            self._search.gathered.append((words[:-1] if words[-1] == "{}" else words, paths))

            async def gather(found: _Found) -> bool:
                paths.append(found.path)
                return True

            return gather

        async def act(found: _Found) -> bool:
            return await self._search.program.run([word.replace("{}", found.path) for word in words]) == 0

        return act

    def _prune(self) -> _Expression:
        async def act(_found: _Found) -> bool:
            self._search.pruned = True
            return True

        return act

    def _quit(self) -> _Expression:
        async def act(_found: _Found) -> bool:
            raise _Quit

        return act

    def _limit(self, option: str) -> _Expression:
        text = self._next(option)
        if not text.isdecimal():
            raise Usage(f"invalid number '{text}'")
        if option == "-maxdepth":
            self._search.most = int(text)
        else:
            self._search.least = int(text)
        return _pass_all

    def _set_deep(self) -> _Expression:
        self._search.deep = True
        return _pass_all

    def _stay(self) -> _Expression:
        self._search.stays = True
        return _pass_all


_ACTIONS: Final[Mapping[str, Callable[[_Parser], _Expression]]] = {
    "-print": lambda parser: parser._print("\n"),
    "-print0": lambda parser: parser._print("\0"),
    "-delete": _Parser._delete,
    "-exec": _Parser._execute,
    "-prune": _Parser._prune,
    "-quit": _Parser._quit,
    "-maxdepth": lambda parser: parser._limit("-maxdepth"),
    "-mindepth": lambda parser: parser._limit("-mindepth"),
    "-depth": _Parser._set_deep,
    "-xdev": _Parser._stay,
    "-mount": _Parser._stay,
    "-follow": lambda _parser: _pass_all,
}


async def _pass_all(_found: _Found) -> bool:
    return True


def _evaluate_test(test: _Test) -> _Expression:
    async def evaluate(found: _Found) -> bool:
        return test(found)

    return evaluate


def _evaluate_all(parts: Sequence[_Expression]) -> _Expression:
    if len(parts) == 1:
        return parts[0]

    async def evaluate(found: _Found) -> bool:
        for part in parts:
            await breathe()
            if not await part(found):
                return False
        return True

    return evaluate


def _evaluate_any(parts: Sequence[_Expression]) -> _Expression:
    if len(parts) == 1:
        return parts[0]

    async def evaluate(found: _Found) -> bool:
        for part in parts:
            await breathe()
            if await part(found):
                return True
        return False

    return evaluate


def _evaluate_negated(inner: _Expression) -> _Expression:
    async def evaluate(found: _Found) -> bool:
        return not await inner(found)

    return evaluate


# --- Tests ------------------------------------------------------------------------------------------------------------

_KINDS: Final[Mapping[str, type[Node]]] = {"f": File, "d": Directory, "l": Symlink, "c": Device, "b": BlockDevice, "s": Socket}
#: The bytes of the units of -size.
_UNITS: Final = {"c": 1, "w": 2, "b": 512, "k": 1024, "": 512}
#: Seconds.
_DAY, _MINUTE = 86_400, 60


def _is_empty(found: _Found) -> bool:
    node = found.node
    return not (node.entries if isinstance(node, Directory) else size_of(node)) and isinstance(node, (Directory, File))


def _names(program: Program, pattern: str, *, whole: bool = False, folds: bool = False) -> _Test:
    """Returns the test of -name, -iname, -path and -ipath."""
    expression = glob(pattern.lower() if folds else pattern)

    def matches(found: _Found) -> bool:
        shown = found.path if whole else posixpath.basename(found.path.rstrip("/")) or found.path
        return expression.fullmatch(shown.lower() if folds else shown)

    return matches


def _regex(program: Program, pattern: str) -> _Test:
    expression = compile_posix(pattern, extended=False, line=True)
    return lambda found: expression.match(found.path) is not None


def _type(program: Program, letter: str) -> _Test:
    kind = _KINDS.get(letter)
    if kind is None:
        raise Usage(f"unrecognized: {letter}")
    return lambda found: isinstance(found.node, kind)


def _number(text: str) -> Callable[[float], bool]:
    """Parses `+n`, `-n` and `n`: more, less and as many."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal():
        raise Usage(f"invalid number '{text}'")
    number = int(digits)
    match text[:1]:
        case "+":
            return lambda value: value > number
        case "-":
            return lambda value: value < number
    return lambda value: value == number


def _size(program: Program, text: str) -> _Test:
    digits = text.rstrip("cwbk")
    unit = _UNITS.get(text[len(digits) :])
    if unit is None:
        raise Usage(f"invalid number '{text}'")
    fits = _number(digits)
    return lambda found: fits(-(-size_of(found.node) // unit))


def _age(program: Program, text: str, *, unit: int) -> _Test:
    fits = _number(text)
    return lambda found: fits((program.files.now() - found.node.mtime) // unit)


def _newer(program: Program, path: str) -> _Test:
    try:
        moment = program.files.node(path, program.cwd).mtime
    except OSError as error:
        raise Usage(f"{path}: {error.strerror}") from None
    return lambda found: found.node.mtime > moment


def _permissions(program: Program, text: str) -> _Test:
    if not re.fullmatch("[-/+]?[0-7]+", text):
        raise Usage(f"invalid mode '{text}'")
    mask = int(text.lstrip("-/+"), 8)
    match text[0]:
        case "-":
            return lambda found: found.node.mode & mask == mask
        case "/" | "+":
            return lambda found: not mask or bool(found.node.mode & mask)
    return lambda found: found.node.mode & 0o7777 == mask


def _owner(program: Program, text: str, *, file: str) -> _Test:
    """Returns the test of -user and -group; names are those in a file."""
    lines = (line.split(":") for line in program.read_file(file).decode("utf-8", "replace").splitlines())
    ids = {fields[0]: fields[2] for fields in lines if len(fields) > 2}
    number = ids.get(text, text)
    if not number.isdecimal():
        raise Usage(f"unknown {'user' if file == '/etc/passwd' else 'group'} {text}")
    if file == "/etc/passwd":
        return lambda found: found.node.uid == int(number)
    return lambda found: found.node.gid == int(number)


_TESTS: Final[Mapping[str, _Test]] = {
    "-empty": _is_empty,
    "-executable": lambda found: bool(found.node.mode & 0o111),
    "-true": lambda _found: True,
    "-false": lambda _found: False,
}

_TESTS_WITH_VALUE: Final[Mapping[str, Callable[[Program, str], _Test]]] = {
    "-name": _names,
    "-iname": lambda program, text: _names(program, text, folds=True),
    "-path": lambda program, text: _names(program, text, whole=True),
    "-ipath": lambda program, text: _names(program, text, whole=True, folds=True),
    "-regex": _regex,
    "-type": _type,
    "-size": _size,
    "-mtime": lambda program, text: _age(program, text, unit=_DAY),
    "-mmin": lambda program, text: _age(program, text, unit=_MINUTE),
    "-newer": _newer,
    "-perm": _permissions,
    "-user": lambda program, text: _owner(program, text, file="/etc/passwd"),
    "-group": lambda program, text: _owner(program, text, file="/etc/group"),
}

#: Name → command.
COMMANDS: Final[dict[str, Command]] = {"find": _find}
