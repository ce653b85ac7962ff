"""The plugins that look at the fields of a node; `node_resources` looks at its resources.

* NodeName restricts a pod to the node in spec.nodeName.
* NodeUnschedulable: only pods that tolerate the taint for unschedulable nodes run on cordoned nodes.
* NodePorts checks whether the host ports of the pod are free. A port is used per protocol and address.
* NodeAffinity: nodeSelector, and required and preferred node affinity.
* NodeDeclaredFeatures: nodes whose kubelet declares the features that the pod needs.
* TaintToleration: NoSchedule and NoExecute taints exclude pods that do not tolerate them; PreferNoSchedule lowers the score.
* ImageLocality prefers nodes that have the images of the pod.

Specified by: pkg/scheduler/framework/plugins/{nodename,nodeunschedulable,nodeports,nodeaffinity,nodedeclaredfeatures,
tainttoleration,imagelocality}, pkg/scheduler/framework/plugins/helper/normalize_score.go,
k8s.io/component-helpers/nodedeclaredfeatures/features (InferForScheduling),
k8s.io/kube-scheduler/framework/types.go (HostPortInfo).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery.selectors.nodes import find_untolerated_taint, preferred_weight, required_node_affinity, tolerates_all
from fakekube.apis.core.pods.visitor import containers, restarts_all_containers
from fakekube.apis.well_known import TAINT_EFFECT_NO_SCHEDULE, TAINT_EFFECT_PREFER_NO_SCHEDULE, TAINT_NODE_UNSCHEDULABLE
from fakekube.controllers.scheduler.framework import (
    MAX_NODE_SCORE,
    Code,
    Cycle,
    FilterPlugin,
    HostPort,
    NodeInfo,
    PreFilterRejection,
    ScorePlugin,
    Status,
)


def default_normalize(scores: list[int], *, reverse: bool = False) -> list[int]:
    """Scales scores so that the highest is MAX_NODE_SCORE, or with `reverse` 0 (DefaultNormalizeScore)."""
    largest = max(scores, default=0)
    if largest == 0:
        return [MAX_NODE_SCORE] * len(scores) if reverse else scores
    scaled = [MAX_NODE_SCORE * score // largest for score in scores]
    return [MAX_NODE_SCORE - score for score in scaled] if reverse else scaled


class NodeName(FilterPlugin):
    """Rejects all nodes but the one in spec.nodeName."""

    name = "NodeName"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) didn't match the requested node name",), name)

    def __init__(self, node_name: str) -> None:
        self._node_name = node_name

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        node_name = cycle.spec.get("nodeName")
        return cls(node_name) if node_name else None

    def filter(self, node: NodeInfo) -> Status | None:
        return None if node.name == self._node_name else self.refusal


_UNSCHEDULABLE_TAINT: Final = {"key": TAINT_NODE_UNSCHEDULABLE, "effect": TAINT_EFFECT_NO_SCHEDULE}


class NodeUnschedulable(FilterPlugin):
    """Rejects cordoned nodes."""

    name = "NodeUnschedulable"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) were unschedulable",), name)

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        return None if tolerates_all(cycle.spec.get("tolerations") or (), _UNSCHEDULABLE_TAINT) else cls()

    def filter(self, node: NodeInfo) -> Status | None:
        return self.refusal if (node.obj.get("spec") or {}).get("unschedulable") else None


#: The address of a host port that is used on every address of the node (DefaultBindAllHostIP).
_EVERY_ADDRESS: Final = "0.0.0.0"


class NodePorts(FilterPlugin):
    """Rejects nodes on which a host port is in use."""

    name = "NodePorts"
    refusal = Status(Code.UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",), name)

    def __init__(self, ports: tuple[HostPort, ...]) -> None:
        self._ports = ports

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        return cls(cycle.pod.host_ports) if cycle.pod.host_ports else None

    def filter(self, node: NodeInfo) -> Status | None:
        in_use = any(
            _ports_conflict(mine, other) for ports in node.host_ports.values() for other in ports for mine in self._ports
        )
        return self.refusal if in_use else None


def _ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Reports whether two host ports are the same port of the same address (CheckConflict)."""
    if one[1:] != other[1:]:
        return False
    return one[0] == other[0] or _EVERY_ADDRESS in (one[0], other[0])


class NodeAffinity(FilterPlugin):
    """Rejects nodes that do not match nodeSelector or required node affinity."""

    name = "NodeAffinity"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",), name)
    conflict = Status(Code.UNRESOLVABLE, ("pod affinity terms conflict",), name)

    def __init__(self, matches: Callable[[Mapping[str, Any]], bool], names: frozenset[str] | None) -> None:
        self._matches = matches
        self.node_names = names

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        matches = required_node_affinity(cycle.spec)
        if matches is None:
            return None
        names = _node_names(cycle.spec)
        if names is not None and not names:
            raise PreFilterRejection(cls.conflict)
        return cls(matches, names)

    def filter(self, node: NodeInfo) -> Status | None:
        return None if self._matches(node.obj) else self.refusal


