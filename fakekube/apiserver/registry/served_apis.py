"""Which built-in APIs a server serves, and their APIServices.

Group versions that are generally available are served by default, beta and alpha ones are not. What --runtime-config says of a
resource wins over what it says of its group version, and that over `api/all`, `api/ga`, `api/beta` and `api/alpha`. Resources may
depend on feature gates as well.

The APIServices of a fresh server are among the facts of its minor; those of group versions that only --runtime-config or
--emulated-version switch on or off are made and dropped here.

Specified by: k8s.io/apiserver/pkg/server/resourceconfig/helpers.go (MergeAPIResourceConfigs),
pkg/server/options/api_enablement.go, pkg/server/storage/resource_config.go;
pkg/registry/**/rest/storage_*.go (which resource needs which gate); pkg/controlplane/apiserver/aggregator.go (makeAPIService,
DefaultGenericAPIServicePriorities), cmd/kube-apiserver/app/aggregator.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from fakekube.apimachinery import data
from fakekube.apimachinery.data import Facts, ResourceRow
from fakekube.apimachinery.features import Emulation
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import group_version

#: What a name of all versions of a kind selects, in the order in which they are applied.
_MATCHERS: Final[Mapping[str, re.Pattern[str]]] = {
    "api/all": re.compile(""),
    "api/ga": re.compile(r"v\d+\Z"),
    "api/beta": re.compile(r"v\d+beta\d+\Z"),
    "api/alpha": re.compile(r"v\d+alpha\d+\Z"),
}

#: (group, resource or resource/subresource) → the feature gate without which it is not served.
_GATES: Final[Mapping[tuple[str, str], str]] = {
    ("", "pods/resize"): "InPlacePodVerticalScaling",
    ("certificates.k8s.io", "clustertrustbundles"): "ClusterTrustBundle",
    ("certificates.k8s.io", "podcertificaterequests"): "PodCertificateRequest",
    ("lifecycle.k8s.io", "evictionrequests"): "EvictionRequestAPI",
    ("lifecycle.k8s.io", "evictions"): "EvictionRequestAPI",
    ("scheduling.k8s.io", "compositepodgroups"): "CompositePodGroup",
    ("scheduling.k8s.io", "podgroups"): "GenericWorkload",
    ("scheduling.k8s.io", "workloads"): "GenericWorkload",
    ("storagemigration.k8s.io", "storageversionmigrations"): "StorageVersionMigrator",
}

_BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True", ""), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class RuntimeConfigError(ValueError):
    """--runtime-config is invalid; the text is kube-apiserver's."""


@dataclass(slots=True, frozen=True)
class RuntimeConfig:
    """--runtime-config: what it switches on and off."""

    matchers: tuple[tuple[str, bool], ...] = ()
    """`api/all` and the like, in the order in which they are applied."""
    versions: frozenset[tuple[str, str, bool]] = frozenset()
    """(group, version, served)."""
    resources: frozenset[tuple[str, str, str, bool]] = frozenset()
    """(group, version, resource, served)."""

    def serves(self, row: ResourceRow) -> bool:
        """Reports whether a resource is served, regardless of its gate."""
        plural = row.name.partition("/")[0]
        for served in (True, False):
            if (row.group, row.version, plural, served) in self.resources:
                return served
        for served in (True, False):
            if (row.group, row.version, served) in self.versions:
                return served
        found = _MATCHERS["api/ga"].match(row.version) is not None
        for name, served in self.matchers:
            if _MATCHERS[name].match(row.version):
                found = served
        return found


NO_RUNTIME_CONFIG: Final = RuntimeConfig()


def is_served(row: ResourceRow, emulation: Emulation, config: RuntimeConfig) -> bool:
    """Reports whether a server serves a resource or subresource of its minor."""
    if emulation.emulated != emulation.version and (row.group, row.version, row.name) not in _list_known(emulation.emulated):
        return False
    plural = row.name.partition("/")[0]
    gates = [gate for name in dict.fromkeys((plural, row.name)) if (gate := _GATES.get((row.group, name)))]
    return config.serves(row) and all(emulation.enabled(gate) for gate in gates)


@cache
def _list_known(version: str) -> frozenset[tuple[str, str, str]]:
    """Returns group, version and name of the resources that a minor has."""
    return frozenset((row.group, row.version, row.name) for row in data.minor(version).resources)


def parse_runtime_config(given: Mapping[str, str], facts: Facts) -> RuntimeConfig:
    """Returns what --runtime-config says.

    Args:
        given: its keys with their values; "" stands for true.
        facts: of the minor, whose group versions can be named.

    Raises RuntimeConfigError.
    """
    if given == {"api/all": "false"}:
        raise RuntimeConfigError("invalid runtime-config with only api/all=false")
    named = {key: ["api", "v1"] if key in ("v1", "/v1") else key.split("/") for key in given if key not in _MATCHERS}
    for key, steps in named.items():
        if len(steps) not in (2, 3):
            raise RuntimeConfigError(f"runtime-config invalid key {key}")
    _check_groups(named.values(), facts)
    matchers = []
    for name in _MATCHERS:
        if name in given:
            if given[name] not in ("true", "false"):
                raise RuntimeConfigError(f"invalid value {name}={given[name]}")
            matchers.append((name, given[name] == "true"))
    versions, resources = set(), set()
    for key, (root, version, *resource) in named.items():
        group = "" if root == "api" else root
        if group_version(group, version) not in facts.group_versions:
            raise RuntimeConfigError(f"group version {group_version(group, version)} that has not been registered")
        if given[key] not in _BOOLEANS:
            parsing = f"strconv.ParseBool: parsing {go_quote(given[key])}: invalid syntax"
            raise RuntimeConfigError(f"invalid value of {key}: {given[key]}, err: {parsing}")
        served = _BOOLEANS[given[key]]
        if not resource:
            versions.add((group, version, served))
        elif resource[0] != resource[0].lower():
            text = f"group/version/resource and resource is always lowercase plural, not {go_quote(resource[0])}"
            raise RuntimeConfigError(f"invalid key {key}: {text}")
        else:
            resources.add((group, version, resource[0], served))
    return RuntimeConfig(tuple(matchers), frozenset(versions), frozenset(resources))


def _check_groups(named: Iterable[list[str]], facts: Facts) -> None:
    known = {name.rpartition("/")[0] for name in facts.group_versions} | {"api"}
    unknown = {f"{steps[0]}/{steps[1]}" for steps in named if steps[0] not in known}
    if unknown:
        raise RuntimeConfigError(f"unknown api groups {','.join(sorted(unknown))}")


# --- The APIServices of the group versions that a server serves itself ------------------------------------------------


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
