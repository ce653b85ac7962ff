"""kwok's Stage files for a cluster: `cluster.stages.load("pod-general.yaml")`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from fakekube.testing.manifests import Source, objects

if TYPE_CHECKING:
    from fakekube.nodes.stages.stage import Stage

__all__ = ["Stages"]


class Stages:
    """The stages of a cluster. While there are some for pods, pods do what these say, and nothing else.

    Args:
        known: where controllers find them, by name.
        changed: called after each change.
    """

    def __init__(self, known: dict[str, Any], changed: Callable[[], None]) -> None:
        self._known: dict[str, Stage] = known
        self._changed = changed

    def load(self, *sources: Source) -> list[str]:
        """Add stages: files, folders, YAML text or objects; those of the same name are replaced. Returns their names.

        Raises ManifestError for what is no manifest, and StageError, a ValueError, for what is no stage or is not supported.
        """
        from fakekube.nodes.stages.stage import stage_of

        made = {obj["metadata"]["name"]: stage_of(obj) for obj in objects(*sources)}
        self._known |= {name: stage for name, stage in made.items() if stage is not None}
        self._changed()
        return list(made)

    def remove(self, name: str) -> None:
        """Take one away; unknown names are ignored."""
        self._known.pop(name, None)
        self._changed()

    def clear(self) -> None:
        """Take all away: pods and nodes do again what they do by default."""
        self._known.clear()
        self._changed()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._known))

    def __len__(self) -> int:
        return len(self._known)
