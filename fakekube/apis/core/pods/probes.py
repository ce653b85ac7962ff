"""Validation of probes and lifecycle hooks.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, required
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each, non_negative, one_of, port, port_or_name

Part = Mapping[str, Any]


def liveness_or_startup_probe(probe: Part, path: str) -> list[FieldError]:
    errors = _probe(probe, path)
    threshold = probe.get("successThreshold", 0)
    return errors if threshold == 1 else [*errors, invalid(f"{path}.successThreshold", threshold, "must be 1")]


def readiness_probe(probe: Part, path: str) -> list[FieldError]:
    errors = _probe(probe, path)
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None:
        where = f"{path}.terminationGracePeriodSeconds"
        errors.append(invalid(where, grace, "must not be set for readinessProbes"))
    return errors


#: The probes of a container, in the order of validation.
PROBES: tuple[tuple[str, Callable[[Part, str], list[FieldError]]], ...] = (
    ("livenessProbe", liveness_or_startup_probe),
    ("readinessProbe", readiness_probe),
    ("startupProbe", liveness_or_startup_probe),
)

_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def _probe(probe: Part, path: str) -> list[FieldError]:
    errors = handler(probe, PROBE_ACTIONS, None, path)
    for field in _COUNTS:
        if probe.get(field, 0) < 0:
            errors += non_negative(probe[field], f"{path}.{field}")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    return errors


def lifecycle(hooks: Part, grace: int | None, path: str) -> list[FieldError]:
    """Validates postStart and preStop hooks; `grace` is the upper bound of sleep actions."""
    errors: list[FieldError] = []
    for field in ("postStart", "preStop"):
        if field in hooks:
            errors += handler(hooks[field], HOOK_ACTIONS, grace, f"{path}.{field}")
    return errors


Action = Callable[[Part, int | None, str], list[FieldError]]


def handler(actions: Part, known: Mapping[str, Action], grace: int | None, path: str) -> list[FieldError]:
    """Validates that there is exactly one action (validateHandler)."""
    errors: list[FieldError] = []
    found = False
    for name, check in known.items():
        if name not in actions:
            continue
        if found:
            errors.append(forbidden(f"{path}.{name}", "may not specify more than 1 handler type"))
        else:
            found = True
            errors += check(actions[name], grace, f"{path}.{name}")
    return errors if found else [*errors, required(path, "must specify a handler type")]


def _exec(action: Part, _grace: int | None, path: str) -> list[FieldError]:
    return [] if action.get("command") else [required(f"{path}.command")]


def _http_get(action: Part, _grace: int | None, path: str) -> list[FieldError]:
    errors = [] if action.get("path") else [required(f"{path}.path")]
    errors += port_or_name(action.get("port", 0), f"{path}.port")
    errors += one_of(action.get("scheme", ""), f"{path}.scheme", ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        errors += invalid_each(f"{path}.httpHeaders", name, names.http_header_name(name))
    return errors


def _tcp_socket(action: Part, _grace: int | None, path: str) -> list[FieldError]:
    return port_or_name(action.get("port", 0), f"{path}.port")


def _grpc(action: Part, _grace: int | None, path: str) -> list[FieldError]:
    return port(action.get("port", 0), f"{path}.port")


def _sleep(action: Part, grace: int | None, path: str) -> list[FieldError]:
    seconds = action.get("seconds", 0)
    if grace is None or 0 <= seconds <= grace:
        return []
    return [invalid(path, seconds, f"must be non-negative and less than terminationGracePeriodSeconds ({grace})")]


PROBE_ACTIONS: Mapping[str, Action] = {
    "exec": _exec, "httpGet": _http_get, "tcpSocket": _tcp_socket, "grpc": _grpc,
}  # fmt: skip
HOOK_ACTIONS: Mapping[str, Action] = {
    "exec": _exec, "httpGet": _http_get, "tcpSocket": _tcp_socket, "sleep": _sleep,
}  # fmt: skip
