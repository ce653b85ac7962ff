"""The admission chain: what may change or refuse a write after authorization and before it is stored.

The chain keeps, for each resource and operation, the plugins that look at it, so that others cost nothing. All
changing halves run before the object is validated, all checking ones after. The changing halves run a second time
when one of them asks for it; which of them then do something again, each decides by the reinvocation context.

Specified by: k8s.io/apiserver/pkg/admission (chain.go, reinvocation.go); pkg/kubeapiserver/options/plugins.go for the
order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from fakekube.admission.plugin import Attributes, Operation, Plugin

__all__ = ["Chain"]


class Chain:
    """Plugins in their order."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self._plugins = tuple(plugins)
        self._applying: dict[tuple[str, str, str, Operation], _Halves] = {}

    def admit(self, attributes: Attributes) -> None:
        """Run the changing half, and once more if a plugin asks for it. Raises StatusError."""
        plugins = self._for(attributes).admit
        for admit in plugins:
            admit(attributes)
        if attributes.reinvocation.should_reinvoke:
            attributes.reinvocation.is_reinvoke = True
            for admit in plugins:
                admit(attributes)

    def validate(self, attributes: Attributes) -> None:
        """Run the checking half. Raises StatusError."""
        for validate in self._for(attributes).validate:
            validate(attributes)

    def _for(self, attributes: Attributes) -> _Halves:
        resource = attributes.resource
        key = (resource.group, resource.plural, attributes.subresource, attributes.operation)
        found = self._applying.get(key)
        if found is None:
            found = self._applying[key] = _halves([p for p in self._plugins if _applies(p, *key)])
        return found


class _Halves(NamedTuple):
    """What some plugins do, in their order; most of them have one half only."""

    admit: Sequence[Callable[[Attributes], None]]
    validate: Sequence[Callable[[Attributes], None]]


def _halves(plugins: Sequence[Plugin]) -> _Halves:
    return _Halves(
        [plugin.admit for plugin in plugins if type(plugin).admit is not Plugin.admit],
        [plugin.validate for plugin in plugins if type(plugin).validate is not Plugin.validate],
    )


def _applies(plugin: Plugin, group: str, plural: str, subresource: str, operation: Operation) -> bool:
    if operation not in plugin.operations:
        return False
    if plugin.subresources is not None and subresource not in plugin.subresources:
        return False
    return plugin.resources is None or (group, plural) in plugin.resources
