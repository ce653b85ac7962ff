"""The checks of the Pod Security Standards: the rules of the levels `baseline` and `restricted`.

`CHECKS` is the table of checks: each has a level and, by minor version of the policy, a function. A function gets a
pod's metadata and spec and returns None, or a reason (for summaries of a namespace) and a detail (for one pod).
Restricted checks may override baseline ones.

Specified by: k8s.io/pod-security-admission/policy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from fakekube.apimachinery import features
from fakekube.apis.well_known import (
    DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX,
    SECCOMP_CONTAINER_ANNOTATION_KEY_PREFIX,
    SECCOMP_POD_ANNOTATION_KEY,
)
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object


@dataclass(slots=True, frozen=True)
class Violation:
    """A violation of a policy by a pod."""

    reason: str
    detail: str


Decide = Callable[[Object, Object], Violation | None]
"""(metadata, spec of the pod) → what is wrong."""


@dataclass(slots=True, frozen=True)
class _Check:
    level: str
    versions: dict[int, Decide]
    """The first minor → what decides from it on."""
    instead_of: str = ""
    """The baseline check that need not be made, too."""


#: The newest minor version that changes a check; later ones (and "latest") are the same.
NEWEST = 37

_SAFE_PROFILES = ("RuntimeDefault", "Localhost")
_DEFAULT_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
        "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip
_HARMLESS_VOLUMES = frozenset(
    {
        "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
        "secret",
    }
)  # fmt: skip
_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SAFE_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start",
    }
)  # fmt: skip
_SAFE_SYSCTLS_27 = _SAFE_SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SAFE_SYSCTLS_29 = _SAFE_SYSCTLS_27 | {
    f"net.ipv4.{name}" for name in ("tcp_keepalive_time", "tcp_fin_timeout", "tcp_keepalive_intvl", "tcp_keepalive_probes")
}
_SAFE_SYSCTLS_32 = _SAFE_SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
_SAFE_SYSCTLS_37 = _SAFE_SYSCTLS_32 | {"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"}
_RELAXED = ("procMount", "runAsNonRoot", "runAsUser")
"""Checks that a gate of 1.33 and 1.34 relaxes for pods with a user namespace; later versions of the policy always do."""


def violations(level: str, minor: int, meta: Object, spec: Object) -> list[Violation]:
    """Returns the violations of a level at a minor version; one that is later than the server, or "latest", is its own."""
    emulation = features.current()
    relaxed = emulation.enabled("UserNamespacesPodSecurityStandards")
    checks = _deciding(level, min(minor, emulation.minor, NEWEST), relaxed)
    return [found for decide in checks if (found := decide(meta, spec)) is not None]


@cache
def _deciding(level: str, minor: int, relaxed: bool) -> tuple[Decide, ...]:
    chosen = {"baseline": _of_level("baseline", minor), "restricted": {}, "privileged": {}}
    if level == "privileged":
        return ()
    if level == "restricted":
        chosen["restricted"] = _of_level("restricted", minor)
        for name in chosen["restricted"]:
            chosen["baseline"].pop(CHECKS[name].instead_of, None)
    return tuple(
        _unless_own_users(checks[name]) if relaxed and name in _RELAXED else checks[name]
        for checks in chosen.values()
        for name in sorted(checks)
    )


def _of_level(level: str, minor: int) -> dict[str, Decide]:
    found: dict[str, Decide] = {}
    for name, check in CHECKS.items():
        known = [first for first in check.versions if first <= minor]
        if check.level == level and known:
            found[name] = check.versions[max(known)]
    return found


# --- Texts ------------------------------------------------------------------------------------------------------------


def _containers(spec: Object) -> Iterator[Object]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def _security(part: Object) -> Object:
    found: Object = part.get("securityContext") or {}
    return found


def _join_quote(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _pluralize(word: str, count: Collection[Any]) -> str:
    return word if len(count) == 1 else f"{word}s"


def _name_containers(containers: Collection[str]) -> str:
    return f"{_pluralize('container', containers)} {_join_quote(containers)}"


def _setters(pod: bool, containers: Collection[str]) -> str:
    """Describes which fields are set: of the pod, of containers, or both."""
    return " and ".join((["pod"] if pod else []) + ([_name_containers(containers)] if containers else []))


def _conjugate_use(items: Collection[str]) -> str:
    return "uses" if len(items) == 1 else "use"


# --- Baseline ---------------------------------------------------------------------------------------------------------


def _app_armor(meta: Object, spec: Object) -> Violation | None:
    def bad(part: Object) -> str:
        kind: str = (_security(part).get("appArmorProfile") or {"type": _SAFE_PROFILES[0]}).get("type", "")
        return "" if kind in _SAFE_PROFILES else kind

    pod = bad(spec)
    containers = [container["name"] for container in _containers(spec) if bad(container)]
    values = sorted({pod, *(bad(container) for container in _containers(spec))} - {""})
    annotations = sorted(
        f"{key}={go_quote(value)}"
        for key, value in (meta.get("annotations") or {}).items()
        if key.startswith(DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    setters = [who for who in (_setters(bool(pod), containers),) if who]
    if annotations:
        setters.append(_pluralize("annotation", annotations))
    if not setters:
        return None
    values += annotations
    how = f"{' and '.join(setters)} must not set AppArmor profile type to {_join_quote(values)}"
    return Violation(_pluralize("forbidden AppArmor profile", values), how)


def _capabilities(meta: Object, spec: Object) -> Violation | None:
    containers, added = _added_capabilities(spec, _DEFAULT_CAPABILITIES)
    if not containers:
        return None
    how = f"{_name_containers(containers)} must not include {_join_quote(added)} in securityContext.capabilities.add"
    return Violation("non-default capabilities", how)


def _added_capabilities(spec: Object, allowed: Collection[str]) -> tuple[list[str], list[str]]:
    bad = {
        position: [c for c in (_security(container).get("capabilities") or {}).get("add") or () if c not in allowed]
        for position, container in enumerate(_containers(spec))
    }
    names = [container["name"] for position, container in enumerate(_containers(spec)) if bad[position]]
    return names, sorted({capability for added in bad.values() for capability in added})


def _host_namespaces(meta: Object, spec: Object) -> Violation | None:
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def _host_path_volumes(meta: Object, spec: Object) -> Violation | None:
    volumes = [volume["name"] for volume in spec.get("volumes") or () if "hostPath" in volume]
    return Violation("hostPath volumes", f"{_pluralize('volume', volumes)} {_join_quote(volumes)}") if volumes else None


def _host_ports(meta: Object, spec: Object) -> Violation | None:
    used = [
        (container["name"], [port["hostPort"] for port in container.get("ports") or () if port.get("hostPort")])
        for container in _containers(spec)
    ]
    containers = [name for name, ports in used if ports]
    if not containers:
        return None
    numbers = sorted({str(port) for _, ports in used for port in ports})
    how = f"{_name_containers(containers)} {_conjugate_use(containers)} {_pluralize('hostPort', numbers)} {', '.join(numbers)}"
    return Violation("hostPort", how)


def _hosts_of_probes(meta: Object, spec: Object) -> Violation | None:
    containers: set[str] = set()
    hosts: set[str] = set()
    for container in _containers(spec):
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(f"{kind}Probe") for kind in ("liveness", "readiness", "startup")]
        handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
        found = {
            (handler.get(action) or {}).get("host", "") for handler in handlers if handler for action in ("httpGet", "tcpSocket")
        } - {""}
        if found:
            containers.add(container["name"])
            hosts |= found
    if not containers:
        return None
    words = _pluralize("probe or lifecycle host", hosts)
    how = f"{_name_containers(sorted(containers))} {_conjugate_use(containers)} {words} {_join_quote(sorted(hosts))}"
    return Violation("probe or lifecycle host", how)


def _check_privileged(meta: Object, spec: Object) -> Violation | None:
    containers = [container["name"] for container in _containers(spec) if _security(container).get("privileged")]
    if not containers:
        return None
    return Violation("privileged", f"{_name_containers(containers)} must not set securityContext.privileged=true")


def _proc_mount(meta: Object, spec: Object) -> Violation | None:
    mounts = [(container["name"], _security(container).get("procMount", "Default")) for container in _containers(spec)]
    containers = [name for name, mount in mounts if mount != "Default"]
    if not containers:
        return None
    values = sorted({mount for _, mount in mounts} - {"Default"})
    how = f"{_name_containers(containers)} must not set securityContext.procMount to {_join_quote(values)}"
    return Violation("procMount", how)


def _selinux(types: Collection[str], meta: Object, spec: Object) -> Violation | None:
    def bad(part: Object) -> bool:
        options = _security(part).get("seLinuxOptions") or {}
        return options.get("type", "") not in types or bool(options.get("user") or options.get("role"))

    setters = _setters(bad(spec), [container["name"] for container in _containers(spec) if bad(container)])
    if not setters:
        return None
    options = [_security(part).get("seLinuxOptions") or {} for part in (spec, *_containers(spec))]
    values = sorted({option.get("type", "") for option in options} - set(types))
    what = [f"{_pluralize('type', values)} {_join_quote(values)}"] if values else []
    what += [f"{field} may not be set" for field in ("user", "role") if any(option.get(field) for option in options)]
    how = f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(what)}"
    return Violation("seLinuxOptions", how)


def _seccomp_annotations(meta: Object, spec: Object) -> Violation | None:
    annotations = meta.get("annotations") or {}
    keys = [
        SECCOMP_POD_ANNOTATION_KEY,
        *(SECCOMP_CONTAINER_ANNOTATION_KEY_PREFIX + container["name"] for container in _containers(spec)),
    ]
    bad = sorted(
        {
            f"{key}={go_quote(annotations[key])}"
            for key in keys
            if key in annotations
            and annotations[key] not in ("runtime/default", "docker/default")
            and not annotations[key].startswith("localhost/")
        }
    )
    if not bad:
        return None
    return Violation("seccompProfile", f"forbidden {_pluralize('annotation', bad)} {', '.join(bad)}")


def _seccomp(meta: Object, spec: Object) -> Violation | None:
    kinds = [_seccomp_type(part) for part in (spec, *_containers(spec))]
    bad = [kind is not None and kind not in _SAFE_PROFILES for kind in kinds]
    containers = [container["name"] for container, wrong in zip(_containers(spec), bad[1:], strict=True) if wrong]
    setters = _setters(bad[0], containers)
    if not setters:
        return None
    values = sorted({kind for kind, wrong in zip(kinds, bad, strict=True) if wrong and kind is not None})
    how = f"{setters} must not set securityContext.seccompProfile.type to {_join_quote(values)}"
    return Violation("seccompProfile", how)


def _seccomp_type(part: Object) -> str | None:
    profile = _security(part).get("seccompProfile")
    return None if profile is None else profile.get("type", "")


def _sysctls(safe: Collection[str], meta: Object, spec: Object) -> Violation | None:
    bad = [sysctl["name"] for sysctl in _security(spec).get("sysctls") or () if sysctl["name"] not in safe]
    return Violation("forbidden sysctls", ", ".join(bad)) if bad else None


def _windows_host_process(meta: Object, spec: Object) -> Violation | None:
    def bad(part: Object) -> bool:
        return bool((_security(part).get("windowsOptions") or {}).get("hostProcess"))

    setters = _setters(bad(spec), [container["name"] for container in _containers(spec) if bad(container)])
    if not setters:
        return None
    return Violation("hostProcess", f"{setters} must not set securityContext.windowsOptions.hostProcess=true")


# --- Restricted -------------------------------------------------------------------------------------------------------


def _escalation(meta: Object, spec: Object) -> Violation | None:
    containers = [
        container["name"] for container in _containers(spec) if _security(container).get("allowPrivilegeEscalation") is not False
    ]
    if not containers:
        return None
    how = f"{_name_containers(containers)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", how)


def _capabilities_dropped(meta: Object, spec: Object) -> Violation | None:
    keeping = [
        container["name"]
        for container in _containers(spec)
        if "ALL" not in ((_security(container).get("capabilities") or {}).get("drop") or ())
    ]
    adding, added = _added_capabilities(spec, {"NET_BIND_SERVICE"})
    how = [f'{_name_containers(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if adding:
        how.append(f"{_name_containers(adding)} must not include {_join_quote(added)} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(how)) if how else None


def _restricted_volumes(meta: Object, spec: Object) -> Violation | None:
    bad = [volume for volume in spec.get("volumes") or () if not _HARMLESS_VOLUMES & volume.keys()]
    if not bad:
        return None
    volumes = [volume["name"] for volume in bad]
    kinds = sorted({next((kind for kind in volume if kind != "name"), "unknown") for volume in bad})
    types = f"{_pluralize('restricted volume type', kinds)} {_join_quote(kinds)}"
    how = f"{_pluralize('volume', volumes)} {_join_quote(volumes)} {_conjugate_use(volumes)} {types}"
    return Violation("restricted volume types", how)


def _non_root(meta: Object, spec: Object) -> Violation | None:
    said = [(container["name"], _security(container).get("runAsNonRoot")) for container in _containers(spec)]
    pod = _security(spec).get("runAsNonRoot")
    setters = _setters(pod is False, [name for name, value in said if value is False])
    silent = [name for name, value in said if value is None]
    reason = "runAsNonRoot != true"
    if setters:
        return Violation(reason, f"{setters} must not set securityContext.runAsNonRoot=false")
    if pod is None and silent:
        return Violation(reason, f"pod or {_name_containers(silent)} must set securityContext.runAsNonRoot=true")
    return None


def _user(meta: Object, spec: Object) -> Violation | None:
    containers = [container["name"] for container in _containers(spec) if _security(container).get("runAsUser") == 0]
    setters = _setters(_security(spec).get("runAsUser") == 0, containers)
    return Violation("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def _seccomp_set(meta: Object, spec: Object) -> Violation | None:
    wrong = _seccomp(meta, spec)
    if wrong is not None or _seccomp_type(spec) is not None:
        return wrong
    silent = [container["name"] for container in _containers(spec) if _seccomp_type(container) is None]
    if not silent:
        return None
    how = f'pod or {_name_containers(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", how)


# --- Exceptions -------------------------------------------------------------------------------------------------------


def _unless_windows(decide: Decide) -> Decide:
    return lambda meta, spec: None if (spec.get("os") or {}).get("name") == "windows" else decide(meta, spec)


def _unless_own_users(decide: Decide) -> Decide:
    """Relaxes a check for pods with a user namespace, which are not root outside of it."""
    return lambda meta, spec: None if spec.get("hostUsers") is False else decide(meta, spec)


CHECKS: dict[str, _Check] = {
    "appArmorProfile": _Check("baseline", {0: _app_armor}),
    "capabilities_baseline": _Check("baseline", {0: _capabilities}),
    "hostNamespaces": _Check("baseline", {0: _host_namespaces}),
    "hostPathVolumes": _Check("baseline", {0: _host_path_volumes}),
    "hostPorts": _Check("baseline", {0: _host_ports}),
    "hostProbesAndHostLifecycle": _Check("baseline", {34: _hosts_of_probes}),
    "privileged": _Check("baseline", {0: _check_privileged}),
    "procMount": _Check("baseline", {0: _proc_mount, 35: _unless_own_users(_proc_mount)}),
    "seLinuxOptions": _Check(
        "baseline", {0: partial(_selinux, _SELINUX_TYPES), 31: partial(_selinux, _SELINUX_TYPES | {"container_engine_t"})}
    ),
    "seccompProfile_baseline": _Check("baseline", {0: _seccomp_annotations, 19: _seccomp}),
    "sysctls": _Check(
        "baseline",
        {
            0: partial(_sysctls, _SAFE_SYSCTLS), 27: partial(_sysctls, _SAFE_SYSCTLS_27),
            29: partial(_sysctls, _SAFE_SYSCTLS_29), 32: partial(_sysctls, _SAFE_SYSCTLS_32),
            37: partial(_sysctls, _SAFE_SYSCTLS_37),
        },
    ),
    "windowsHostProcess": _Check("baseline", {0: _windows_host_process}),
    "allowPrivilegeEscalation": _Check("restricted", {8: _escalation, 25: _unless_windows(_escalation)}),
    "capabilities_restricted": _Check(
        "restricted", {22: _capabilities_dropped, 25: _unless_windows(_capabilities_dropped)}, "capabilities_baseline"
    ),
    "procMount_restricted": _Check("restricted", {35: _proc_mount}, "procMount"),
    "restrictedVolumes": _Check("restricted", {0: _restricted_volumes}, "hostPathVolumes"),
    "runAsNonRoot": _Check("restricted", {0: _non_root, 35: _unless_own_users(_non_root)}),
    "runAsUser": _Check("restricted", {23: _user, 35: _unless_own_users(_user)}),
    "seccompProfile_restricted": _Check(
        "restricted", {19: _seccomp_set, 25: _unless_windows(_seccomp_set)}, "seccompProfile_baseline"
    ),
}  # fmt: skip
