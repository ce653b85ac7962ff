"""The HTTP endpoints of a kubelet: health, pods, statistics, metrics, logs; clients call them through nodes/proxy, pods at port
10250.

Values are those of `nodes.runtime.resources`; cumulative ones are proportional to the time that a container has been running.

Invariants: a response is for one node, at one time of the clock. At the port, no endpoint is reached without a token that the API
server has reviewed, and a right on the subresource of the node.

Specified by: pkg/kubelet/server/server.go (InstallAuthFilter), pkg/kubelet/server/auth.go (GetRequestAttributes),
pkg/kubelet/server/stats, pkg/kubelet/metrics/collectors/resource_metrics.go, k8s.io/kubelet/pkg/apis/stats/v1alpha1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Protocol
from urllib.parse import parse_qs

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.quantity import parse
from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apiserver.endpoints.negotiation import JSON, PLAIN_TEXT
from fakekube.apiserver.http.request_info import VERBS
from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import StoredObject
from fakekube.controllers.client import Client
from fakekube.net.streaming.kubelet_api import ALL_STREAMS, KubeletError, LogOptions
from fakekube.net.streams import Stream
from fakekube.net.wsgi import Application
from fakekube.nodes.runtime.resources import Behaviours, Used, container_usage, running_containers

Answer = tuple[int, str, bytes | Iterable[bytes]]
"""Status code, media type, body."""

_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_LOGS: Final = re.compile(r"/containerLogs/([^/]+)/([^/]+)/([^/]+)")
_PHRASES: Final = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error"}
_GIGABYTE: Final = 1024**3

_CONFIGURATION: Final[dict[str, Any]] = {
    "enableServer": True,
    "syncFrequency": "1m0s",
    "fileCheckFrequency": "20s",
    "httpCheckFrequency": "20s",
    "address": "0.0.0.0",
    "port": 10250,
    "clusterDomain": "cluster.local",
    "maxPods": 110,
    "containerLogMaxSize": "10Mi",
    "containerLogMaxFiles": 5,
    "nodeStatusUpdateFrequency": "10s",
    "nodeStatusReportFrequency": "5m0s",
    "nodeLeaseDurationSeconds": 40,
    "cgroupDriver": "systemd",
}


#: The node, the type of the container, the exit code and the reason.
TerminationKind = tuple[str, str, int, str]


class NodeRuntime(Behaviours, Protocol):
    """The part of the container runtime that a kubelet's endpoints show."""

    cluster: ClusterAccess
    clock: Clock
    terminations: Callable[[], Mapping[TerminationKind, int]]
    """Returns the numbers of terminations of containers."""

    def container_logs(self, pod: StoredObject, container: str, options: LogOptions) -> Stream | bytes:
        """See `kubelet_api.Kubelet`."""


