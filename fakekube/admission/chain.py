"""The admission chain: what may change or refuse a write after authorization and before it is stored.

The chain keeps, for each resource and operation, the plugins that look at it, so that others cost nothing. All
changing halves run before the object is validated, all checking ones after.

Specified by: k8s.io/apiserver/pkg/admission; pkg/kubeapiserver/options/plugins.go for the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fakekube.admission.plugin import Attributes, Operation, Plugin

__all__ = ["Chain"]


class Chain:
    """Plugins in their order."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self._plugins = tuple(plugins)
        self._applying: dict[tuple[str, str, str, Operation], Sequence[Plugin]] = {}

    def admit(self, attributes: Attributes) -> None:
        """Run the changing half. Raises StatusError."""
        for plugin in self._for(attributes):
            plugin.admit(attributes)

    def validate(self, attributes: Attributes) -> None:
        """Run the checking half. Raises StatusError."""
        for plugin in self._for(attributes):
            plugin.validate(attributes)

    def _for(self, attributes: Attributes) -> Sequence[Plugin]:
        resource = attributes.resource
        key = (resource.group, resource.plural, attributes.subresource, attributes.operation)
        found = self._applying.get(key)
        if found is None:
            found = self._applying[key] = [p for p in self._plugins if _applies(p, *key)]
        return found


def _applies(plugin: Plugin, group: str, plural: str, subresource: str, operation: Operation) -> bool:
    if operation not in plugin.operations:
        return False
    if plugin.subresources is not None and subresource not in plugin.subresources:
        return False
    return plugin.resources is None or (group, plural) in plugin.resources
