"""Admission: the plugins of a plain kube-apiserver, in their order."""

from __future__ import annotations

from fakekube.admission.chain import Chain
from fakekube.admission.plugin import Attributes, Operation, Plugin
from fakekube.admission.profiles import plugins

__all__ = ["Attributes", "Chain", "Operation", "Plugin", "chain_of"]


def chain_of(profile: str) -> Chain:
    """The admission chain of a profile, `apiserver` or `cluster`."""
    return Chain(plugins(profile))
