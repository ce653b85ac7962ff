"""The Pod Security Standards as a table: what each check forbids, and from which version on."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apiserver.admission.pod_security_checks import CHECKS, NEWEST, violations

GOOD_CONTAINER = {
    "name": "c", "image": "i",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True,
                        "seccompProfile": {"type": "RuntimeDefault"}},
}  # fmt: skip


def reasons(level: str, minor: int, spec: dict[str, Any], meta: dict[str, Any] | None = None) -> list[str]:
    return [violation.reason for violation in violations(level, minor, meta or {}, spec)]


def with_context(**context: Any) -> dict[str, Any]:
    return {"containers": [{**GOOD_CONTAINER, "securityContext": {**GOOD_CONTAINER["securityContext"], **context}}]}  # type: ignore[dict-item]


GOOD = {"containers": [GOOD_CONTAINER]}


@pytest.mark.parametrize("minor", range(NEWEST + 3))
@pytest.mark.parametrize("level", ["privileged", "baseline", "restricted"])
def test_compliant_pod_passes_every_level_and_version(level: str, minor: int) -> None:
    assert reasons(level, minor, GOOD) == []


def test_privileged_level_allows_everything() -> None:
    assert reasons("privileged", NEWEST, {"hostPID": True, "containers": [{"name": "c"}]}) == []


@pytest.mark.parametrize(
    ("spec", "since", "reason"),
    [
        ({**GOOD, "hostPID": True}, 0, "host namespaces"),
        ({**GOOD, "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, 0, "hostPath volumes"),
        ({"containers": [{**GOOD_CONTAINER, "ports": [{"hostPort": 80}]}]}, 0, "hostPort"),
        ({"containers": [{**GOOD_CONTAINER, "livenessProbe": {"httpGet": {"host": "h"}}}]}, 34, "probe or lifecycle host"),
        (with_context(privileged=True), 0, "privileged"),
        (with_context(procMount="Unmasked"), 0, "procMount"),
        (with_context(capabilities={"add": ["SYS_ADMIN"], "drop": ["ALL"]}), 0, "non-default capabilities"),
        (with_context(seLinuxOptions={"type": "x"}), 0, "seLinuxOptions"),
        (with_context(seccompProfile={"type": "Unconfined"}), 19, "seccompProfile"),
        (with_context(appArmorProfile={"type": "Unconfined"}), 0, "forbidden AppArmor profile"),
        (with_context(windowsOptions={"hostProcess": True}), 0, "hostProcess"),
        ({**GOOD, "securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}}, 0, "forbidden sysctls"),
    ],
)
def test_baseline_checks(spec: dict[str, Any], since: int, reason: str) -> None:
    assert reasons("baseline", NEWEST, spec) == [reason]
    assert reasons("baseline", since, spec) == [reason]
    if since:
        assert reasons("baseline", since - 1, spec) == []


@pytest.mark.parametrize(
    ("spec", "since", "reason"),
    [
        (with_context(allowPrivilegeEscalation=None), 8, "allowPrivilegeEscalation != false"),
        (with_context(capabilities=None), 22, "unrestricted capabilities"),
        (with_context(runAsNonRoot=False), 0, "runAsNonRoot != true"),
        (with_context(runAsUser=0), 23, "runAsUser=0"),
        (with_context(seccompProfile=None), 19, "seccompProfile"),
        ({**GOOD, "volumes": [{"name": "v", "nfs": {}}]}, 0, "restricted volume types"),
    ],
)
def test_restricted_checks(spec: dict[str, Any], since: int, reason: str) -> None:
    assert reasons("baseline", NEWEST, spec) == []
    assert reasons("restricted", NEWEST, spec) == [reason]
    if since:
        assert reasons("restricted", since - 1, spec) == []


def test_restricted_checks_replace_baseline_checks() -> None:
    assert reasons("restricted", NEWEST, {**GOOD, "volumes": [{"name": "v", "hostPath": {}}]}) == ["restricted volume types"]
    added = with_context(capabilities={"add": ["SYS_ADMIN"], "drop": ["ALL"]})
    assert reasons("restricted", 21, added) == ["non-default capabilities"]
    assert reasons("restricted", 22, added) == ["unrestricted capabilities"]


@pytest.mark.parametrize(
    ("sysctl", "since"), [("net.ipv4.ip_local_reserved_ports", 27), ("net.ipv4.tcp_fin_timeout", 29), ("net.ipv4.tcp_rmem", 32)]
)
def test_sysctls_allowed_since_a_version(sysctl: str, since: int) -> None:
    spec = {**GOOD, "securityContext": {"sysctls": [{"name": sysctl}]}}
    assert reasons("baseline", since - 1, spec) == ["forbidden sysctls"]
    assert reasons("baseline", since, spec) == []


def test_user_namespace_pods_are_relaxed_since_1_35() -> None:
    root = {**with_context(runAsUser=0, runAsNonRoot=False), "hostUsers": False}
    assert reasons("restricted", 34, root) == ["runAsNonRoot != true", "runAsUser=0"]
    assert reasons("restricted", 35, root) == []
    unmasked = {**with_context(procMount="Unmasked"), "hostUsers": False}
    assert (reasons("baseline", 34, unmasked), reasons("baseline", 35, unmasked)) == (["procMount"], [])
    assert reasons("restricted", 35, unmasked) == ["procMount"]


def test_windows_pods_skip_linux_only_checks() -> None:
    windows = {"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": True}, "containers": [{"name": "c"}]}
    assert reasons("restricted", 25, windows) == []
    assert reasons("restricted", 24, windows) == [
        "allowPrivilegeEscalation != false",
        "unrestricted capabilities",
        "seccompProfile",
    ]


def test_legacy_apparmor_and_seccomp_annotations() -> None:
    meta = {
        "annotations": {
            "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
            "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        }
    }
    assert reasons("baseline", 18, GOOD, meta) == ["forbidden AppArmor profile", "seccompProfile"]
    assert reasons("baseline", 19, GOOD, meta) == ["forbidden AppArmor profile"]


def test_newest_version_is_the_maximum_of_the_table() -> None:
    assert max(minor for check in CHECKS.values() for minor in check.versions) == NEWEST
    assert {check.instead_of for check in CHECKS.values()} - {""} <= CHECKS.keys()
