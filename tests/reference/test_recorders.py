"""Every fixture can be recorded again, and docs/development.md says how."""

from __future__ import annotations

import re

from fakekube.apimachinery.data import RELEASES
from tests.reference import facts
from tests.reference.__main__ import RECORDERS, ROOT

RECORDED = ROOT / "fixtures" / "recorded"
PAGE = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")


def test_every_fixture_has_a_recorder() -> None:
    recorded = {path for recorder in RECORDERS.values() for path in recorder.paths()}
    recorded |= {facts.archive_of(minor) for minor in RELEASES}
    recorded |= set(RECORDED.rglob("*"))  # held to its recordings by the tests of the differential player
    recorded |= set((ROOT / "fixtures" / "page-vendor").rglob("*"))  # makes the vendored modules of the page
    assert {path for path in (ROOT / "fixtures").rglob("*") if path.is_file()} <= recorded


def test_every_recorder_has_files() -> None:
    assert [name for name, recorder in RECORDERS.items() if not recorder.paths()] == []


def test_no_file_has_two_recorders() -> None:
    paths = [path for recorder in RECORDERS.values() for path in recorder.paths()]
    assert len(paths) == len(set(paths))


def test_development_page_names_every_recorder() -> None:
    commands = " ".join(line for line in PAGE.splitlines() if "tests.reference record" in line)
    assert set(RECORDERS) <= set(re.findall(r"[\w-]+", commands))
