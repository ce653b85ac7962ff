"""Warnings about valid pods and templates that are probably mistakes.

Each function returns texts; `prefix` is the path of the template with a dot ("" for a pod).

Specified by: pkg/api/pod/warnings.go.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Final, NamedTuple

from fakekube.apimachinery import features
from fakekube.apimachinery.schema.trees import text_of
from fakekube.apis.core import nodes
from fakekube.apis.core.pods.annotations import profile_of_annotation
from fakekube.apis.core.pods.validation_options import PREFERRED, REQUIRED, KnownSpecs
from fakekube.apis.core.pods.visitor import containers_with_paths
from fakekube.apis.validation import ip as addresses
from fakekube.apis.validation import names
from fakekube.apis.validation.resource_lists import fractional_bytes
from fakekube.apis.well_known import (
    DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX,
    SECCOMP_CONTAINER_ANNOTATION_KEY_PREFIX,
    SECCOMP_POD_ANNOTATION_KEY,
)
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object, Part

_USE_SYSCTLS = 'non-functional in v1.11+; use the "sysctls" field instead'

#: Annotations that have no effect any more.
ANNOTATIONS: Mapping[str, str] = {
    "scheduler.alpha.kubernetes.io/critical-pod": ('non-functional in v1.16+; use the "priorityClassName" field instead'),
    "security.alpha.kubernetes.io/sysctls": _USE_SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _USE_SYSCTLS,
}

#: The prefixes of the annotations that a warning may be about.
_READ_ANNOTATIONS: Final = (
    *ANNOTATIONS,
    SECCOMP_POD_ANNOTATION_KEY,
    SECCOMP_CONTAINER_ANNOTATION_KEY_PREFIX,
    DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX,
)

#: Deprecated volume sources: the field → (its name in the path, the text of the warning), in order.
VOLUMES: Mapping[str, tuple[str, str]] = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "ephemeral": ("", ""),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}

_WITHOUT_WARNINGS = KnownSpecs()

_NULL_SELECTOR = "a null labelSelector results in matching no pod"


def pod_warnings(spec: Object, meta: Part, text: bytes | None = None) -> list[str]:
    """Returns the warnings about a pod (GetWarningsForPod). `text`: that of the spec, if it is known."""
    return _find_warnings(spec, meta, "", text)


def template_warnings(template: Part, path: str) -> list[str]:
    """Returns the warnings about a pod template at this path (GetWarningsForPodTemplate)."""
    return _find_warnings(template.get("spec") or {}, template.get("metadata") or {}, f"{path}.")


def _find_warnings(spec: Object, meta: Part, prefix: str, text: bytes | None = None) -> list[str]:
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key.startswith(_READ_ANNOTATIONS)}
    if annotations:
        return _warnings_of_unknown_spec(spec, annotations, prefix)
    key = _WITHOUT_WARNINGS.key(spec, text or text_of(spec), of_pod=not prefix)
    if key in _WITHOUT_WARNINGS:
        return []
    texts = _warnings_of_unknown_spec(spec, {}, prefix)
    if not texts and key is not None:
        _WITHOUT_WARNINGS.add(key, "")
    return texts


def _warnings_of_unknown_spec(spec: Object, annotations: Mapping[str, str], prefix: str) -> list[str]:
    path = f"{prefix}spec"
    texts = _warn_of_node_labels(spec, path)
    texts += _warn_of_spread_constraints(spec, path)
    if annotations:
        texts += [f"{prefix}metadata.annotations[{key}]: {text}" for key, text in ANNOTATIONS.items() if key in annotations]
    if "volumes" in spec:
        texts += _warn_of_volumes(spec["volumes"], path)
        texts += _warn_of_overlapping_paths(spec["volumes"])
    texts += _warn_of_duplicates(spec.get("hostAliases") or (), "ip", f"{path}.hostAliases")
    secrets = spec.get("imagePullSecrets") or ()
    if secrets:
        texts += _warn_of_duplicates(secrets, "name", f"{path}.imagePullSecrets")
        texts += [
            f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'
            for index, secret in enumerate(secrets)
            if not secret.get("name")
        ]
    if "overhead" in spec:
        texts += fractional_bytes(spec["overhead"], f"{path}.overhead", ("memory", "ephemeral-storage"))
    if SECCOMP_POD_ANNOTATION_KEY in annotations and "seccompProfile" not in (spec.get("securityContext") or {}):
        texts.append(f"{prefix}metadata.annotations[{SECCOMP_POD_ANNOTATION_KEY}]: {_USE_SECCOMP}")
    visited = list(containers_with_paths(spec, path))
    texts += _warn_of_containers(visited, spec, annotations, prefix)
    texts += _warn_of_ports(visited) + _warn_of_port_names(visited)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        texts.append(f"{path}.terminationGracePeriodSeconds: {text}")
    return texts + _warn_of_null_selectors(spec, path) + _warn_of_addresses(spec, path)


def _warn_of_node_labels(spec: Object, path: str) -> list[str]:
    known = nodes.DEPRECATED
    texts = [f"{path}.nodeSelector[{key}]: {known[key]}" for key in spec.get("nodeSelector") or () if key in known]
    rules = (spec.get("affinity") or {}).get("nodeAffinity")
    if not rules:
        return texts
    where = f"{path}.affinity.nodeAffinity"
    for index, term in enumerate((rules.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        terms = f"{where}.{REQUIRED}.nodeSelectorTerms[{index}]"
        texts += nodes.node_selector_term_warnings(term, terms)
    for index, term in enumerate(rules.get(PREFERRED) or ()):
        texts += nodes.node_selector_term_warnings(
            term.get("preference") or {}, f"{where}.{PREFERRED}[{index}].preference", check_values=True
        )
    return texts


def _warn_of_spread_constraints(spec: Object, path: str) -> list[str]:
    texts = []
    for index, item in enumerate(spec.get("topologySpreadConstraints") or ()):
        where, key = f"{path}.topologySpreadConstraints[{index}]", item.get("topologyKey", "")
        if key in nodes.DEPRECATED:
            texts.append(f"{where}.topologyKey: {key} is {nodes.DEPRECATED[key]}")
        if "labelSelector" not in item:
            texts.append(f"{where}.labelSelector: {_NULL_SELECTOR}")
    return texts


def _warn_of_volumes(volumes: Sequence[Part], path: str) -> list[str]:
    texts = []
    for index, volume in enumerate(volumes):
        for field, (shown, text) in VOLUMES.items():
            if field not in volume:
                continue
            if field == "ephemeral":
                resources = ((volume[field].get("volumeClaimTemplate") or {}).get("spec") or {}).get("resources") or {}
                where = f"{path}.volumes[{index}].ephemeral.volumeClaimTemplate.spec.resources"
                for side in ("requests", "limits"):
                    texts += fractional_bytes(resources.get(side) or {}, f"{where}.{side}", ("storage",))
            else:
                is_disabled = field == "gitRepo" and not features.current().enabled("GitRepoVolumeDriver")
                ending = ", and disabled by default in v1.33+" if is_disabled else ""
                texts.append(f"{path}.volumes[{index}].{shown}: {text}{ending}")
    return texts


def _warn_of_duplicates(items: Sequence[Part], field: str, path: str) -> list[str]:
    seen: set[str] = set()
    texts = []
    for index, item in enumerate(items):
        value = item.get(field, "")
        if value in seen:
            texts.append(f"{path}[{index}].{field}: duplicate {field} {go_quote(value)}")
        seen.add(value)
    return texts


def hostname_warnings(name: str, uses: str) -> list[str]:
    """Returns warnings about a name that is no DNS label, and that is used for hostnames; `uses` names all its uses."""
    wrong = names.dns_label(name)
    if not wrong:
        return []
    surprise = f"this is used in {uses}, which can result in surprising behavior"
    return [f"metadata.name: {surprise}; a DNS label is recommended: [{' '.join(wrong)}]"]


_USE_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
USE_APPARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def _warn_of_containers(
    visited: Sequence[tuple[Part, str]], spec: Object, annotations: Mapping[str, str], prefix: str
) -> list[str]:
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    texts = []
    for container, path in visited:
        if annotations:
            texts += _warn_of_profile_annotations(container, annotations, of_pod, prefix)
        resources = container.get("resources")
        if resources:
            for name in ("memory", "ephemeral-storage"):
                for side in ("limits", "requests"):
                    texts += fractional_bytes(resources.get(side) or {}, f"{path}.resources.{side}", (name,))
        if len(container.get("env") or ()) > 1:
            texts += _warn_of_hidden_variables(container["env"], f"{path}.env")
    return texts


def _warn_of_profile_annotations(container: Part, annotations: Mapping[str, str], of_pod: Part | None, prefix: str) -> list[str]:
    """Returns warnings about annotations that fields replace; AppArmor annotations of pods are reported when they are
    copied to fields.
    """
    security, name = container.get("securityContext") or {}, container.get("name", "")
    texts = []
    key = f"{SECCOMP_CONTAINER_ANNOTATION_KEY_PREFIX}{name}"
    if key in annotations and "seccompProfile" not in security:
        texts.append(f"{prefix}metadata.annotations[{key}]: {_USE_SECCOMP}")
    key = f"{DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX}{name}"
    reported = prefix and key in annotations and "appArmorProfile" not in security
    if reported and (of_pod is None or of_pod != profile_of_annotation(annotations[key])):
        texts.append(f"{prefix}metadata.annotations[{key}]: {USE_APPARMOR}")
    return texts


def _warn_of_hidden_variables(variables: Sequence[Part], path: str) -> list[str]:
    seen: set[str] = set()
    texts = []
    for index, item in enumerate(variables):
        name, value = item.get("name", ""), item.get("value", "")
        reference = f"$({name})"
        extends = "valueFrom" not in item and reference in value and value != reference
        if name in seen and not extends:
            text = f"hides previous definition of {go_quote(name)}, which may be dropped when using apply"
            texts.append(f"{path}[{index}]: {text}")
        seen.add(name)
    return texts


def _each_port(visited: Sequence[tuple[Part, str]]) -> Iterator[tuple[Part, str]]:
    for container, path in visited:
        for index, port in enumerate(container.get("ports") or ()):
            yield port, f"{path}.ports[{index}]"


def _warn_of_ports(visited: Sequence[tuple[Part, str]]) -> list[str]:
    texts = []
    taken: dict[tuple[int, str], dict[int, list[tuple[int, Part, str]]]] = {}
    for number, (port, where) in enumerate(_each_port(visited)):
        if port.get("hostIP") and not port.get("hostPort"):
            texts.append(f"{where}: hostIP set without hostPort: {_go_port(port)}")
        by_host = taken.setdefault((port.get("containerPort", 0), port.get("protocol", "")), {})
        host = port.get("hostPort", 0)
        # ports of the host that differ do not clash, of which there may be many
        others = [*by_host.get(host, ()), *by_host.get(0, ())] if host else chain.from_iterable(by_host.values())
        for _, other, other_where in sorted(others, key=itemgetter(0)):
            if clash := _clash(port, other):
                texts.append(f"{where}: {clash} port definition with {other_where}")
        by_host.setdefault(host, []).append((number, port, where))
    return texts


def _go_port(port: Part) -> str:
    """Formats a port like Go's %+v."""
    return (
        f"{{Name:{port.get('name', '')} HostPort:{port.get('hostPort', 0)} "
        f"ContainerPort:{port.get('containerPort', 0)} Protocol:{port.get('protocol', '')} "
        f"HostIP:{port.get('hostIP', '')}}}"
    )


