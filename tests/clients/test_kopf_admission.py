"""Admission handlers of kopf: it serves them itself, and makes the configurations that lead to them."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.client import ApiError

kopf = pytest.importorskip("kopf")

TIMEOUT = 60

pytestmark = [
    pytest.mark.fakekube(kubeconfig=True, profile="apiserver"),
    pytest.mark.filterwarnings("default"),  # kopf's own doings
]


class Operator:
    """Sets a label, and refuses, with a warning, what says so."""

    def __init__(self, server: Any) -> None:
        self._registry, self._server = kopf.OperatorRegistry(), server
        self._ready, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        kopf.on.login(registry=self._registry)(kopf.login_with_kubeconfig)
        kopf.on.startup(registry=self._registry)(self._configure)
        kopf.on.mutate("configmaps", id="label", registry=self._registry)(self._label)
        kopf.on.validate("configmaps", id="refuse", registry=self._registry)(self._refuse)

    def _configure(self, settings: Any, **_: Any) -> None:
        settings.admission.server = self._server
        settings.admission.managed = "auto.kopf.example.com"

    @staticmethod
    def _label(patch: Any, **_: Any) -> None:
        patch.metadata.labels["seen"] = "yes"

    @staticmethod
    def _refuse(body: Any, warnings: list[str], dryrun: bool, userinfo: Any, **_: Any) -> None:
        warnings.append(f"looked at by kopf for {userinfo['username']}")
        if body.get("data", {}).get("refuse"):
            raise kopf.AdmissionError("as you wish", code=418)

    def _run(self) -> None:
        asyncio.run(
            kopf.operator(
                registry=self._registry, standalone=True, namespaces=["default"], ready_flag=self._ready, stop_flag=self._stop
            )
        )

    def __enter__(self) -> Operator:
        self._thread.start()
        assert self._ready.wait(TIMEOUT)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(TIMEOUT)


@pytest.fixture
def operator(fakekube: Cluster, tmp_path: Path) -> Iterator[Operator]:
    certificate = fakekube.services.certificate("default/kopf")
    chain, key = certificate.write(tmp_path)
    authority = tmp_path / "ca.crt"
    authority.write_bytes(base64.b64decode(certificate.ca_bundle))
    server = kopf.WebhookServer(addr="127.0.0.1", host="127.0.0.1", certfile=chain, pkeyfile=key, cafile=authority)
    with Operator(server) as found:
        yield found


def test_mutating_and_validating_admission_handlers(fakekube: Cluster, operator: Operator) -> None:
    for kind in ("mutating", "validating"):
        fakekube.wait_for(
            f"{kind}webhookconfigurations",
            "auto.kopf.example.com",
            timeout=TIMEOUT,
            until=lambda configuration: bool((configuration.get("webhooks") or [{}])[0].get("rules")),
        )
    config_map: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}
    assert fakekube.create(config_map)["metadata"]["labels"] == {"seen": "yes"}
    with pytest.raises(ApiError, match="denied the request: as you wish") as caught:
        fakekube.create({**config_map, "metadata": {"name": "other"}, "data": {"refuse": "yes"}})
    assert caught.value.code == 418
