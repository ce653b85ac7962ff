"""Admission: the chain of admission plugins, in the order of kube-apiserver.

`chain` runs the plugins, `plugins` has their order and chooses those of a server. A module has one plugin (`limit_ranger`,
`pod_security`, `priority`, `resource_quota`, `service_account`), or those about one subject (`certificates`, `namespaces`,
`nodes` with NodeRestriction, `pods`, `storage`); most of those that are off by default are in `optional_plugins`. `policy` has
the admission policies, `apiserver.webhooks` the plugins that call webhooks.

Specified by: k8s.io/apiserver/pkg/admission, plugin/pkg/admission.
"""

from __future__ import annotations

from collections.abc import Mapping

from fakekube.apiserver.admission.chain import Attributes, Chain, Operation, Plugin
from fakekube.apiserver.admission.plugins import UnknownPluginError, init_plugin, plugins
from fakekube.apiserver.options import AdmissionOptions, ConfigurationError

__all__ = ["Attributes", "Chain", "ConfigurationError", "Operation", "Plugin", "UnknownPluginError", "chain_of", "init_plugin"]


def chain_of(profile: str, options: AdmissionOptions | None = None, dynamic: Mapping[str, Plugin] | None = None) -> Chain:
    """Builds the admission chain of a cluster; see `plugins.plugins` for the arguments and errors."""
    return Chain(plugins(profile, options or AdmissionOptions(), dynamic))
