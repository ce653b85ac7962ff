"""Which texts of rules no recorded answer and no test shows: `python tests/unit/rule_texts.py`.

A text is a literal of at least 14 characters with a space in it (of an f-string, or of a template with `{}`, its longest part)
in the modules of rules. It is shown if it stands in tests/ or fixtures/ (archives unpacked, without the collected facts). The
match is by text, so it errs on fragments, in both directions.

`rule_texts.json` beside this file holds the texts that are not shown, each with the reason; it can only get shorter.
"""

from __future__ import annotations

import ast
import gzip
import json
import lzma
import re
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import re2

PROJECT = Path(__file__).parents[2]
EXCEPTIONS = Path(__file__).with_suffix(".json")
ROOMS = ("apis", "apiextensions", "admission")
SHORTEST = 14
ESCAPES = (('\\\\\\"', '"'), ('\\"', '"'), ("\\u003e", ">"), ("\\u003c", "<"), ("\\u0026", "&"), ("\\'", "'"), ("\\\\", "\\"))
#: Functions of tables → the arguments that are no messages (apis/validation/rules.py).
WORDS = {"rules": (0, 1), "changes": (0, 1), "form": (1,), "Check": (0,), "ChangeCheck": (0,), "says": (0,)}
_PLACEHOLDER = re.compile(r"\{\w*\}")


@dataclass(frozen=True, slots=True, order=True)
class Text:
    """A text of a rule, and where it stands."""

    module: str
    text: str


def texts() -> Iterator[Text]:
    """Yields the texts of all rules."""
    for path in sorted(PROJECT.joinpath("fakekube").rglob("*.py")):
        if any(part in ROOMS for part in path.relative_to(PROJECT / "fakekube").parts):
            for literal in _literals(ast.parse(path.read_text(encoding="utf-8"))):
                part = max(_PLACEHOLDER.split(literal), key=len).strip()
                if len(part) >= SHORTEST and " " in part:
                    yield Text(str(path.relative_to(PROJECT)), part)


def _literals(tree: ast.Module) -> Iterator[str]:
    """Yields the literals of a module, without docstrings and what tables of rules say for docs/rules.md."""
    nodes = list(ast.walk(tree))
    skipped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WORDS:
            said = [
                part for position in WORDS[node.func.id] if position < len(node.args) for part in ast.walk(node.args[position])
            ]
            skipped.update(id(part) for part in said if isinstance(part, ast.Constant | ast.JoinedStr))
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
            if id(node) in skipped:
                continue
            parts = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
            yield max(parts, key=len, default="")
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def missing() -> list[Text]:
    """Returns the texts that nothing shows, in order."""
    wanted = set(texts())
    left = {text.text.encode() for text in wanted}
    files = [_without_escapes(evidence).encode() for evidence in _evidence()]
    # One pass for all texts; it passes over one that begins within another, or is a part of it. Those few are looked for one by one.
    longest_first = b"|".join(re2.escape(text) for text in sorted(left, key=len, reverse=True))
    pattern = re2.compile(longest_first, options=_options())
    left -= {found for file in files for found in pattern.findall(file)}
    absent = {text for text in left if not any(text in file for file in files)}
    return sorted(text for text in wanted if text.text.encode() in absent)


def _options() -> re2.Options:
    """Returns options with memory for the automaton of all texts."""
    options = re2.Options()
    options.max_mem = 1 << 28
    return options


def _without_escapes(text: str) -> str:
    for escaped, plain in ESCAPES:
        if escaped in text:
            text = text.replace(escaped, plain)
    return text


def _evidence() -> Iterator[str]:
    """Yields what each file of the tests and fixtures says."""
    for path in [path for room in ("fixtures", "tests") for path in PROJECT.joinpath(room).rglob("*") if path.is_file()]:
        if "facts" in path.parts or path == EXCEPTIONS:
            continue
        if path.name.endswith((".tar.gz", ".tar.xz")):
            with tarfile.open(path) as archive:
                for member in archive:
                    file = archive.extractfile(member)
                    if file is not None:
                        yield file.read().decode(errors="replace")
        elif path.suffix in (".gz", ".xz"):
            opened = gzip.open if path.suffix == ".gz" else lzma.open
            with opened(path, "rt", encoding="utf-8", errors="replace") as text:
                yield str(text.read())
        elif path.suffix in (".py", ".json", ".jsonl", ".yaml", ".txt", ".go"):
            yield path.read_text(encoding="utf-8", errors="replace")


def exceptions() -> dict[str, str]:
    """Returns the texts that nothing need show, with the reasons."""
    found: dict[str, str] = json.loads(EXCEPTIONS.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    absent, excused = missing(), exceptions()
    for one in absent:
        print(f"{one.module}: {one.text!r}{' (excused)' if one.text in excused else ''}")
    print(f"rule texts: {len(absent)} of {len(set(texts()))} in no test or fixture")
    sys.exit(any(one.text not in excused for one in absent))
