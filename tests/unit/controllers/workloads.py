"""What tests of workload controllers make, and how they play kubelets of pods that no scheduler takes."""

from __future__ import annotations

from typing import Any

from fakekube import Cluster

Object = dict[str, Any]


def template(labels: dict[str, str], image: str = "app:1", **spec: Any) -> Object:
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def workload(
    kind: str, name: str = "web", *, hand: bool = False, api_version: str = "apps/v1", pod: Object | None = None, **spec: Any
) -> Object:
    """A workload whose pods carry `app: NAME`; `hand`: nobody schedules them, the test writes their status."""
    of_pod = {**({"schedulerName": "by-hand"} if hand else {}), **(pod or {})}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template({"app": name}, **of_pod), **spec},
    }


def job(name: str = "j", *, hand: bool = True, **spec: Any) -> Object:
    made = template({}, "job:1", restartPolicy="Never", **({"schedulerName": "by-hand"} if hand else {}))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": made, **spec},
    }


def image(tag: str) -> Object:
    """A merge patch of the pods' image."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": tag}]}}}}


def write_status(cluster: Cluster, pod: str, **status: Any) -> None:
    cluster.patch("pods", pod, {"status": status}, namespace="default", subresource="status")


def make_ready(cluster: Cluster, pod: str) -> None:
    now = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": now}]
    write_status(cluster, pod, phase="Running", conditions=conditions)


def names(cluster: Cluster, resource: str = "pods") -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in cluster.list(resource, namespace="default"))


def condition(obj: Object, type_: str) -> tuple[str, str]:
    return next(((one["status"], one["reason"]) for one in obj["status"].get("conditions", ()) if one["type"] == type_), ("", ""))


def reasons(cluster: Cluster, name: str) -> list[str]:
    return [event["reason"] for event in cluster.list("events", namespace="default") if event["involvedObject"]["name"] == name]
