"""Iteration over the containers of a pod, of all types, in the order of the real server.

Specified by: pkg/apis/core/pods/helpers.go (VisitContainersWithPath), pkg/api/pod/util.go (VisitContainers).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Container = dict[str, Any]

#: The path of errors about a pod as a whole.
NIL_PATH = "[]"

#: The lists of containers in the order of checks that name paths, and in the order of the other ones.
WITH_PATHS = ("initContainers", "containers", "ephemeralContainers")


def containers(spec: dict[str, Any]) -> Iterator[Container]:
    """Yields all containers of a pod."""
    for field in WITH_PATHS:
        yield from spec.get(field) or ()


def containers_with_paths(spec: dict[str, Any], path: str) -> Iterator[tuple[Container, str]]:
    """Yields all containers of a pod, each with its path; `path` is that of the spec ("" for none)."""
    prefix = f"{path}." if path else ""
    for field in WITH_PATHS:
        for index, container in enumerate(spec.get(field) or ()):
            yield container, f"{prefix}{field}[{index}]"


def container_statuses(status: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the container statuses of all types."""
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        yield from status.get(field) or ()


def is_sidecar(container: Container) -> bool:
    """Reports whether this init container is restartable (a sidecar)."""
    return container.get("restartPolicy") == "Always"


def projected_sources(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the sources of all projected volumes."""
    for volume in spec.get("volumes") or ():
        yield from volume.get("projected", {}).get("sources") or ()
