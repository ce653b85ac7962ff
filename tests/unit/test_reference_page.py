"""docs/reference.md is what the docstrings of the public names say."""

from __future__ import annotations

import fakekube
from tests.unit import reference_page


def test_page_is_current() -> None:
    page = reference_page.PAGE.read_text(encoding="utf-8")
    assert page == reference_page.render(), "run `python tests/unit/reference_page.py --write`"


def test_every_public_name_has_a_section_with_a_text() -> None:
    page = reference_page.PAGE.read_text(encoding="utf-8")
    for name in fakekube.__all__:
        if not name.startswith("__"):
            _, heading, rest = page.partition(f"\n## {name}\n")
            assert heading, name
            assert len(rest.partition("\n## ")[0].split()) > 3, name
