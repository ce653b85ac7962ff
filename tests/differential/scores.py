"""The table of expected scores: how much of each recording fakekube answers as the reference did.

`fixtures/recorded/scores.json` is the table, one line a recording. `test_recorded.py` holds fakekube to it, docs/fidelity.md
shows it; `python -m tests.differential scores --write` writes both anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from tests.differential.comparison import Score
from tests.differential.life import recordings as lives
from tests.differential.recordings import FOLDER

TABLE = FOLDER / "scores.json"
PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"
_ROWS = re.compile(r"(?<=<!-- scores -->\n).*?(?=<!-- end of scores -->)", re.S)

Expected = dict[str, int]
"""`identical` of `exchanges` (`in_order`: members included), and `identical_scenarios` of `scenarios`."""


def figures(score: Score) -> Expected:
    """What the table says of a score."""
    return {
        "identical": score.identical, "in_order": score.in_order, "exchanges": score.exchanges,
        "identical_scenarios": score.identical_scenarios, "scenarios": score.scenarios,
    }  # fmt: skip


def life_figures(score: lives.Score) -> Expected:
    """The same of a score of a living cluster: `dumps` take the place of exchanges, and events count apart."""
    return {
        "identical": score.identical, "dumps": score.dumps, "identical_events": score.identical_events, "events": score.events,
        "identical_scenarios": score.identical_scenarios, "scenarios": score.scenarios,
    }  # fmt: skip


def read() -> dict[str, Expected]:
    """The table."""
    table: dict[str, Expected] = json.loads(TABLE.read_text())
    return table


def write(table: Mapping[str, Expected]) -> None:
    """Replace the table, and the rows of the page."""
    rows = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in table.items()]
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    PAGE.write_text(_ROWS.sub(lambda _: page_rows(table), PAGE.read_text()))


def shown_rows() -> str:
    """The rows that the page has now."""
    found = _ROWS.search(PAGE.read_text())
    return found[0] if found else ""


def page_rows(table: Mapping[str, Expected]) -> str:
    """The rows of the page."""
    exchanges = [
        (name, _of(row, "identical", "exchanges"), _of(row, "identical_scenarios", "scenarios"))
        for name, row in table.items()
        if "exchanges" in row
    ]
    states = [
        (
            name,
            _of(row, "identical", "dumps"),
            _of(row, "identical_events", "events"),
            _of(row, "identical_scenarios", "scenarios"),
        )
        for name, row in table.items()
        if "dumps" in row
    ]
    return "\n".join((
        _table(("recording", "identical exchanges", "identical scenarios"), exchanges),
        _table(("living cluster", "identical states", "identical events", "identical scenarios"), states),
    ))  # fmt: skip


def _of(row: Expected, part: str, whole: str) -> str:
    return f"{row[part]:,} of {row[whole]:,}"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n".replace("| --- ", "|---").replace("| ---|", "|---|") for line in lines)
