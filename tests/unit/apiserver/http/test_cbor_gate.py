"""With the feature gate CBORServingAndStorage: which endpoints of the real server support CBOR."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakekube import Cluster
from tests.behaviour.conftest import Api, Reply

CBOR = {"Accept": "application/cbor"}
MARK = b"\xd9\xd9\xf7"


@pytest.fixture(scope="module")
def gated() -> Iterator[Api]:
    with Cluster(profile="apiserver", feature_gates={"CBORServingAndStorage": True}) as cluster:
        yield Api(cluster.url)


@pytest.fixture(scope="module")
def older() -> Iterator[Api]:
    with Cluster(profile="apiserver", version="1.36", feature_gates={"CBORServingAndStorage": True}) as cluster:
        yield Api(cluster.url)


def is_cbor(reply: Reply) -> bool:
    assert (reply.headers["content-type"] == "application/cbor") is reply.body.startswith(MARK)
    return reply.body.startswith(MARK)


@pytest.mark.parametrize(
    "path", ["/api/v1", "/apis/apps/v1", "/api/v1/namespaces/default", "/api/v1/namespaces", "/api/v1/namespaces/nope"]
)
def test_resources_and_discovery_are_served_as_cbor(gated: Api, path: str) -> None:
    assert is_cbor(gated.get(path, headers=CBOR))


#: Paths of groups, and those that a filter or the router answers.
BESIDE_RESOURCES = (
    "/api", "/apis", "/apis/apps", "/api/v1/nopes", "/api/v1/namespaces?timeout=x", "/apis/apiregistration.k8s.io", "/version",
)  # fmt: skip


@pytest.mark.parametrize("path", BESIDE_RESOURCES)
def test_filters_routers_and_groups_answer_in_cbor_since_1_37(gated: Api, older: Api, path: str) -> None:
    assert is_cbor(gated.get(path, headers=CBOR))
    assert not is_cbor(older.get(path, headers=CBOR))


def test_debug_pages_list_cbor_last(gated: Api) -> None:
    refusal = gated.get("/statusz", headers={"Accept": "application/json"}).at("message")
    assert refusal.endswith("accepted: application/json, application/yaml, text/plain, application/cbor")
