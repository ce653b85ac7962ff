"""`kubectl explain` without descriptions: the log says once how to get them."""

from __future__ import annotations

import logging

import pytest

from fakekube import Cluster
from fakekube.apiserver.http.openapi import endpoints


@pytest.mark.parametrize(("document", "count"), [({}, 1), ({"definitions": {}}, 0)])
def test_warning_is_logged_once(
    document: dict[str, object], count: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(endpoints, "published_document", lambda _version: document)
    cluster = Cluster(profile="apiserver")
    with caplog.at_level(logging.WARNING, "fakekube"):
        cluster.request("GET", "/openapi/v3/api/v1")
        for _ in range(2):
            cluster.request("GET", "/openapi/v3/api/v1", headers={"Kubectl-Command": "kubectl explain"})
    assert sum("fakekube[descriptions]" in one.getMessage() for one in caplog.records) == count
