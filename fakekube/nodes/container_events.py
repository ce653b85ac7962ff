"""The events of kubelets about images and containers, which `kubectl describe pod` shows.

Specified by: pkg/kubelet/images/image_manager.go (EnsureImageExists, pullImage), pkg/kubelet/kuberuntime/kuberuntime_container.go
(startContainer, killContainer), pkg/kubelet/container/ref.go (GenerateContainerRef).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from fakekube.base.objects import StoredObject
from fakekube.controllers.recorder import Recorder, get_reference

#: The first minor whose messages do not name the container, and whose kubelets verify that a pod may use a present image.
_UNNAMED_SINCE: Final = 35


class ContainerEvent(NamedTuple):
    """An event to record about a container, or with "" about the pod; $POD in the message stands for the full name of the pod."""

    container: str
    type: str
    reason: str
    message: str


def starting_events(spec: Mapping[str, Any], minor: int, start_error: str = "") -> Iterator[ContainerEvent]:
    """Yields the events of a container that starts and whose image needs no time to be pulled.

    Args:
        spec: the container.
        minor: the minor of the kubelet, e.g. 37.
        start_error: why its program cannot be started; "" if it can.
    """
    yield from image_events(spec, minor)
    yield created_event(spec, minor)
    yield failed_event(spec, start_error) if start_error else started_event(spec, minor)


def image_events(spec: Mapping[str, Any], minor: int, pulled_in: float | None = None) -> Iterator[ContainerEvent]:
    """Yields the events about the image of a container that is to be created.

    Args:
        spec: the container.
        minor: the minor of the kubelet, e.g. 37.
        pulled_in: the seconds that pulling its image has taken, after a `pulling_event`. By default the image is present on the
            node; with imagePullPolicy Always it is pulled again at once.
    """
    image = spec.get("image", "")
    if pulled_in is None and spec.get("imagePullPolicy") == "Always":
        yield pulling_event(spec)
        pulled_in = 0.0
    if pulled_in is None:
        verified = " and can be accessed by the pod" if minor >= _UNNAMED_SINCE else ""
        pulled = f'Container image "{image}" already present on machine{verified}'
    else:
        took = print_milliseconds(pulled_in)
        pulled = f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: 0 bytes.'
    yield ContainerEvent(spec["name"], "Normal", "Pulled", pulled)


def created_event(spec: Mapping[str, Any], minor: int) -> ContainerEvent:
    """Returns the event of a container that is created."""
    name = spec["name"]
    message = "Container created" if minor >= _UNNAMED_SINCE else f"Created container: {name}"
    return ContainerEvent(name, "Normal", "Created", message)


def started_event(spec: Mapping[str, Any], minor: int) -> ContainerEvent:
    """Returns the event of a container whose program is started."""
    name = spec["name"]
    message = "Container started" if minor >= _UNNAMED_SINCE else f"Started container {name}"
    return ContainerEvent(name, "Normal", "Started", message)


def failed_event(spec: Mapping[str, Any], error: str) -> ContainerEvent:
    """Returns the event of a container that cannot be created or started."""
    return ContainerEvent(spec["name"], "Warning", "Failed", f"Error: {error}")


def pulling_event(spec: Mapping[str, Any]) -> ContainerEvent:
    """Returns the event of a container whose image is to be pulled."""
    return ContainerEvent(spec["name"], "Normal", "Pulling", f'Pulling image "{spec.get("image", "")}"')


def stopping_event(name: str) -> ContainerEvent:
    """Returns the event of a container that is stopped because its pod is deleted."""
    return ContainerEvent(name, "Normal", "Killing", f"Stopping container {name}")


def print_milliseconds(seconds: float) -> str:
    """Prints a duration as Go does, without what is shorter than a millisecond: 0s, 250ms, 1.5s, 1m30s."""
    milliseconds = int(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms" if milliseconds else "0s"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    larger = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{larger}{rest / 1000:g}s"


def record_container_events(recorder: Recorder, pod: StoredObject, events: Iterable[ContainerEvent]) -> None:
    """Records events about containers of a pod."""
    metadata = pod["metadata"]
    kinds = ("containers", "initContainers", "ephemeralContainers")
    fields = {one["name"]: kind for kind in kinds for one in pod["spec"].get(kind) or ()}
    for one in events:
        about = get_reference(pod)
        if one.container:
            about["fieldPath"] = f"spec.{fields[one.container]}{{{one.container}}}"
        message = one.message.replace("$POD", f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})")
        recorder.event(about, one.type, one.reason, message, host=pod["spec"].get("nodeName", ""))
