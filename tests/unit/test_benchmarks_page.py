"""docs/benchmarks.md shows kept figures."""

from __future__ import annotations

import json
from pathlib import Path

from tests.benchmarks.__main__ import RESULTS, as_markdown, compare

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def test_the_table_is_that_of_a_commit_whose_figures_are_kept() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [path for path in RESULTS.glob("*.json") if as_markdown(path) in page]


def test_what_has_become_slower_is_told(tmp_path: Path) -> None:
    """Ratios are compared where both runs have them, and rates the other way round."""
    before = [
        {"name": "get", "unit": "ms", "figures": [1.0, 4.0]},
        {"name": "events", "unit": "1/s", "figures": [100.0, 50.0]},
        {"name": "CPU", "unit": "us", "figures": [100.0]},
    ]
    now = [
        {"name": "get", "unit": "ms", "figures": [2.0, 8.0]},
        {"name": "events", "unit": "1/s", "figures": [50.0, 50.0]},
        {"name": "CPU", "unit": "us", "figures": [109.0]},
        {"name": "new", "unit": "us", "figures": [1.0]},
    ]
    file = tmp_path / "before.json"
    file.write_text(json.dumps({"about": {}, "rows": before}))
    assert compare(now, file) == ["events: 2.00 times"]
