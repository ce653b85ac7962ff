"""Quotas are enforced for concurrent writes."""

from __future__ import annotations

import threading

from fakekube.apiserver import server as assembly
from fakekube.base.clock import Clock
from tests.unit import stories

NAMESPACE = "/api/v1/namespaces/default"
MERGE = "application/merge-patch+json"


def test_concurrent_creates_do_not_exceed_the_quota() -> None:
    clock = Clock()
    machinery = assembly.build(clock=clock, settings=stories.recorded_settings(), profile="apiserver")
    ask = stories.of_application(machinery.application)
    hard = {"count/configmaps": "7"}
    ask("POST", f"{NAMESPACE}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}}, stories.JSON)
    ask("PATCH", f"{NAMESPACE}/resourcequotas/q/status", {"status": {"hard": hard, "used": {"count/configmaps": "0"}}}, MERGE)
    codes: list[int] = []

    def make(number: int) -> None:
        for index in range(5):
            body = {"metadata": {"name": f"c{number}-{index}"}}
            codes.append(ask("POST", f"{NAMESPACE}/configmaps", body, stories.JSON)[0])

    threads = [threading.Thread(target=make, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (codes.count(201), codes.count(403)) == (7, 23)
    _, _, text = ask("GET", f"{NAMESPACE}/resourcequotas/q", None, stories.JSON)
    assert stories.json.loads(text)["status"]["used"] == {"count/configmaps": "7"}
    clock.close()
