"""A serializer for syrupy: `assert fakekube == snapshot(extension_class=ManifestExtension)`.

The snapshot is a YAML stream of the objects with stable names in the place of what differs by chance (`Cluster.normalised`). What
is compared is a cluster, an object, or a list of objects. Needs the package syrupy (`fakekube[snapshots]`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

if TYPE_CHECKING:
    from collections.abc import Mapping


class ManifestExtension(SingleFileSnapshotExtension):  # type: ignore[misc, unused-ignore]
    """Keeps each snapshot in a file of its own, `NAME.yaml`."""

    _write_mode: ClassVar[Any] = WriteMode.TEXT
    file_extension = "yaml"
    _file_extension = "yaml"  # of older versions of syrupy

    def serialize(self, data: Any, **_options: Any) -> str:
        """Returns the YAML stream of a cluster, an object or a list of objects."""
        from fakekube.apimachinery.codecs import yaml
        from fakekube.powers.export import normalise_objects

        if hasattr(data, "normalised"):
            objects = data.normalised()
        else:
            given: list[Mapping[str, Any]] = [data] if isinstance(data, dict) else list(data)
            objects = normalise_objects(dict(one) for one in given)
        return "---\n".join(yaml.dumps(one).decode() for one in objects)
