"""The deprecated versions of APIs, and the warning in every response of their kinds.

Specified by: k8s.io/apiserver/pkg/endpoints/deprecation/deprecation.go (WarningMessage); k8s.io/api/**/
zz_generated.prerelease-lifecycle.go of each minor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from fakekube.base.objects import group_version


class Lifecycle(NamedTuple):
    """When a version of a kind is deprecated and gone. All numbers are of minors."""

    deprecated: int
    removed: int | None = None
    """The minor that serves it no more; by default three after the deprecation."""
    replacement: str = ""
    """The version of the group that comes instead, or the API version and kind of another group."""
    since: int = 0
    """The first minor in which this row holds."""

    def warning(self, group: str, version: str, kind: str) -> str:
        """Returns the warning for a kind in a version of its group."""
        api_version = group_version(group, version)
        removed = self.deprecated + 3 if self.removed is None else self.removed
        text = f"{api_version} {kind} is deprecated in v1.{self.deprecated}+"
        text += f", unavailable in v1.{removed}+" if removed else ""
        if not self.replacement:
            return text
        return f"{text}; use {self.replacement if ' ' in self.replacement else f'{group}/{self.replacement} {kind}'}"


#: (group, version) of all kinds, or with the kind → its rows; the last one that holds in a minor counts.
_LIFECYCLES: Final[Mapping[tuple[str, ...], tuple[Lifecycle, ...]]] = {
    ("", "v1", "ComponentStatus"): (Lifecycle(19, 0),),
    ("", "v1", "Endpoints"): (Lifecycle(33, 0, "discovery.k8s.io/v1 EndpointSlice"),),
    ("admissionregistration.k8s.io", "v1alpha1"): (Lifecycle(35),),
    ("admissionregistration.k8s.io", "v1beta1"): (Lifecycle(37), Lifecycle(37, replacement="v1", since=36)),
    ("certificates.k8s.io", "v1alpha1", "ClusterTrustBundle"): (Lifecycle(34),),
    ("certificates.k8s.io", "v1alpha1", "PodCertificateRequest"): (Lifecycle(37),),
    ("certificates.k8s.io", "v1beta1", "ClusterTrustBundle"): (
        Lifecycle(36), Lifecycle(37, since=36), Lifecycle(37, replacement="v1", since=37),
    ),
    ("certificates.k8s.io", "v1beta1", "PodCertificateRequest"): (
        Lifecycle(38), Lifecycle(37, replacement="v1", since=37),
    ),
    ("coordination.k8s.io", "v1alpha2"): (Lifecycle(35),),
    ("coordination.k8s.io", "v1beta1"): (Lifecycle(36),),
    ("networking.k8s.io", "v1beta1"): (Lifecycle(34),),
    ("resource.k8s.io", "v1alpha3", "DeviceTaintRule"): (Lifecycle(36),),
    ("resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest"): (Lifecycle(39),),
    ("resource.k8s.io", "v1beta1"): (Lifecycle(35),),
    ("resource.k8s.io", "v1beta2"): (Lifecycle(36),),
    ("resource.k8s.io", "v1beta2", "DeviceTaintRule"): (Lifecycle(39),),
    ("storage.k8s.io", "v1alpha1"): (Lifecycle(32), Lifecycle(32, replacement="v1", since=34)),
    ("storage.k8s.io", "v1beta1"): (Lifecycle(34, replacement="v1"),),
    ("storagemigration.k8s.io", "v1alpha1"): (Lifecycle(33),),
    ("storagemigration.k8s.io", "v1beta1"): (
        Lifecycle(38), Lifecycle(37, replacement="v1", since=37),
    ),
}  # fmt: skip


def deprecation_of(group: str, version: str, kind: str, minor: int) -> str:
    """Returns the warning of a minor in every response of a kind; "" if it is not deprecated."""
    rows = _LIFECYCLES.get((group, version, kind)) or _LIFECYCLES.get((group, version)) or ()
    found = [row for row in rows if row.since <= minor]
    if not found or found[-1].deprecated > minor:
        return ""
    return found[-1].warning(group, version, kind)
