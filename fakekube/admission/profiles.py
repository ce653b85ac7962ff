"""Which plugins a server runs, in which order: the default-on ones of a kube-apiserver.

The profile `apiserver` is a bare server as envtest runs it, without the ServiceAccount plugin; `cluster`
has it.

Specified by: pkg/kubeapiserver/options/plugins.go (AllOrderedPlugins, DefaultOffAdmissionPlugins).
"""

from __future__ import annotations

from collections.abc import Sequence

from fakekube.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from fakekube.admission.ingresses import DefaultIngressClass
from fakekube.admission.limit_ranger import LimitRanger
from fakekube.admission.namespace_lifecycle import NamespaceLifecycle
from fakekube.admission.nodes import TaintNodesByCondition
from fakekube.admission.plugin import Plugin
from fakekube.admission.pod_security import PodSecurity
from fakekube.admission.pods import (
    DefaultTolerationSeconds,
    PodResizeValidator,
    PodTopologyLabels,
    Priority,
    RuntimeClass,
)
from fakekube.admission.resource_quota import ResourceQuota
from fakekube.admission.service_accounts import ServiceAccount
from fakekube.admission.storage import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)

__all__ = ["plugins"]

#: In the order in which they run.
_ORDERED: Sequence[type[Plugin]] = (
    NamespaceLifecycle,
    LimitRanger,
    ServiceAccount,
    TaintNodesByCondition,
    PodSecurity,
    Priority,
    DefaultTolerationSeconds,
    DefaultStorageClass,
    StorageObjectInUseProtection,
    PersistentVolumeClaimResize,
    RuntimeClass,
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    DefaultIngressClass,
    PodTopologyLabels,
    PodResizeValidator,
    ResourceQuota,
)

_NOT_IN: dict[str, frozenset[str]] = {"apiserver": frozenset({"ServiceAccount"})}


def plugins(profile: str) -> Sequence[Plugin]:
    """The plugins of a profile, in their order."""
    off = _NOT_IN.get(profile, frozenset())
    return [plugin() for plugin in _ORDERED if plugin.name not in off]
