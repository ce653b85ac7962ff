"""Writes docs/rules.md from the rule tables: `python -m tests.unit.apis.rule_pages`.

A row is proven by the recordings in which the real server names its field, or one in it, of a kind of the same group, as the cause of a refusal.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fakekube.apis
from fakekube.apis.validation.rules import NEVER, Change, Changes, Rule, Rules
from tests.differential.recordings import RECORDINGS

PAGE = Path(__file__).parents[3] / "docs" / "rules.md"
_INDEX = re.compile(r"\[[^\]]*\]")

HEAD = """# Rules

Generated from the rule tables of `fakekube/apis` by `python -m tests.unit.apis.rule_pages`; a test holds it current. What no table can
say is code with the name of the real function: those rules are not listed here, and every text of them stands in a recording
(`tests/unit/rule_texts.py`).

A rule holds in all minors unless its row says since when, until when (the first minor without it) or by which feature gate (`!` before it: while
the gate is off). The last column names the recordings in which the real server refuses the field.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, for the page."""

    package: str
    table: Rules | Changes
    row: Rule | Change

    @property
    def proofs(self) -> list[str]:
        """The recordings that show the row."""
        name = self.row.field.rpartition(".")[2]
        return sorted(_proofs().get((self.package, name), ())) if name else []

    def __str__(self) -> str:
        row = self.row
        since, until = f"1.{row.since}" if row.since else "", f"1.{row.until}" if row.until < NEVER else ""
        field = f"`{row.field}`" if row.field else "(whole)"
        words = row.check.words.replace("|", "\\|")
        return f"| {field} | {words} | {since} | {until} | {row.gate} | {', '.join(self.proofs)} |"


def tables() -> Iterator[tuple[str, str, Rules | Changes]]:
    """Yields every table with the group and the module that it stands in."""
    seen: set[int] = set()
    for info in pkgutil.walk_packages(fakekube.apis.__path__, "fakekube.apis."):
        module = importlib.import_module(info.name)
        package = info.name.split(".")[2]
        for value in vars(module).values():
            for table in value.values() if isinstance(value, dict) else (value,):
                if isinstance(table, Rules | Changes) and id(table) not in seen:
                    seen.add(id(table))
                    yield package, info.name.removeprefix("fakekube.apis."), table


def rows() -> Iterator[Row]:
    """Yields the rows of all tables."""
    return (Row(package, table, row) for package, _, table in tables() for row in table.rows)


@functools.cache
def _proofs() -> dict[tuple[str, str], set[str]]:
    """(group, name of a field) → the recordings in which it, or a field in it, is the cause of a refusal."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, recording in RECORDINGS.items():
        if "rules/" not in name:
            continue
        for exchanges in recording.read().values():
            for exchange in exchanges:
                for package, field in _causes(exchange.get("body")):
                    found[package, field].add(name)
    return found


def _causes(body: Any) -> Iterator[tuple[str, str]]:
    details = body.get("details") if isinstance(body, dict) else None
    if not isinstance(details, dict):
        return
    group = details.get("group", "").partition(".")[0]
    package = "core" if group in ("", "discovery") else group
    for cause in details.get("causes") or ():
        for part in _INDEX.sub("", cause.get("field", "")).split("."):
            yield package, part


def page() -> str:
    """Returns the page."""
    lines = [HEAD]
    for package, module, table in sorted(tables(), key=lambda one: (one[1], one[2].struct, isinstance(one[2], Changes))):
        kind = "Changes of " if isinstance(table, Changes) else ""
        lines.append(f"## {kind}{table.struct}\n\n`{table.function}`, in `fakekube/apis/{module.replace('.', '/')}.py`\n")
        lines.append("| field | rule | since | until | gate | shown by |\n|---|---|---|---|---|---|")
        lines += [str(Row(package, table, row)) for row in table.rows]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