def _node_names(spec: Mapping[str, Any]) -> frozenset[str] | None:
    """Returns the nodes that the terms of required affinity name; None if a term does not restrict the name."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms")
    if not terms:
        return None
    names: frozenset[str] = frozenset()
    for term in terms:
        of_term: frozenset[str] | None = None
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("operator") == "In":
                values = frozenset(field.get("values") or ())
                of_term = values if of_term is None else of_term & values
        if of_term is None:
            return None
        names |= of_term
    return names


def _has_users_in_host_network(spec: Mapping[str, Any]) -> bool:
    return bool(spec.get("hostNetwork")) and spec.get("hostUsers") is False


def _has_bind_mount_options(spec: Mapping[str, Any]) -> bool:
    return any(mount.get("bindMountOptions") for container in containers(spec) for mount in container.get("volumeMounts") or ())


#: Feature → the first minor of whose scheduler it is known, and whether a pod with this spec needs it.
_FEATURES: Final[Mapping[str, tuple[int, Callable[[Mapping[str, Any]], bool]]]] = {
    "RestartAllContainersOnContainerExits": (35, restarts_all_containers),
    "UserNamespacesHostNetworkSupport": (36, _has_users_in_host_network),
    "VolumeBindMountOptions": (37, _has_bind_mount_options),
}


class NodeDeclaredFeatures(FilterPlugin):
    """Rejects nodes whose kubelet does not declare all features that the pod needs."""

    name = "NodeDeclaredFeatures"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) didn't match Pod's required features",), name)

    def __init__(self, required: Sequence[str]) -> None:
        self._required = required

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        if not cycle.node_declared_features:
            return None
        required = [name for name, (since, needs) in _FEATURES.items() if since <= cycle.minor and needs(cycle.spec)]
        return cls(required) if required else None

    def filter(self, node: NodeInfo) -> Status | None:
        declared = (node.obj.get("status") or {}).get("declaredFeatures") or ()
        return None if all(one in declared for one in self._required) else self.refusal


class NodeAffinityScore(ScorePlugin):
    """Scores the weights of matching preferred terms."""

    name = "NodeAffinity"
    weight = 2

    def __init__(self, preferred: Sequence[Mapping[str, Any]]) -> None:
        self._preferred = preferred

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        affinity = (cycle.spec.get("affinity") or {}).get("nodeAffinity") or {}
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution")
        return cls(preferred) if preferred else None

    def score(self, node: NodeInfo) -> int:
        return preferred_weight(self._preferred, node.obj)

    def normalize(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        return default_normalize(scores)


#: The first minor whose message does not name the taint.
_ANY_TAINT_SINCE: Final = 34

Tolerations = Sequence[Mapping[str, Any]]


class TaintToleration(FilterPlugin):
    """Rejects nodes with a NoSchedule or NoExecute taint that is not tolerated."""

    name = "TaintToleration"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) had untolerated taint(s)",), name)

    def __init__(self, tolerations: Tolerations, *, names_taint: bool = False) -> None:
        self._tolerations, self._names_taint = tolerations, names_taint

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        return cls(cycle.spec.get("tolerations") or (), names_taint=cycle.minor < _ANY_TAINT_SINCE)

    def filter(self, node: NodeInfo) -> Status | None:
        found = find_untolerated_taint(node.taints, self._tolerations) if node.taints else None
        if not found:
            return None
        if not self._names_taint:
            return self.refusal
        text = f"node(s) had untolerated taint {{{found['key']}: {found.get('value', '')}}}"
        return Status(Code.UNRESOLVABLE, (text,), self.name)


class TaintTolerationScore(ScorePlugin):
    """Scores the number of PreferNoSchedule taints that are not tolerated: the fewer, the higher."""

    name = "TaintToleration"
    weight = 3

    def __init__(self, tolerations: Tolerations) -> None:
        self._tolerations = tolerations

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        if not any(taint.get("effect") == TAINT_EFFECT_PREFER_NO_SCHEDULE for node in nodes for taint in node.taints):
            return None
        effects = ("", None, TAINT_EFFECT_PREFER_NO_SCHEDULE)
        return cls([one for one in cycle.spec.get("tolerations") or () if one.get("effect") in effects])

    def score(self, node: NodeInfo) -> int:
        preferences = (taint for taint in node.taints if taint.get("effect") == TAINT_EFFECT_PREFER_NO_SCHEDULE)
        return sum(not tolerates_all(self._tolerations, taint) for taint in preferences)

    def normalize(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        return default_normalize(scores, reverse=True)


_MEGABYTE: Final = 1024 * 1024
#: The sizes in bytes for the lowest and the highest score (minThreshold, maxContainerThreshold).
_MIN_THRESHOLD: Final = 23 * _MEGABYTE
_MAX_CONTAINER_THRESHOLD: Final = 1000 * _MEGABYTE


class ImageLocality(ScorePlugin):
    """Scores the size of the images on the node; images that few nodes have count less."""

    name = "ImageLocality"

    def __init__(self, images: Sequence[str], holders: Mapping[str, int], nodes: int) -> None:
        self._images, self._holders, self._nodes = images, holders, nodes

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        holders = Counter(name for node in cycle.nodes for name in _image_sizes(node))
        if not holders:
            return None
        spec = cycle.spec
        containers = (*(spec.get("initContainers") or ()), *spec["containers"])
        images = [_normalize_image_name(container.get("image") or "") for container in containers]
        return cls(images, holders, len(cycle.snapshot.nodes))

    def score(self, node: NodeInfo) -> int:
        sizes = _image_sizes(node)
        total = sum(int(sizes[image] * (self._holders[image] / self._nodes)) for image in self._images if image in sizes)
        largest = _MAX_CONTAINER_THRESHOLD * len(self._images)
        return MAX_NODE_SCORE * (min(max(total, _MIN_THRESHOLD), largest) - _MIN_THRESHOLD) // (largest - _MIN_THRESHOLD)


def _image_sizes(node: NodeInfo) -> dict[str, int]:
    """Returns the sizes of a node's images in bytes, by all their names."""
    images = (node.obj.get("status") or {}).get("images") or ()
    return {name: image.get("sizeBytes") or 0 for image in images for name in image.get("names") or ()}


def _normalize_image_name(image: str) -> str:
    """Returns the image with the tag `latest`, if it has none (normalizedImageName)."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
