"""Makes the screenshots of docs/page.md and the README: `FAKEKUBE_SCREENSHOT=1 pytest tests/page/test_screenshot.py` writes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fakekube import Cluster
from tests.page.rows import wait
from tests.unit.seen import deployment

DOCS = Path(__file__).parents[2] / "docs"
#: Name of an image → the address of its view.
VIEWS = {
    "page": "#/timeline",
    "page-history": "#/objects/deployments.apps/default/web?tab=history&path=spec.replicas",
    "page-controls": "#/controls",
}
#: Name of an image → what must be there before it is taken.
READY = {
    "page": "document.querySelector('.finding') !== null && document.querySelectorAll('.grid-body .grid-row').length > 5",
    "page-history": "document.querySelectorAll('table.versions tbody tr').length > 5",
    "page-controls": "document.querySelectorAll('[role=switch]').length > 5",
}


def test_the_screenshots_of_the_documentation(open_page: Callable[..., Any], tmp_path: Path, stack: ExitStack) -> None:
    cluster = stack.enter_context(Cluster())
    cluster.keep_changes()
    users = [cluster.as_user(name, groups=["system:masters"]) for name in ("my-operator", "autoscaler")]
    cluster.create(deployment("web", 3))
    cluster.settle()
    for number in range(6):
        users[number % 2].patch("deployments", "web", {"spec": {"replicas": (5, 3)[number % 2]}})
        cluster.settle()
    cluster.mark("scaled three times")
    page = open_page(cluster.page_url, viewport={"width": 1280, "height": 720})
    folder = DOCS if os.environ.get("FAKEKUBE_SCREENSHOT") else tmp_path
    for name, address in VIEWS.items():
        page.evaluate("(hash) => { location.hash = hash; }", address)
        wait(page, READY[name])
        if name == "page":
            page.click("text=All")
        path = folder / f"{name}.png"
        page.screenshot(path=path)
        assert path.stat().st_size > 20_000
        assert (DOCS / f"{name}.png").exists()