def _clash(port: Part, other: Part) -> str:
    """Returns how two definitions of the same container port conflict."""
    ip, other_ip = port.get("hostIP", ""), other.get("hostIP", "")
    host, other_host = port.get("hostPort", 0), other.get("hostPort", 0)
    if ip == other_ip and host == other_host:
        return "duplicate"
    if not host or not other_host:
        return "overlapping"
    if host == other_host and bool(ip) != bool(other_ip):
        return "dangerously ambiguous"
    return ""


def _warn_of_port_names(visited: Sequence[tuple[Part, str]]) -> list[str]:
    seen: dict[str, str] = {}
    texts = []
    for port, where in _each_port(visited):
        name = port.get("name", "")
        first = seen.get(name) if name else None
        if first is not None:
            text = f"services and probes that select ports by name will use {first}"
            texts.append(f"{where}: duplicate port name {go_quote(name)} with {first}, {text}")
        elif name:
            seen[name] = where
    return texts


def _warn_of_null_selectors(spec: Object, path: str) -> list[str]:
    affinity = spec.get("affinity") or {}
    texts = []
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        texts += [
            f"{path}.affinity.{kind}.{REQUIRED}[{index}].labelSelector: {_NULL_SELECTOR}"
            for index, term in enumerate(terms.get(REQUIRED) or ())
            if "labelSelector" not in term
        ]
        texts += [
            f"{path}.affinity.{kind}.{PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NULL_SELECTOR}"
            for index, term in enumerate(terms.get(PREFERRED) or ())
            if "labelSelector" not in (term.get("podAffinityTerm") or {})
        ]
    return texts


