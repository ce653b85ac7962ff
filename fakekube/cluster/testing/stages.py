"""kwok's Stage files for a cluster: `cluster.stages.load("pod-general.yaml")`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from fakekube.cluster.testing.manifests import Source, objects

if TYPE_CHECKING:
    from fakekube.nodes.stages.stage import Stage

__all__ = ["Stages"]


class Stages:
    """The stages of a cluster. If there are stages for pods, they replace the default behaviour of pods.

    Args:
        known: the stages by name, which the controllers read.
        changed: called after each change.
    """

    def __init__(self, known: dict[str, Any], changed: Callable[[], None]) -> None:
        self._known: dict[str, Stage] = known
        self._changed = changed

    def load(self, *sources: Source) -> list[str]:
        """Adds stages: files, folders, YAML text or objects; stages of the same name are replaced. Returns their
        names.

        Raises ManifestError for an invalid manifest, and StageError, a ValueError, for an invalid or unsupported
        stage.
        """
        from fakekube.nodes.stages.stage import new_stage

        made = {obj["metadata"]["name"]: new_stage(obj) for obj in objects(*sources)}
        self._known |= {name: stage for name, stage in made.items() if stage is not None}
        self._changed()
        return list(made)

    def remove(self, name: str) -> None:
        """Removes a stage; unknown names are ignored."""
        self._known.pop(name, None)
        self._changed()

    def clear(self) -> None:
        """Removes all stages: pods and nodes have their default behaviour again."""
        self._known.clear()
        self._changed()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._known))

    def __len__(self) -> int:
        return len(self._known)