class KubeletServer:
    """The endpoints of one node's kubelet: a WSGI application.

    Args:
        node: the name of the node.
        runtime: the container runtime.
    """

    def __init__(self, node: str, runtime: NodeRuntime) -> None:
        self._node, self._runtime = node, runtime
        self._endpoints: Mapping[str, Callable[[], Answer]] = {
            "/healthz": lambda: (200, PLAIN_TEXT, b"ok"),
            "/healthz/ping": lambda: (200, PLAIN_TEXT, b"ok"),
            "/healthz/syncloop": lambda: (200, PLAIN_TEXT, b"ok"),
            "/pods": lambda: self._list(self._pods()),
            "/runningpods": lambda: self._list([_as_running(pod) for pod in self._running()]),
            "/stats/summary": lambda: (200, JSON, json.dumps(self._summary())),
            "/configz": lambda: (200, JSON, json.dumps({"kubeletconfig": self._configuration()})),
            "/metrics": lambda: (200, _METRICS, self._own_metrics()),
            "/metrics/resource": lambda: (200, _METRICS, self._resource_metrics()),
            "/metrics/cadvisor": lambda: (200, _METRICS, self._cadvisor_metrics()),
            "/metrics/probes": lambda: (200, _METRICS, self._probe_metrics()),
            "/logs": lambda: (200, "text/html; charset=utf-8", b'<pre>\n<a href="containers/">containers/</a>\n</pre>\n'),
        }

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"] or "/"
        found = self._endpoints.get(path.rstrip("/"))
        logs = _LOGS.fullmatch(path)
        try:
            if logs is not None:
                answer = self._container_logs(logs, parse_qs(environ.get("QUERY_STRING", "")))
            else:
                answer = (404, PLAIN_TEXT, b"404 page not found\n") if found is None else found()
        except KubeletError as error:
            answer = (error.code, PLAIN_TEXT, error.text.encode())
        code, kind, body = answer
        headers = [("Content-Type", kind)] + ([("Content-Length", str(len(body)))] if isinstance(body, bytes) else [])
        start_response(f"{code} {_PHRASES.get(code, 'Error')}", headers)
        return [body] if isinstance(body, bytes) else body

    # --- Pods ---------------------------------------------------------------------------------------------------------

    def _pods(self) -> list[StoredObject]:
        return [pod for pod in self._runtime.cluster.list("", "pods") if pod["spec"].get("nodeName") == self._node]

    def _configuration(self) -> dict[str, Any]:
        """Returns the KubeletConfiguration."""
        return _CONFIGURATION | {"clusterDNS": [self._runtime.cluster.service_ranges.dns_address]}

    def _running(self) -> list[StoredObject]:
        return [pod for pod in self._pods() if (pod.get("status") or {}).get("phase") == "Running"]

    @staticmethod
    def _list(pods: list[StoredObject]) -> Answer:
        return 200, JSON, json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods})

    def _container_logs(self, path: re.Match[str], query: Mapping[str, list[str]]) -> Answer:
        namespace, name, container = path.groups()
        pod = self._runtime.cluster.get("", "pods", namespace, name)
        if pod is None or pod["spec"].get("nodeName") != self._node:
            raise KubeletError(404, f'pod "{name}" not found\n')
        given = {key: values[-1] for key, values in query.items()}

        def number(key: str) -> int | None:
            try:
                return int(given[key]) if key in given else None
            except ValueError:
                raise KubeletError(400, f'{{"message": "unable to decode query: {key}"}}') from None

        def flag(key: str) -> bool:
            return given.get(key, "false").lower() in ("true", "1", "")

        options = LogOptions(
            follow=flag("follow"),
            previous=flag("previous"),
            timestamps=flag("timestamps"),
            since_seconds=number("sinceSeconds"),
            since_time=datetime.fromisoformat(given["sinceTime"]) if "sinceTime" in given else None,
            tail_lines=number("tailLines"),
            limit_bytes=number("limitBytes"),
            stream=given.get("stream", ALL_STREAMS),
        )
        return 200, PLAIN_TEXT, self._runtime.container_logs(pod, container, options)

    # --- Statistics ---------------------------------------------------------------------------------------------------

    def _usage(self) -> Iterator[tuple[StoredObject, StoredObject, Used, float]]:
        """Yields pods, their running containers, their usage, and for how many seconds they have been running."""
        now = self._runtime.clock.now()
        for pod in self._running():
            started = _start_time(pod, now)
            for container in running_containers(pod):
                seconds = max((now - started).total_seconds(), 0.0)
                yield pod, container, container_usage(self._runtime, pod, container), seconds

    def _summary(self) -> dict[str, Any]:
        now = print_time(self._runtime.clock.now())
        pods: dict[str, dict[str, Any]] = {}
        total: Used = {"cpu": 0, "memory": 0}
        for pod, container, used, seconds in self._usage():
            metadata, start = pod["metadata"], pod["status"].get("startTime", now)
            item = pods.setdefault(
                metadata["uid"],
                {
                    "podRef": {name: metadata[name] for name in ("name", "namespace", "uid")},
                    "startTime": start,
                    "containers": [],
                    "sum": {"cpu": 0, "memory": 0},
                    "network": {"time": now, "name": "eth0", "rxBytes": 0, "rxErrors": 0, "txBytes": 0, "txErrors": 0},
                    "ephemeral-storage": _storage(now),
                },
            )
            item["containers"].append({"name": container["name"], "startTime": start, **_usage_statistics(now, used, seconds)})
            for resource in total:
                total[resource] += used[resource]
                item["sum"][resource] += used[resource]
        items = [{**item, **_usage_statistics(now, item.pop("sum"), 0.0)} for item in pods.values()]
        node = self._runtime.cluster.get("", "nodes", "", self._node) or {"metadata": {"creationTimestamp": now}}
        about = {
            "nodeName": self._node,
            "startTime": node["metadata"].get("creationTimestamp", now),
            **_usage_statistics(now, total, 0.0),
            "fs": _storage(now),
            "runtime": {"imageFs": _storage(now)},
        }
        return {"node": about, "pods": items}

    # --- Metrics ------------------------------------------------------------------------------------------------------

    def _own_metrics(self) -> bytes:
        running = self._running()
        containers = sum(len(list(running_containers(pod))) for pod in running)
        terminated: list[Sample] = [
            ({"container_type": kind, "exit_code": str(code), "reason": reason}, number)
            for (node, kind, code, reason), number in self._runtime.terminations().items()
            if node == self._node
        ]
        return _exposition(
            ("kubelet_node_name", "gauge", "[ALPHA] The node's name. The count is always 1.", [({"node": self._node}, 1)]),
            ("kubelet_running_pods", "gauge", "[ALPHA] Number of pods that have a running pod sandbox", [({}, len(running))]),
            (
                "kubelet_running_containers",
                "gauge",
                "[ALPHA] Number of containers currently running",
                [({"container_state": "running"}, containers)],
            ),
            (
                "kubelet_terminated_containers_total",
                "counter",
                "[ALPHA] Cumulative number of container terminations.",
                terminated,
            ),
        )

    def _resource_metrics(self) -> bytes:
        found = list(self._usage())
        labels = [_labels(pod, container) for pod, container, _, _ in found]
        moment = int(self._runtime.clock.now().timestamp() * 1000)
        cpu = [used["cpu"] / 1000 * seconds for _, _, used, seconds in found]
        memory = [used["memory"] for _, _, used, _ in found]
        starts = [self._runtime.clock.now().timestamp() - seconds for _, _, _, seconds in found]
        return _exposition(
            (
                "container_cpu_usage_seconds_total",
                "counter",
                "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
                list(zip(labels, cpu, strict=True)),
            ),
            (
                "container_memory_working_set_bytes",
                "gauge",
                "[STABLE] Current working set of the container in bytes",
                list(zip(labels, memory, strict=True)),
            ),
            (
                "container_start_time_seconds",
                "gauge",
                "[STABLE] Start time of the container since unix epoch in seconds",
                list(zip(labels, starts, strict=True)),
            ),
            (
                "node_cpu_usage_seconds_total",
                "counter",
                "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
                [({}, sum(cpu))],
            ),
            ("node_memory_working_set_bytes", "gauge", "[STABLE] Current working set of the node in bytes", [({}, sum(memory))]),
            (
                "resource_scrape_error",
                "gauge",
                "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise",
                [({}, 0)],
            ),
            moment=moment,
        )

    def _cadvisor_metrics(self) -> bytes:
        found = list(self._usage())
        labels = [{**_labels(pod, container), "image": container.get("image", "")} for pod, container, _, _ in found]
        return _exposition(
            (
                "container_cpu_usage_seconds_total",
                "counter",
                "Cumulative cpu time consumed in seconds.",
                [(one, used["cpu"] / 1000 * seconds) for one, (_, _, used, seconds) in zip(labels, found, strict=True)],
            ),
            (
                "container_memory_usage_bytes",
                "gauge",
                "Current memory usage in bytes.",
                [(one, used["memory"]) for one, (_, _, used, _) in zip(labels, found, strict=True)],
            ),
        )

    def _probe_metrics(self) -> bytes:
        samples: list[Sample] = []
        for pod in self._running():
            for container in running_containers(pod):
                for probe in ("liveness", "readiness", "startup"):
                    if container.get(f"{probe}Probe"):
                        kind = {"probe_type": probe.capitalize(), "result": "successful", "pod_uid": pod["metadata"]["uid"]}
                        samples.append(({**_labels(pod, container), **kind}, 1))
        text = "[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result."
        return _exposition(("prober_probe_total", "counter", text, samples))


