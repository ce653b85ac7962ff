"""Bodies in which bytes were changed at random, and how the real server refuses them.

`fixtures/bodies` holds a recorded answer of 1.36 for each sort of mistake that turned up among thousands of such bodies.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.conftest import Api

FOLDER = Path(__file__).parents[2] / "fixtures" / "bodies"


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def gated_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that speaks CBOR, if the one that is given does."""
    target = request.config.getoption("--target")
    if target:
        yield target
        return
    from fakekube import Cluster

    with Cluster(version="1.36", profile="apiserver", feature_gates={"CBORServingAndStorage": True}) as cluster:
        yield cluster.url


@pytest.mark.parametrize("form", ["json", "yaml", "protobuf", "cbor"])
def test_mutated_bodies_give_the_recorded_errors(gated_url: str, form: str) -> None:
    api = Api(gated_url)
    if form == "cbor" and api.post("/api/v1/namespaces", b"\xa0", content_type="application/cbor").status == 415:
        pytest.skip("the server has no CBOR")
    wrong = []
    for case in recorded(form):
        body = base64.b64decode(case["base64"]) if "base64" in case else case["text"].encode()
        reply = api.request(case["method"], case["path"], body, content_type=case["type"])
        if (reply.status, reply.at("message")) != (case["status"], case["message"]):
            wrong.append((body, case["message"], reply.at("message")))
    assert not wrong
