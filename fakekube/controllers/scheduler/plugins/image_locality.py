"""ImageLocality: prefers nodes that have the images of the pod.

Specified by: pkg/scheduler/framework/plugins/imagelocality/image_locality.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fakekube.controllers.scheduler.cycle import Cycle
from fakekube.controllers.scheduler.framework import MAX_NODE_SCORE, ScorePlugin
from fakekube.controllers.scheduler.nodeinfo import NodeInfo

__all__ = ["ImageLocality"]

MEGABYTE = 1024 * 1024
#: The sizes for the lowest and the highest score (minThreshold, maxContainerThreshold).
SMALLEST = 23 * MEGABYTE
LARGEST_OF_CONTAINER = 1000 * MEGABYTE


class ImageLocality(ScorePlugin):
    """Scores the size of the images on the node; images that few nodes have count less."""

    name = "ImageLocality"

    def __init__(self, images: Sequence[str], holders: Mapping[str, int], nodes: int) -> None:
        self._images, self._holders, self._nodes = images, holders, nodes

    @classmethod
    def pre_score(cls, cycle: Cycle, nodes: Sequence[NodeInfo]) -> ScorePlugin | None:
        holders = Counter(name for node in cycle.nodes for name in _sizes(node))
        if not holders:
            return None
        spec = cycle.spec
        containers = (*(spec.get("initContainers") or ()), *spec["containers"])
        images = [_normalized(container.get("image") or "") for container in containers]
        return cls(images, holders, len(cycle.snapshot.nodes))

    def score(self, node: NodeInfo) -> int:
        sizes = _sizes(node)
        total = sum(int(sizes[image] * (self._holders[image] / self._nodes)) for image in self._images if image in sizes)
        largest = LARGEST_OF_CONTAINER * len(self._images)
        return MAX_NODE_SCORE * (min(max(total, SMALLEST), largest) - SMALLEST) // (largest - SMALLEST)


def _sizes(node: NodeInfo) -> dict[str, int]:
    images = (node.obj.get("status") or {}).get("images") or ()
    return {name: image.get("sizeBytes") or 0 for image in images for name in image.get("names") or ()}


def _normalized(image: str) -> str:
    """Returns the image with the tag `latest`, if it has none (normalizedImageName)."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