def _warn_of_addresses(spec: Object, path: str) -> list[str]:
    servers = (spec.get("dnsConfig") or {}).get("nameservers") or ()
    named = [(f"{path}.dnsConfig.nameservers[{index}]", server) for index, server in enumerate(servers)]
    aliases = enumerate(spec.get("hostAliases") or ())
    named += [(f"{path}.hostAliases[{index}].ip", alias.get("ip", "")) for index, alias in aliases]
    return [warning for where, address in named for warning in addresses.ip_warnings(where, address)]


class _File(NamedTuple):
    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{go_quote(self.path)} ({self.source})" if self.source else go_quote(self.path)


def _warn_of_overlapping_paths(volumes: Sequence[Part]) -> list[str]:
    """Returns warnings about files of a volume whose paths overlap (warningsForOverlappingVirtualPaths)."""
    texts = []
    for volume in volumes:
        name = go_quote(volume.get("name", ""))
        for field, described in _DESCRIBED.items():
            source = volume.get(field)
            if source is not None:
                paths = _Paths()
                overlaps = [text for item in source.get("items") or () for text in paths.add(_File(item.get("path", "")))]
                texts += [f"volume {name} ({described(source)}): overlapping paths: {text}" for text in overlaps]
        if "projected" in volume:
            texts += _warn_of_projected_paths(volume["projected"], name)
    return texts