Sample = tuple[Mapping[str, str], float]


def _start_time(pod: StoredObject, default: datetime) -> datetime:
    text = (pod.get("status") or {}).get("startTime")
    return datetime.fromisoformat(text) if text else default


def _as_running(pod: StoredObject) -> StoredObject:
    """Returns a pod with the fields that the container runtime knows: names and images."""
    metadata = {name: pod["metadata"][name] for name in ("name", "namespace", "uid")}
    containers = [{"name": one["name"], "image": one.get("image", ""), "resources": {}} for one in running_containers(pod)]
    return {"metadata": {**metadata, "creationTimestamp": None}, "spec": {"containers": containers}, "status": {}}


def _usage_statistics(now: str, used: Used, seconds: float) -> dict[str, Any]:
    nanoseconds = used["cpu"] * 1_000_000
    cpu = {"time": now, "usageNanoCores": nanoseconds, "usageCoreNanoSeconds": int(nanoseconds * seconds)}
    memory = {"time": now, "usageBytes": used["memory"], "workingSetBytes": used["memory"], "rssBytes": used["memory"]}
    return {"cpu": cpu, "memory": memory}


def _storage(now: str) -> dict[str, Any]:
    capacity = int(parse("100Gi").value())
    return {"time": now, "availableBytes": capacity - _GIGABYTE, "capacityBytes": capacity, "usedBytes": _GIGABYTE}


