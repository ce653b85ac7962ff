"""The defaults of the queues of a priority level (pkg/apis/flowcontrol/v1/defaults.go)."""

from __future__ import annotations

import json

from fakekube import Cluster
from tests.unit.raw_calls import Call, call


def test_queues_get_the_defaults_of_the_reference() -> None:
    path = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
    limited = {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Queue", "queuing": {}}}
    body = {"metadata": {"name": "queued"}, "spec": {"type": "Limited", "limited": limited}}
    with Cluster() as cluster:
        code, answer = call(cluster, Call("POST", path, {"Content-Type": "application/json"}, json.dumps(body).encode()))
    assert code == 201, answer
    assert json.loads(answer)["spec"]["limited"]["limitResponse"]["queuing"] == {
        "handSize": 8,
        "queues": 64,
        "queueLengthLimit": 50,
    }