_DESCRIBED: Mapping[str, Callable[[Part], str]] = {
    "configMap": lambda source: f"ConfigMap {go_quote(source.get('name', ''))}",
    "secret": lambda source: f"Secret {go_quote(source.get('secretName', ''))}",
    "downwardAPI": lambda _: "DownwardAPI",
}


def _warn_of_projected_paths(volume: Part, name: str) -> list[str]:
    texts = []
    paths = _Paths()
    for source in volume.get("sources") or ():
        if not source:
            texts.append(f"volume {name} (Projected) has no sources provided")
        overlaps = [text for file in _projected_files(source) for text in paths.add(file)]
        texts += [f"volume {name} (Projected): overlapping paths: {text}" for text in overlaps]
    return texts


def _projected_files(source: Part) -> list[_File]:
    for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        items = source.get(field, {}).get("items")
        if items is not None:
            described = f"{kind} {go_quote(source[field].get('name', ''))}"
            return [_File(item.get("path", ""), described) for item in items]
    items = source.get("downwardAPI", {}).get("items")
    if items is not None:
        return [_File(item.get("path", ""), "DownwardAPI") for item in items]
    if "serviceAccountToken" in source:
        return [_File(source["serviceAccountToken"].get("path", ""), "ServiceAccountToken")]
    if "clusterTrustBundle" in source:
        bundle = source["clusterTrustBundle"]
        described = f"ClusterTrustBundle {go_quote(bundle.get('name', bundle.get('signerName', '')))}"
        return [_File(bundle.get("path", ""), described)]
    certificate = source.get("podCertificate") or {}
    return [_File(path, f"PodCertificate {what}") for field, what in _OF_CERTIFICATES.items() if (path := certificate.get(field))]


_OF_CERTIFICATES: Mapping[str, str] = {
    "certificateChainPath": "chain",
    "keyPath": "key",
    "credentialBundlePath": "credential bundle",
}


class _Paths:
    """The files of a volume, sorted: a file is not compared with each of the others."""

    def __init__(self) -> None:
        self._files: list[_File] = []
        self._sorted: list[tuple[str, int]] = []
        """The paths, each with a slash at its end, and the indexes of their files."""
        self._by_path: dict[str, list[int]] = {}
        self._lengths: set[int] = set()
        """The lengths of the paths."""

    def add(self, file: _File) -> list[str]:
        """Adds a file. Describes with which of the files before it overlaps."""
        current = _File(file.path.rstrip("/"), file.source)
        found = sorted([*self._find_above(current.path), *self._find_below(current.path)])
        texts = [f"{current} with {self._files[index]}" for index in found]
        self._by_path.setdefault(current.path, []).append(len(self._files))
        bisect.insort(self._sorted, (f"{current.path}/", len(self._files)))
        self._lengths.add(len(current.path))
        self._files.append(current)
        return texts

    def _find_above(self, path: str) -> Iterator[int]:
        """Yields the indexes of the files at the folders of a path."""
        for length in self._lengths:
            if path[length : length + 1] == "/":
                yield from self._by_path.get(path[:length], ())

    def _find_below(self, path: str) -> Iterator[int]:
        """Yields the indexes of the files at a path, and of those for which it is a folder."""
        begin = bisect.bisect_left(self._sorted, (f"{path}/",))
        end = bisect.bisect_left(self._sorted, (f"{path}{_AFTER_SLASH}",))
        yield from (index for _, index in self._sorted[begin:end])


_AFTER_SLASH = chr(ord("/") + 1)
