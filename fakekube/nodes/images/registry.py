"""The images of a cluster, by name: those that its user sets, and those that every cluster knows; and which do not exist.

Invariant: an image that the user sets takes precedence.

Specified by: pkg/kubelet/images/image_manager.go (EnsureImageExists).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from fnmatch import fnmatchcase
from typing import Final

from fakekube.controllers.objects import StoredObject
from fakekube.nodes.images.image import Image
from fakekube.nodes.images.known import find_known
from fakekube.nodes.plans import ContainerPlan, PodPlan

#: Why an image that does not exist cannot be pulled.
NOT_FOUND: Final = "failed to resolve reference: not found"


def names_of(image: str) -> tuple[str, ...]:
    """Returns the names under which an image is looked up: as it is, without the tag, and their last parts."""
    untagged = image.partition("@")[0]
    if untagged.rfind(":") > untagged.rfind("/"):
        untagged = untagged[: untagged.rfind(":")]
    return image, untagged, image.rpartition("/")[2], untagged.rpartition("/")[2]


class Images(MutableMapping[str, Image]):
    """The images of a cluster: `cluster.images["ghcr.io/me/app"] = Image(…)`.

    A name is that of an image with or without its tag, or its last part. Names that are not set are those of `known`.

    Args:
        changed: called after each change.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._own: dict[str, Image] = {}
        self.missing: list[str] = []
        """Patterns of names of images that do not exist, with `*` and `?`."""

    def __setitem__(self, name: str, image: Image) -> None:
        self._own[name] = image
        self._changed()

    def __delitem__(self, name: str) -> None:
        del self._own[name]
        self._changed()

    def __getitem__(self, name: str) -> Image:
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._own))

    def __len__(self) -> int:
        return len(self._own)

    def find(self, image: str) -> Image | None:
        """Returns the image with this name; None if it is not known."""
        if self._own:
            for name in names_of(image):
                if name in self._own:
                    return self._own[name]
        return find_known(image)

    def runs(self, container: StoredObject, *, completes: bool = False) -> bool:
        """Reports whether the main program of a container is known, see `Image.runs`."""
        found = self.find(container.get("image") or "")
        return found is not None and found.runs(container, completes=completes)

    def plan_without(self, pod: StoredObject) -> PodPlan | None:
        """Returns the plan of a pod of whose images some cannot be pulled; None if all can."""
        missing = {
            one["name"]: ContainerPlan(pull_error=NOT_FOUND)
            for kind in ("initContainers", "containers")
            for one in pod["spec"].get(kind) or ()
            if self.is_missing(one.get("image") or "")
        }
        return PodPlan(containers=missing) if missing else None

    def is_missing(self, image: str) -> bool:
        """Reports whether an image cannot be pulled: its registry is below `invalid.`, or a pattern of `missing` matches."""
        registry = image.partition("/")[0]
        if "/" in image and (registry.startswith("invalid.") or registry.endswith(".invalid")):
            return True
        return bool(self.missing) and any(fnmatchcase(name, pattern) for name in names_of(image) for pattern in self.missing)


#: The images of a cluster whose user has set none.
DEFAULT: Final = Images()
