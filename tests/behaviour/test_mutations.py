"""Valid objects of every kind with something wrong in them: nothing breaks; and with a server at --target, both say the same.

The objects are those of the recorded stories. All requests are dry runs. What a server's own controllers do between two
requests can make a difference; what differs is asked again before it counts.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.behaviour.conftest import Api, Reply

ROOT = Path(__file__).parents[2]
STORIES = (*ROOT.glob("fixtures/kinds/*.jsonl"), *ROOT.glob("tests/unit/resources/stories/*.jsonl"))
ODD: list[Any] = [
    None,
    "",
    "x",
    "A b",
    "-1",
    0,
    -1,
    1.5,
    2**40,
    True,
    [],
    {},
    [""],
    {"": ""},
    "0" * 300,
    "1Gi",
    "2026-01-01T00:00:00Z",
]
_CHOSEN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b10\.0\.\d+\.\d+\b|20\d\d-\d\d-\d\dT[\d:.]+Z")


@cache
def valid() -> list[tuple[str, Any]]:
    """Path and body of what was created in the stories."""
    found = []
    for story in sorted(STORIES):
        for line in story.read_text(encoding="utf-8").splitlines():
            step = json.loads(line.replace("$NS", "default"))
            method, path, body = (*step.get("do", ("", "", None)), None)[:3]
            if method == "POST" and step["code"] == 201 and isinstance(body, dict) and "?" not in path:
                found.append((path, body))
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in items:
        yield (*path, key)
        yield from places(member, (*path, key))


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, Any]:
    path, body = draw(st.sampled_from(valid()))
    body = copy.deepcopy(body)
    for _ in range(draw(st.integers(1, 2))):
        *parents, last = draw(st.sampled_from(list(places(body)) or [("metadata",)]))
        holder = body
        for key in parents:
            holder = holder[key]
        if draw(st.booleans()) and isinstance(holder, dict):
            holder.pop(last, None)
        else:
            holder[last] = copy.deepcopy(draw(st.sampled_from(ODD)))  # into which the next one may go
    return path, body


def comparable_error(reply: Reply) -> tuple[int, str, set[str]]:
    """Status, message and causes; causes are compared without order."""
    answer = reply.json if reply.status >= 400 else {}
    causes = (answer.get("details") or {}).get("causes") or ()
    masked = [_CHOSEN.sub("*", json.dumps(one, sort_keys=True)) for one in causes]
    message = answer.get("message", "") if len(masked) < 2 else ""
    return reply.status, _CHOSEN.sub("*", message), set(masked)


@settings(suppress_health_check=list(HealthCheck))
@given(request=mutated())
def test_mutated_objects_cause_no_server_error(request: tuple[str, Any], own: Api, other: Api | None) -> None:
    path, body = request
    ours = comparable_error(own.post(path, body, {"dryRun": "All"}))
    assert ours[0] < 500
    if other is not None and comparable_error(other.post(path, body, {"dryRun": "All"})) != ours:
        assert comparable_error(own.post(path, body, {"dryRun": "All"})) == comparable_error(
            other.post(path, body, {"dryRun": "All"})
        )


@pytest.fixture(scope="module")
def own() -> Iterator[Api]:
    from fakekube import Cluster

    with Cluster(profile="apiserver") as cluster:
        yield Api(cluster.url)


@pytest.fixture(scope="module")
def other(request: pytest.FixtureRequest) -> Api | None:
    """The server of --target."""
    target = request.config.getoption("--target")
    return Api(target) if target else None
