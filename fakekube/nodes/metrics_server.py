"""metrics.k8s.io/v1beta1, as metrics-server serves it: the usage of nodes and pods.

This is an aggregated API: an APIService of the base state, and a WSGI application of this process that serves it. Metrics are
computed for each request, from `nodes.runtime.resources`.

Invariant: only running containers have metrics; a response is of one moment of the clock.

Specified by: k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go, metrics-server pkg/api (pods.go, nodes.go, table.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import parse_qs

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.errors.status import GENERIC_MESSAGES
from fakekube.apimachinery.selectors import LabelSelector, SelectorError, parse_labels
from fakekube.apimachinery.selectors.fields import parse_fields
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import StoredObject
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.nodes.metrics_api import GROUP_VERSION, KINDS, VERBS
from fakekube.nodes.runtime.resources import Used, container_usage, running_containers

if TYPE_CHECKING:
    from fakekube.nodes.runtime.runtime import Runtime


_WINDOW: Final = "15s"
_PATH: Final = re.compile(r"/apis/metrics\.k8s\.io/v1beta1(?:/namespaces/([^/]+))?/(nodes|pods)(?:/([^/]+))?/?")
_RESOURCES: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": GROUP_VERSION,
    "resources": [
        {"name": name, "singularName": "", "namespaced": name == "pods", "kind": kind, "verbs": VERBS}
        for name, kind in KINDS.items()
    ],
}
_ROOTS: Final[dict[str, Any]] = {
    f"/apis/{GROUP_VERSION}": _RESOURCES,
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
}

Respond = Callable[..., Any]


class MetricsServer(Reconciler):
    """Does nothing. It is a controller so that `--controllers` can disable metrics-server."""

    name: ClassVar[str] = "metrics-server"
    watches: ClassVar[tuple[str, ...]] = ()

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        return ()

    def reconcile(self, key: Key) -> None:
        pass


def application(runtime: Callable[[], Runtime]) -> Callable[[dict[str, Any], Respond], list[bytes]]:
    """Returns the API as a WSGI application.

    Args:
        runtime: returns the container runtime of the cluster; called for the first request for metrics.
    """

    def respond(environ: dict[str, Any], start_response: Respond) -> list[bytes]:
        code, body = _answer(environ, runtime)
        phrase = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}[code]
        data = json.dumps(body)
        start_response(f"{code} {phrase}", [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
        return [data]

    return respond


def _answer(environ: Mapping[str, Any], runtime: Callable[[], Runtime]) -> tuple[int, Any]:
    path = environ["PATH_INFO"]
    if path.rstrip("/") in _ROOTS:
        return 200, _ROOTS[path.rstrip("/")]
    found = _PATH.fullmatch(path)
    if found is None or (found[2] == "nodes" and found[1]) or (found[3] and found[2] == "pods" and not found[1]):
        return _status(404, "NotFound", GENERIC_MESSAGES[404])
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        return _status(405, "MethodNotAllowed", GENERIC_MESSAGES[405])
    namespace, plural, name = found.groups()
    query = {key: values[-1] for key, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
    try:
        labels = parse_labels(query.get("labelSelector", ""))
        fields = parse_fields(query.get("fieldSelector", ""))
    except SelectorError as error:
        return _status(400, "BadRequest", str(error))

    def matches_fields(metadata: StoredObject) -> bool:
        values = {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}
        return fields.matches(lambda field: values.get(field, ""))

    items = _Measurement(runtime()).metrics(plural, namespace or "", name, labels)
    items = [item for item in items if matches_fields(item["metadata"])]
    tables = "as=Table" in environ.get("HTTP_ACCEPT", "")
    if name:
        if not items:
            return _not_found(plural, name)
        whole = {"kind": KINDS[plural], "apiVersion": GROUP_VERSION, **items[0]}
        return 200, _table([whole], plural) if tables else whole
    listed = {"kind": f"{KINDS[plural]}List", "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}
    return 200, _table(items, plural) if tables else listed


def _status(code: int, reason: str, message: str, **details: Any) -> tuple[int, Any]:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason}
    return code, {**status, **({"details": details} if details else {}), "code": code}


def _not_found(plural: str, name: str) -> tuple[int, Any]:
    text = f'{plural}.metrics.k8s.io "{name}" not found'
    return _status(404, "NotFound", text, name=name, group="metrics.k8s.io", kind=plural)


class _Measurement:
    """The usage at one moment."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._now = print_time(runtime.clock.now())

    def metrics(self, plural: str, namespace: str, name: str | None, labels: LabelSelector) -> list[dict[str, Any]]:
        """Returns the metrics of nodes or pods."""
        cluster = self._runtime.cluster
        if name:
            one = cluster.get("", plural, namespace, name)
            found = [] if one is None else [one]
        else:
            found = list(cluster.list("", plural, namespace))
        found = [one for one in found if labels.matches(one["metadata"].get("labels"))]
        if plural == "pods":
            return [made for one in found if (made := self._pod(one)) is not None]
        totals = self._totals()
        return [self._item(one, usage=_format(totals.get(one["metadata"]["name"], _NO_USAGE))) for one in found]

    def _item(self, obj: StoredObject, **values: Any) -> dict[str, Any]:
        known = obj["metadata"]
        metadata = {key: known[key] for key in ("name", "namespace") if known.get(key)}
        metadata |= {"creationTimestamp": self._now} | ({"labels": known["labels"]} if known.get("labels") else {})
        return {"metadata": metadata, "timestamp": self._now, "window": _WINDOW, **values}

    def _pod(self, pod: StoredObject) -> dict[str, Any] | None:
        if (pod.get("status") or {}).get("phase") != "Running":
            return None
        containers = [
            {"name": one["name"], "usage": _format(container_usage(self._runtime, pod, one))} for one in running_containers(pod)
        ]
        return self._item(pod, containers=containers) if containers else None

    def _totals(self) -> dict[str, Used]:
        """Returns the total usage of the pods on each node."""
        totals: dict[str, Used] = {}
        for pod in self._runtime.cluster.list("", "pods"):
            node = pod["spec"].get("nodeName")
            if not node or (pod.get("status") or {}).get("phase") != "Running":
                continue
            total = totals.setdefault(node, dict(_NO_USAGE))
            for one in running_containers(pod):
                for resource, amount in container_usage(self._runtime, pod, one).items():
                    total[resource] += amount
        return totals


_NO_USAGE: Final[Used] = {"cpu": 0, "memory": 0}


def _format(used: Used) -> dict[str, str]:
    return {"cpu": f"{used['cpu']}m", "memory": f"{-(-used['memory'] // 1024)}Ki"}


def _table(items: list[dict[str, Any]], plural: str) -> dict[str, Any]:
    columns = [
        {"name": "Name", "type": "string", "format": "name", "description": "Name of the resource", "priority": 0},
        {"name": "cpu", "type": "string", "format": "", "description": "CPU usage", "priority": 0},
        {"name": "memory", "type": "string", "format": "", "description": "Memory usage", "priority": 0},
        {"name": "Window", "type": "string", "format": "duration", "description": "Window of the measurement", "priority": 0},
    ]
    rows = []
    for item in items:
        usages = [item["usage"]] if "usage" in item else [one["usage"] for one in item["containers"]]
        cpu = sum(int(usage["cpu"].removesuffix("m")) for usage in usages)
        memory = sum(int(usage["memory"].removesuffix("Ki")) for usage in usages)
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}
        rows.append({"cells": [item["metadata"]["name"], f"{cpu}m", f"{memory}Ki", item["window"]], "object": partial})
    return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": columns, "rows": rows}
