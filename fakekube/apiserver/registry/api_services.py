"""The APIServices of the group versions that a server serves itself (autoregister), and their priorities.

The APIServices of a fresh server are among the facts of its minor; those of group versions that only --runtime-config or
--emulated-version switch on or off are made and dropped here.

Specified by: k8s.io/kubernetes/pkg/controlplane/apiserver/aggregator.go (makeAPIService, DefaultGenericAPIServicePriorities),
cmd/kube-apiserver/app/aggregator.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from fakekube.apimachinery import data

GroupVersion = tuple[str, str]

PATH: Final = "/apis/apiregistration.k8s.io/v1/apiservices"

#: (group, version) of an alpha or beta version → the priority of the version within its group, and of a group without
#: a version that is generally available, the priority of the group.
_NOT_BY_DEFAULT: Final[Mapping[GroupVersion, tuple[int, ...]]] = {
    ("admissionregistration.k8s.io", "v1alpha1"): (9,),
    ("admissionregistration.k8s.io", "v1beta1"): (12,),
    ("authentication.k8s.io", "v1alpha1"): (1,),
    ("authentication.k8s.io", "v1beta1"): (9,),
    ("certificates.k8s.io", "v1alpha1"): (1,),
    ("certificates.k8s.io", "v1beta1"): (9,),
    ("coordination.k8s.io", "v1alpha2"): (12,),
    ("coordination.k8s.io", "v1beta1"): (13,),
    ("internal.apiserver.k8s.io", "v1alpha1"): (9, 16000),
    ("lifecycle.k8s.io", "v1alpha1"): (1, 15700),
    ("networking.k8s.io", "v1beta1"): (9,),
    ("resource.k8s.io", "v1alpha3"): (1, 16200),
    ("resource.k8s.io", "v1beta1"): (9, 16200),
    ("resource.k8s.io", "v1beta2"): (15, 16200),
    ("scheduling.k8s.io", "v1alpha1"): (1,),
    ("scheduling.k8s.io", "v1alpha2"): (2,),
    ("scheduling.k8s.io", "v1alpha3"): (3,),
    ("scheduling.k8s.io", "v1beta1"): (9,),
    ("storage.k8s.io", "v1alpha1"): (1,),
    ("storage.k8s.io", "v1beta1"): (9,),
    ("storagemigration.k8s.io", "v1alpha1"): (9, 15800),
    ("storagemigration.k8s.io", "v1beta1"): (9, 15800),
}


@cache
def priorities(version: str) -> Mapping[GroupVersion, tuple[int, int]]:
    """Returns groupPriorityMinimum and versionPriority of the group versions that a minor may serve."""
    specs = [obj["spec"] for obj in data.minor(version).bootstrap.get(PATH, ())]
    found = {(spec.get("group", ""), spec["version"]): (spec["groupPriorityMinimum"], spec["versionPriority"]) for spec in specs}
    groups = {group: minimum for (group, _), (minimum, _) in found.items()}
    for key, (priority, *minimum) in _NOT_BY_DEFAULT.items():
        if key not in found and (minimum or key[0] in groups):
            found[key] = (minimum[0] if minimum else groups[key[0]], priority)
    return found


def api_services(
    version: str, objects: Iterable[Mapping[str, Any]], served: Iterable[GroupVersion]
) -> Iterable[Mapping[str, Any]]:
    """Returns the APIServices of a fresh server.

    Args:
        version: the minor.
        objects: those of a server with default flags.
        served: the group versions that this server serves.
    """
    known = {(obj["spec"].get("group", ""), obj["spec"]["version"]): obj for obj in objects}
    model = known["apps", "v1"]
    for key in [*known, *(key for key in dict.fromkeys(served) if key not in known)]:
        if key in known and key in served:
            yield known[key]
        elif key not in known and key in priorities(version):
            (group, name), (minimum, priority) = key, priorities(version)[key]
            spec = {"group": group, "version": name, "groupPriorityMinimum": minimum, "versionPriority": priority}
            yield {**model, "metadata": {**model["metadata"], "name": f"{name}.{group}"}, "spec": spec}
