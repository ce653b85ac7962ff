"""Admission: the plugins of a plain kube-apiserver, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fakekube.admission.chain import Chain
from fakekube.admission.plugin import Attributes, Operation, Plugin
from fakekube.admission.profiles import UnknownPluginError, plugins

__all__ = ["Attributes", "Chain", "Operation", "Plugin", "UnknownPluginError", "chain_of"]


def chain_of(
    profile: str, *, enabled: Iterable[str] = (), disabled: Iterable[str] = (), dynamic: Mapping[str, Plugin] | None = None,
) -> Chain:
    """The admission chain of a cluster; see `profiles.plugins` for the arguments and errors."""
    return Chain(plugins(profile, enabled=enabled, disabled=disabled, dynamic=dynamic))