def _labels(pod: StoredObject, container: StoredObject) -> dict[str, str]:
    return {"container": container["name"], "namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}


def _exposition(*families: tuple[str, str, str, list[Sample]], moment: int | None = None) -> bytes:
    """Returns metrics in the text format of Prometheus."""
    lines = []
    for name, kind, text, samples in families:
        if not samples:  # a vector without values is not shown
            continue
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        for labels, value in samples:
            shown = ",".join(f'{key}="{one}"' for key, one in sorted(labels.items()))
            at = "" if moment is None or name == "resource_scrape_error" else f" {moment}"
            lines.append(f"{name}{f'{{{shown}}}' if shown else ''} {value:.15g}{at}")
    return "".join(f"{line}\n" for line in lines).encode()


# --- The port 10250 of nodes ------------------------------------------------------------------------------------------


_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#: First part of a path → the subresources of nodes any of which is enough.
_SUBRESOURCES: Final = {
    "stats": ("stats",),
    "metrics": ("metrics",),
    "logs": ("log",),
    "checkpoint": ("checkpoint",),
    "pods": ("pods", "proxy"),
    "runningpods": ("pods", "proxy"),
    "healthz": ("healthz", "proxy"),
    "configz": ("configz", "proxy"),
}
_PROXY: Final = ("proxy",)


class KubeletPort:
    """A WSGI application that reviews requests before the endpoints of a kubelet answer them.

    Args:
        node: the name of the node.
        client: sends reviews to the API server.
        endpoints: of the kubelet.
    """

    def __init__(self, node: str, client: Client, endpoints: Application) -> None:
        self._node, self._client, self._endpoints = node, client, endpoints

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        user = self._authenticate(environ.get("HTTP_AUTHORIZATION", ""))
        if user is None:
            return _refuse("401 Unauthorized", "Unauthorized", start_response)
        verb = VERBS.get(environ["REQUEST_METHOD"], "")
        subresources = _SUBRESOURCES.get(environ["PATH_INFO"].strip("/").partition("/")[0], _PROXY)
        if not any(self._authorize(user, verb, one) for one in subresources):
            names = " ".join(subresources)
            text = f"Forbidden (user={user.get('username', '')}, verb={verb}, resource=nodes, subresource(s)=[{names}])"
            return _refuse("403 Forbidden", text, start_response)
        return self._endpoints(environ, start_response)

    def _authenticate(self, authorization: str) -> dict[str, Any] | None:
        """Returns the user of a token; None without a valid one: kubelets know no anonymous users."""
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            return None
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token.strip()}}
        status = self._client.call("POST", _REVIEWS, body)["status"]
        user: dict[str, Any] | None = status.get("user") if status.get("authenticated") else None
        return user

    def _authorize(self, user: dict[str, Any], verb: str, subresource: str) -> bool:
        attributes = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": subresource, "name": self._node}
        spec = {"user": user.get("username", ""), "groups": user.get("groups") or [], "resourceAttributes": attributes}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return bool(self._client.call("POST", _ACCESS_REVIEWS, body)["status"].get("allowed"))


def _refuse(status: str, text: str, start_response: Callable[..., Any]) -> Iterable[bytes]:
    data = text.encode()
    start_response(status, [("Content-Type", PLAIN_TEXT), ("Content-Length", str(len(data)))])
    return [data]
