"""Figures of the formats: `python tests/benchmarks/codecs_bench.py`. A Pod of 3.4 KB, microseconds each, best of five.

The first line is the yardstick: orjson reading the same Pod. Of a machine on which it takes 7, the rest holds as it is.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import cbor2
import orjson

from fakekube.apimachinery.codecs import cbor, json, protobuf, yaml
from fakekube.apimachinery.printers.table import convertor_for
from fakekube.apimachinery.schema.builtin import kind_type

UID = "0d1c2b3a-4958-4768-8776-655443322110"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def container(number: int) -> dict[str, Any]:
    return {
        "name": f"container-{number}",
        "image": f"registry.example.com/team/service-{number}:v1.2.3",
        "args": ["--verbose", f"--port={8080 + number}", "--config=/etc/service/config.yaml"],
        "ports": [{"name": "http", "containerPort": 8080 + number, "protocol": "TCP"}],
        "env": [{"name": f"VARIABLE_{index}", "value": f"value of variable {index}"} for index in range(6)],
        "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "250m", "memory": "64Mi"}},
        "volumeMounts": [{"name": "config", "readOnly": True, "mountPath": "/etc/service"}],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
            "periodSeconds": 10,
            "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


POD: dict[str, Any] = {
    "metadata": {
        "name": "service-6d4cf56db6-x7k2p", "generateName": "service-6d4cf56db6-", "namespace": "production", "uid": UID,
        "resourceVersion": "123456", "generation": 1, "creationTimestamp": "2026-01-02T03:04:05Z",
        "labels": {"app": "service", "pod-template-hash": "6d4cf56db6", "tier": "backend"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "service-6d4cf56db6", "uid": UID, "controller": True, "blockOwnerDeletion": True}
        ],
    },
    "spec": {
        "volumes": [{"name": "config", "configMap": {"name": "service", "defaultMode": 420}}],
        "containers": [container(number) for number in range(3)],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "serviceAccountName": "default",
        "securityContext": {}, "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": True,
    },
    "status": {"phase": "Pending", "qosClass": "Burstable", "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}]},
}  # fmt: skip


def measures() -> dict[str, Callable[[], Any]]:
    """What is measured."""
    type_ = kind_type("", "v1", "Pod")
    assert type_ is not None
    whole = {"apiVersion": "v1", "kind": "Pod", **POD}
    compact, indented = json.dumps(whole), json.dumps_pretty(whole)
    documents = {"cbor": cbor.dumps(whole, type_), "yaml": yaml.dumps(whole), "protobuf": protobuf.encode(type_, POD)}
    print(f"{len(compact)} bytes of JSON, {', '.join(f'{len(body)} of {name}' for name, body in documents.items())}")
    return {
        "orjson.loads": lambda: orjson.loads(compact),
        "orjson.dumps": lambda: orjson.dumps(whole),
        "json.loads": lambda: json.loads(compact),
        "json.loads, indented": lambda: json.loads(indented),
        "json.dumps": lambda: json.dumps(whole),
        "json.dumps_pretty": lambda: json.dumps_pretty(whole),
        "cbor.dumps": lambda: cbor.dumps(whole, type_),
        "cbor2.dumps": lambda: cbor2.dumps(whole),
        "cbor.loads": lambda: cbor.loads(documents["cbor"]),
        "cbor2.loads": lambda: cbor2.loads(documents["cbor"]),
        "protobuf.encode": lambda: protobuf.encode(type_, POD),
        "protobuf.decode": lambda: protobuf.decode(type_, documents["protobuf"]),
        "yaml.dumps": lambda: yaml.dumps(whole),
        "yaml.loads": lambda: yaml.loads(documents["yaml"]),
        "yaml.loads, JSON": lambda: yaml.loads(compact),
        "cells of a table": lambda: convertor_for("", "v1", "pods").cells(POD, NOW),
    }


def main() -> None:
    for name, run in measures().items():
        number = max(5, int(0.05 / (timeit.timeit(run, number=5) / 5)))
        print(f"{name:24}{min(timeit.repeat(run, number=number, repeat=5)) / number * 1e6:9.1f}")


if __name__ == "__main__":
    main()
