"""Texts of a million characters are parsed in linear time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from fakekube import Cluster
from fakekube.apimachinery.cel.checker import check
from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.evaluation import program
from fakekube.apimachinery.cel.parser import parse
from fakekube.apimachinery.cel.types import STRING
from fakekube.apimachinery.codecs import EncodeError, json, yaml
from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.printers import jsonpath
from fakekube.apimachinery.schema import quantity
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.handlers import proxy
from fakekube.apiserver.webhooks import transport
from fakekube.apiserver.webhooks.connections import ConnectionFailedError
from fakekube.base.depth import call_with_deep_stack
from fakekube.base.golang import timestamps
from fakekube.controllers.controller_utils import get_scaled_value
from fakekube.controllers.deployment import utils as deployment_utils
from fakekube.controllers.job.indexed_job_utils import COMPLETION_INDEX, get_completion_index
from fakekube.controllers.job.pod_failure_policy import index_failure_count
from fakekube.powers import exchange

MANY = 1_000_000
DIGITS = "1" * 5000
"""More than Python reads as a number."""


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (quantity.parse, "1" * MANY + "!"),
        (quantity.parse, "0" * MANY + "!"),
        (quantity.parse, "1." + "1" * MANY + "!"),
        (timestamps.parse_duration, "0" * MANY + "!"),
        (timestamps.parse_spelled_duration, "1" * MANY + "!"),
    ],
    ids=["digits", "zeros", "fraction", "duration", "spelled"],
)
def test_long_invalid_texts_are_rejected_in_linear_time(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r"(?s).{10}"):
        read(text)


@pytest.mark.parametrize("text", ["1" * MANY + "!", "0x" + "1" * MANY + "!", "." * MANY])
def test_long_numbers_in_cel_expressions(text: str) -> None:
    value, _ = program(check("double(x)", parse("double(x)"), {"x": STRING})).evaluate({"x": text})
    assert isinstance(value, EvaluationError)


def test_long_weights_of_media_types() -> None:
    assert negotiation.clauses("a/b;q=" + "1" * MANY + "!")


@pytest.mark.parametrize("text", ["1" * MANY, "1." * (MANY // 2), "e+" * (MANY // 2)])
def test_long_digit_strings_in_yaml(text: str) -> None:
    assert yaml.loads(f'{{"a":"{text}"}}'.encode()) == ({"a": text}, [])


@pytest.mark.parametrize("text", ['"' * MANY, "\\" * MANY, ', "' * (MANY // 3), "a: " * (MANY // 3)])
def test_long_texts_round_trip_through_yaml(text: str) -> None:
    assert yaml.loads(yaml.dumps({"a": text})) == ({"a": text}, [])


def test_indented_output_too_large_for_memory_is_rejected() -> None:
    value: object = [1] * 200_000
    for _ in range(9_000):
        value = [value]
    for write in (json.dumps_pretty, yaml.dumps):
        with pytest.raises(EncodeError, match="too long"):
            call_with_deep_stack(partial(write, value))
    assert len(json.dumps(value)) == 18_000 + 400_001


def _pod(**annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }


def _budget(available: str) -> dict[str, Any]:
    return {"metadata": {"name": "b"}, "spec": {"minAvailable": available, "selector": {}}}


def _job(indexes: str) -> dict[str, Any]:
    policy = {"rules": [{"succeededIndexes": indexes}]}
    spec = {"completionMode": "Indexed", "completions": 3, "successPolicy": policy, "template": {"spec": _pod()["spec"]}}
    return {"metadata": {"name": "j"}, "spec": spec}


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        ("/api/v1/namespaces/default/pods", _pod(**{"controller.kubernetes.io/pod-deletion-cost": DIGITS}), "pod-deletion-cost"),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", _budget(f"{DIGITS}%"), "must not be greater than 100%"),
        ("/apis/batch/v1/namespaces/default/jobs", _job(DIGITS), "cannot convert string to integer for index"),
        ("/apis/batch/v1/namespaces/default/jobs", _job(f"0-{DIGITS}"), "cannot convert string to integer for index"),
    ],
    ids=["deletion-cost", "percentage", "index", "interval"],
)
def test_numbers_with_many_digits_are_invalid(path: str, body: dict[str, Any], problem: str) -> None:
    cluster = Cluster(profile="apiserver")
    refused = cluster.request("POST", path, body)
    cluster.stop()
    assert refused.status == 422
    assert problem in refused.body.decode()


def test_ranges_with_many_digits_are_invalid() -> None:
    cluster = Cluster(profile="apiserver")
    for text in (f"bytes=0-{DIGITS}", f"bytes=-{DIGITS}", f"bytes={DIGITS}-"):
        assert cluster.request("GET", "/openapi/v2", headers={"Range": text}).status == 416
    cluster.stop()


def test_numbers_with_many_digits_elsewhere() -> None:
    with pytest.raises(jsonpath.PathError, match="is not a number"):
        jsonpath.parse(f".a[{DIGITS}]")
    with pytest.raises(ConnectionFailedError, match="invalid port"):
        transport._port(urlsplit(f"https://a:{DIGITS}/"))
    with pytest.raises(StatusError, match="invalid port"):
        proxy._port_number(DIGITS, "")
    with pytest.raises(ValueError, match="out of range"):
        get_scaled_value(f"{DIGITS}%", 3, round_up=True)
    assert exchange._revision_of({"metadata": {"resourceVersion": DIGITS}}) is None
    pod = _pod(**{COMPLETION_INDEX: DIGITS, "batch.kubernetes.io/job-index-failure-count": DIGITS})
    assert (get_completion_index(pod), index_failure_count(pod)) == (-1, 0)
    replica_set = {"metadata": {"annotations": {deployment_utils.REVISION: DIGITS, deployment_utils.DESIRED_REPLICAS: DIGITS}}}
    assert deployment_utils.revision_of(replica_set) is None
    assert deployment_utils.get_desired_replicas_annotation(replica_set) is None
