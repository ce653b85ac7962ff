"""Every kind outside the core group: minimal, full and wrong objects, changes and subresources, as the real server answered.

The stories lie in `fixtures/kinds`, one a resource (see tests/unit/stories.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fakekube.apimachinery.features import emulation
from fakekube.apiserver.registry import builtin
from tests.unit import stories

FOLDER = Path(__file__).parents[3] / "fixtures" / "kinds"
STORIES = sorted(FOLDER.glob("*.jsonl"))

#: What has stories elsewhere: events and reviews beside this test, definitions with the custom resources.
ELSEWHERE = {"events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "apiextensions.k8s.io"}


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_kind_answers_as_recorded(path: Path) -> None:
    found = stories.differences_of_fresh_cluster(path)
    assert not found, "\n".join(found)


def test_every_stored_kind_has_a_story() -> None:
    recorded = {path.stem for path in STORIES}
    stored = {
        resource.plural if (resource.group, resource.version) != ("autoscaling", "v1") else f"{resource.plural}_v1"
        for resource in builtin.resources(emulation(stories.RECORDED_MINOR))
        if resource.group and resource.group not in ELSEWHERE
    }
    assert stored <= recorded
