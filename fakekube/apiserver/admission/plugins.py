"""All admission plugins in their order, and which of them a server has: the default ones of kube-apiserver, changed by the flags
--enable-admission-plugins and --disable-admission-plugins.

The profile `apiserver` is a bare server as in envtest, without the ServiceAccount plugin; `cluster` has it. Plugins
that need a feature gate which is off, or that have no effect here, have a name but no code.

Specified by: pkg/kubeapiserver/options/plugins.go (AllOrderedPlugins, DefaultOffAdmissionPlugins).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from fakekube.apiserver.admission.certificates import CertificateApproval, CertificateSigning, CertificateSubjectRestriction
from fakekube.apiserver.admission.chain import Plugin
from fakekube.apiserver.admission.limit_ranger import LimitRanger
from fakekube.apiserver.admission.namespaces import NamespaceAutoProvision, NamespaceExists, NamespaceLifecycle
from fakekube.apiserver.admission.nodes import NodeDeclaredFeatureValidator, NodeRestriction, TaintNodesByCondition
from fakekube.apiserver.admission.pod_security import PodSecurity
from fakekube.apiserver.admission.pods import (
    DefaultTolerationSeconds,
    JobValidation,
    PodGroupProtection,
    PodGroupWorkloadExists,
    PodResizeValidator,
    PodTopologyLabels,
    RuntimeClass,
)
from fakekube.apiserver.admission.policy.plugins import MutatingAdmissionPolicy, ValidatingAdmissionPolicy
from fakekube.apiserver.admission.priority import Priority
from fakekube.apiserver.admission.resource_quota import ResourceQuota
from fakekube.apiserver.admission.service_account import ServiceAccount
from fakekube.apiserver.admission.storage import (
    DefaultIngressClass,
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from fakekube.apiserver.options import AdmissionOptions, ConfigurationError, read_configuration
from fakekube.base.golang.strconv import go_quote

#: All plugins of the real server, in the order in which they run.
_ORDERED: Sequence[str] = (
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PodGroupProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodGroupWorkloadExists",
    "NodeDeclaredFeatureValidator",
    "JobValidation",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
)

#: The plugins that are on by default.
_DEFAULT_ON = frozenset(
    {
        "NamespaceLifecycle",
        "LimitRanger",
        "ServiceAccount",
        "DefaultStorageClass",
        "PersistentVolumeClaimResize",
        "DefaultTolerationSeconds",
        "MutatingAdmissionWebhook",
        "ValidatingAdmissionWebhook",
        "ResourceQuota",
        "StorageObjectInUseProtection",
        "PodGroupProtection",
        "Priority",
        "TaintNodesByCondition",
        "RuntimeClass",
        "CertificateApproval",
        "CertificateSigning",
        "ClusterTrustBundleAttest",
        "CertificateSubjectRestriction",
        "DefaultIngressClass",
        "PodSecurity",
        "PodTopologyLabels",
        "MutatingAdmissionPolicy",
        "ValidatingAdmissionPolicy",
        "PodGroupWorkloadExists",
        "NodeDeclaredFeatureValidator",
        "JobValidation",
        "PodResizeValidator",
    }
)

#: The plugins that depend only on the attributes of a write.
_STATIC: Mapping[str, type[Plugin]] = {
    plugin.name: plugin
    for plugin in (
        NamespaceLifecycle,
        LimitRanger,
        ServiceAccount,
        TaintNodesByCondition,
        PodSecurity,
        Priority,
        DefaultTolerationSeconds,
        DefaultStorageClass,
        StorageObjectInUseProtection,
        PodGroupProtection,
        PodGroupWorkloadExists,
        JobValidation,
        PersistentVolumeClaimResize,
        RuntimeClass,
        CertificateApproval,
        CertificateSigning,
        CertificateSubjectRestriction,
        DefaultIngressClass,
        PodTopologyLabels,
        PodResizeValidator,
        ResourceQuota,
        NodeRestriction,
        NodeDeclaredFeatureValidator,
    )
}

#: The plugins that keep what they have read of one cluster.
_STATEFUL: tuple[type[Plugin], ...] = (MutatingAdmissionPolicy, ValidatingAdmissionPolicy)

#: The plugins with code that are off by default; `_import_optional_plugin` imports it.
_OPTIONAL = frozenset(
    {
        "AlwaysDeny",
        "AlwaysPullImages",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "LimitPodHardAntiAffinityTopology",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "OwnerReferencesPermissionEnforcement",
        "PodNodeSelector",
        "PodTolerationRestriction",
    }
)

_NO_OPTIONS = AdmissionOptions()

#: Profile → the plugins that are off by default there.
_DEFAULT_OFF_IN: Mapping[str, frozenset[str]] = {"apiserver": frozenset({"ServiceAccount"})}


class UnknownPluginError(ValueError):
    """An admission plugin is unknown, or both enabled and disabled; has the message of the real server."""


def plugins(
    profile: str, options: AdmissionOptions = _NO_OPTIONS, dynamic: Mapping[str, Plugin] | None = None
) -> Sequence[Plugin]:
    """Returns the plugins of a cluster, in order.

    Args:
        profile: `apiserver` or `cluster`: which plugins are on by default.
        options: the flags for plugins and their configuration.
        dynamic: the plugins that are created for one cluster, by name.

    Raises:
        UnknownPluginError: for a name that is unknown, or both enabled and disabled.
        ConfigurationError: for an invalid configuration.
    """
    on = _in_order(profile, frozenset(options.enable_admission_plugins), frozenset(options.disable_admission_plugins))
    made = {**_make_shared_plugins(), **{kind.name: kind() for kind in _STATEFUL}, **(dynamic or {})}
    settings = _read_configurations(options)
    for name in on if settings or options.enable_admission_plugins else ():
        if name in _OPTIONAL or (name in _STATIC and name in settings):
            made[name] = _configure(_STATIC.get(name) or _import_optional_plugin(name), settings.get(name))
    return [made[name] for name in on if name in made]


@cache
def _make_shared_plugins() -> Mapping[str, Plugin]:
    """Returns the plugins without a configuration, which all clusters of the process share."""
    return {name: kind() for name, kind in _STATIC.items()}


@lru_cache(maxsize=64)
def _in_order(profile: str, enabled: frozenset[str], disabled: frozenset[str]) -> Sequence[str]:
    """Returns the names of the plugins that are on, in order. Raises UnknownPluginError."""
    _check_names(enabled, disabled)
    on = (_DEFAULT_ON - _DEFAULT_OFF_IN.get(profile, frozenset()) | enabled) - disabled
    return tuple(name for name in _ORDERED if name in on)


def init_plugin(kind: type[Plugin], options: AdmissionOptions) -> Plugin:
    """Returns a plugin with its part of the configuration file. Raises ConfigurationError."""
    return _configure(kind, _read_configurations(options).get(kind.name))


def _read_configurations(options: AdmissionOptions) -> Mapping[str, Any]:
    """Returns the configurations in the file, by plugin name."""
    file = options.admission_control_config_file
    return read_configuration(file) if file else {}


def _import_optional_plugin(name: str) -> type[Plugin]:
    """Returns a plugin that is off by default; the module that most of them share is imported with the first of them."""
    from fakekube.apiserver.admission.optional_plugins import OPTIONAL_PLUGINS

    kinds: tuple[type[Plugin], ...] = (*OPTIONAL_PLUGINS, NamespaceAutoProvision, NamespaceExists)
    return next(kind for kind in kinds if kind.name == name)


def _configure(kind: type[Plugin], settings: Any) -> Plugin:
    try:
        return kind.from_configuration(settings)
    except ConfigurationError as error:
        raise ConfigurationError(f"couldn't init admission plugin {go_quote(kind.name)}: {error}") from None


def _check_names(enabled: frozenset[str], disabled: frozenset[str]) -> None:
    for flag, names in (("enable", enabled), ("disable", disabled)):
        unknown = sorted(names - frozenset(_ORDERED))
        if unknown:
            raise UnknownPluginError(f"{flag}-admission-plugins plugin {go_quote(unknown[0])} is unknown")
    both = sorted(enabled & disabled)
    if both:
        raise UnknownPluginError(f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped")
