"""Admission: the chain of admission plugins, in the order of kube-apiserver."""

from __future__ import annotations

from collections.abc import Mapping

from fakekube.apiserver.admission.chain import Attributes, Chain, Operation, Plugin
from fakekube.apiserver.admission.plugins import UnknownPluginError, init_plugin, plugins
from fakekube.apiserver.options import AdmissionOptions, ConfigurationError

__all__ = ["Attributes", "Chain", "ConfigurationError", "Operation", "Plugin", "UnknownPluginError", "chain_of", "init_plugin"]


def chain_of(profile: str, options: AdmissionOptions | None = None, dynamic: Mapping[str, Plugin] | None = None) -> Chain:
    """Builds the admission chain of a cluster; see `profiles.plugins` for the arguments and errors."""
    return Chain(plugins(profile, options or AdmissionOptions(), dynamic))
