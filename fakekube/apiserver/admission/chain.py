"""The admission chain: mutates and validates writes after authorization and before storage.

The chain caches the plugins by resource and operation, so that others cost nothing. All mutating plugins run before
the object is validated, all validating ones after. The mutating plugins run a second time if one of them requests it;
each decides by the reinvocation context whether it acts again.

Specified by: k8s.io/apiserver/pkg/admission (chain.go, reinvocation.go); pkg/kubeapiserver/options/plugins.go for the
order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from fakekube.apiserver.admission.plugin import Attributes, Operation, Plugin


class Chain:
    """An ordered list of plugins."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self._plugins = tuple(plugins)
        self._applying: dict[tuple[str, str, str, Operation, bool], _Halves] = {}

    def admit(self, attributes: Attributes) -> None:
        """Runs the mutating plugins, and again if one requests reinvocation. Raises StatusError."""
        plugins = self._for(attributes).admit
        for admit in plugins:
            admit(attributes)
        reinvocation = attributes.reinvocation
        if reinvocation is not None and reinvocation.should_reinvoke:
            reinvocation.is_reinvoke = True
            for admit in plugins:
                admit(attributes)

    def validate(self, attributes: Attributes) -> None:
        """Runs the validating plugins. Raises StatusError."""
        for validate in self._for(attributes).validate:
            validate(attributes)

    def _for(self, attributes: Attributes) -> _Halves:
        resource, dynamic = attributes.resource, attributes.context.configured.webhooks_or_policies
        key = (resource.group, resource.plural, attributes.subresource, attributes.operation, dynamic)
        found = self._applying.get(key)
        if found is None:
            if dynamic:  # not cached beyond this cluster: those plugins belong to it
                found = _applying(self._plugins, *key[:4])
            else:  # the clusters of a process share these plugins, and so the result
                found = _known(tuple([plugin for plugin in self._plugins if not plugin.dynamic]), *key[:4])
            self._applying[key] = found
        return found


class _Halves(NamedTuple):
    """The mutating and validating methods of some plugins, in order; most plugins have one of them."""

    admit: Sequence[Callable[[Attributes], None]]
    validate: Sequence[Callable[[Attributes], None]]


def _applying(plugins: tuple[Plugin, ...], group: str, plural: str, subresource: str, operation: Operation) -> _Halves:
    """Returns the methods of those plugins that apply to a resource and an operation."""
    able = [plugin for plugin in plugins if _applies(plugin, group, plural, subresource, operation)]
    return _Halves(
        [plugin.admit for plugin in able if type(plugin).admit is not Plugin.admit],
        [plugin.validate for plugin in able if type(plugin).validate is not Plugin.validate],
    )


_known = lru_cache(maxsize=512)(_applying)


def _applies(plugin: Plugin, group: str, plural: str, subresource: str, operation: Operation) -> bool:
    if operation not in plugin.operations:
        return False
    if plugin.subresources is not None and subresource not in plugin.subresources:
        return False
    return plugin.resources is None or (group, plural) in plugin.resources
