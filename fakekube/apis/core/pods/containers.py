"""Validation of containers, init containers and ephemeral containers, their probes, hooks and volume mounts.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import (
    Typed,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
    too_many,
)
from fakekube.apis.core.pods import environment
from fakekube.apis.core.pods.security_context import validate_pull_policy, validate_security_context
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.core.pods.visitor import is_sidecar
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import (
    ABOVE_0,
    PROTOCOLS,
    descending,
    invalid_each,
    no_backsteps,
    non_negative,
    one_of,
    port,
    port_or_name,
    required_one_of,
)
from fakekube.apis.validation.resource_lists import container_resource_name, requirements
from fakekube.apis.validation.rules import from_minor
from fakekube.base.objects import Part

Container = Mapping[str, Any]

_RESIZED_RESOURCES = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_RULES = 20
EXIT_CODES = 255

#: Fields that an ephemeral container cannot have, in the order of Go's struct.
_NOT_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe",
    "readinessProbe", "startupProbe", "lifecycle",
)  # fmt: skip


_POLICY_OF_RULES = "must specify restartPolicy when restart rules are used"
_NO_RULES_OF_SIDECARS = "restartPolicyRules are not allowed for init containers with restart policy Always"


@dataclass(slots=True)
class PodContext:
    """The parts of a pod on which the validation of its containers depends."""

    volumes: Mapping[str, Mapping[str, Any]]
    """The volumes that can be mounted, by name."""
    claims: Set[str]
    """The names of the resource claims of the pod."""
    grace: int | None
    """The terminationGracePeriodSeconds of the pod."""
    restart_policy: str
    host_users: bool
    os: str | None
    """The name of the operating system that the pod asks for; None if it does not."""
    options: ValidationOptions


def validate_containers(items: Sequence[Container], path: str, pod: PodContext) -> list[FieldError]:
    """Validates the containers of a pod (validateContainers)."""
    if not items:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        where, name = f"{path}[{index}]", item.get("name", "")
        errors += _validate_container_common(item, where, pod)
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        errors += _validate_lifecycle_and_probes(item, where, pod)
        if pod.options.restart_rules:
            errors += _validate_restart_policy(item, where, pod.options)
        elif "restartPolicy" in item:
            errors.append(forbidden(f"{where}.restartPolicy", "may not be set for non-init containers"))
    return errors + _check_host_port_conflicts(items, path)


def validate_init_containers(
    items: Sequence[Container], regular: Sequence[Container], path: str, pod: PodContext
) -> list[FieldError]:
    """Validates the init containers of a pod (validateInitContainers)."""
    errors: list[FieldError] = []
    seen = {item.get("name", "") for item in regular}
    for index, item in enumerate(items):
        where, name = f"{path}[{index}]", item.get("name", "")
        errors += _validate_container_common(item, where, pod)
        errors += _validate_init_restart_policy(item, where, pod.options)
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        elif name:
            seen.add(name)
        errors += _check_host_port_conflicts([item], path)
        if is_sidecar(dict(item)):
            errors += _validate_lifecycle_and_probes(item, where, pod)
        else:
            errors += _forbid_sidecar_fields(item, where, pod.options)
    return errors


def _forbid_sidecar_fields(item: Container, path: str, options: ValidationOptions) -> list[FieldError]:
    text = "may not be set for init containers without restartPolicy=Always"
    fields = ("lifecycle", *(field for field, _ in PROBES))
    errors = [forbidden(f"{path}.{field}", text) for field in fields if field in item]
    if options.restarting_init_containers or not from_minor(36):
        return errors
    text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return errors + [
        invalid(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer", text)
        for index, policy in enumerate(item.get("resizePolicy") or ())
        if policy.get("restartPolicy") == "RestartContainer"
    ]


def validate_ephemeral_containers(
    items: Sequence[Container], others: Sequence[Container], path: str, pod: PodContext
) -> list[FieldError]:
    """Validates the ephemeral containers of a pod (validateEphemeralContainers)."""
    errors: list[FieldError] = []
    other_names = {item.get("name", "") for item in others}
    seen = set(other_names)
    for index, item in enumerate(items):
        where, name, target = f"{path}[{index}]", item.get("name", ""), item.get("targetContainerName", "")
        errors += _validate_container_common(item, where, pod) + validate_image_without_padding(item, where)
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        if target and target not in other_names:
            errors.append(not_found(f"{where}.targetContainerName", target))
        wrong = [field for field in _NOT_EPHEMERAL if item.get(field) is not None]
        if not item.get("resources") and "resources" in wrong:
            wrong.remove("resources")  # the only field that is neither a pointer nor a list
        wrong += [
            f"volumeMounts[{position}].{field}"
            for position, mount in enumerate(item.get("volumeMounts") or ())
            for field in ("subPath", "subPathExpr")
            if mount.get(field)
        ]
        errors += [forbidden(f"{where}.{field}", "cannot be set for an Ephemeral Container") for field in wrong]
    return errors


def _validate_container_common(item: Container, path: str, pod: PodContext) -> list[FieldError]:
    """Validates what containers of all types have in common (validateContainerCommon)."""
    errors: list[FieldError] = []
    name = item.get("name", "")
    errors += invalid_each(f"{path}.name", name, names.dns_label(name)) if name else [required(f"{path}.name")]
    if not item.get("image"):
        errors.append(required(f"{path}.image"))
    policy = item.get("terminationMessagePolicy", "")
    supported = ("File", "FallbackToLogsOnError")
    errors += required_one_of(policy, f"{path}.terminationMessagePolicy", supported, ordered=True)
    if "ports" in item:
        errors += _validate_ports(item["ports"], f"{path}.ports")
    if "env" in item:
        errors += environment.validate_env(item["env"], f"{path}.env")
    if "envFrom" in item:
        errors += environment.validate_env_from(item["envFrom"], f"{path}.envFrom")
    if "volumeMounts" in item:
        errors += _validate_volume_mounts(item, pod.volumes, f"{path}.volumeMounts")
    if "volumeDevices" in item:
        errors += validate_volume_devices(item, pod.volumes, f"{path}.volumeDevices")
    errors += validate_pull_policy(item.get("imagePullPolicy", ""), f"{path}.imagePullPolicy")
    resources = item.get("resources")
    if resources:
        errors += requirements(resources, f"{path}.resources", container_resource_name, pod.claims, pod.options.huge_pages)
    if "resizePolicy" in item:
        errors += _validate_resize_policies(item["resizePolicy"], f"{path}.resizePolicy", pod.restart_policy)
    security = item.get("securityContext")
    if security:
        errors += validate_security_context(security, f"{path}.securityContext", host_users=pod.host_users)
    return errors


def _validate_lifecycle_and_probes(item: Container, path: str, pod: PodContext) -> list[FieldError]:
    """Validates lifecycle hooks and probes, which only long-running containers have."""
    errors: list[FieldError] = []
    if "lifecycle" in item:
        errors += _validate_lifecycle(item["lifecycle"], pod, f"{path}.lifecycle")
    for field, check in PROBES:
        if field in item:
            errors += check(item[field], f"{path}.{field}")
    return errors


def _validate_ports(items: Sequence[Container], path: str) -> list[FieldError]:
    """Validates the ports of a container (validateContainerPorts)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        name, number, host = item.get("name", ""), item.get("containerPort", 0), item.get("hostPort", 0)
        if name:
            details = names.port_name(name)
            if details:
                errors += invalid_each(f"{path}[{index}].name", name, details)
            elif name in seen:
                errors.append(duplicate(f"{path}[{index}].name", name))
            else:
                seen.add(name)
        where = f"{path}[{index}].containerPort"
        errors += port(number, where) if number else [required(where)]
        if host:
            errors += port(host, f"{path}[{index}].hostPort")
        errors += required_one_of(item.get("protocol", ""), f"{path}[{index}].protocol", PROTOCOLS)
    return errors


def _check_host_port_conflicts(items: Sequence[Container], path: str) -> list[FieldError]:
    """Validates that no two containers use the same host port (checkHostPortConflicts)."""
    errors: list[FieldError] = []
    taken: set[str] = set()
    for index, item in enumerate(items):
        for position, entry in enumerate(item.get("ports") or ()):
            number = entry.get("hostPort", 0)
            if not number:
                continue
            shown = f"{entry.get('protocol', '')}/{entry.get('hostIP', '')}/{number}"
            if shown in taken:
                errors.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", shown))
            taken.add(shown)
    return errors


def _validate_resize_policies(items: Sequence[Container], path: str, pod_restart_policy: str) -> list[FieldError]:
    """Validates resizePolicy; most of the errors are about the list, not about its items (validateResizePolicy)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        resource, policy = item.get("resourceName", ""), item.get("restartPolicy", "")
        if resource in seen:
            errors.append(duplicate(f"{path}[{index}]", Typed(resource)))
        seen.add(resource)
        errors += required_one_of(resource, path, _RESIZED_RESOURCES)
        errors += required_one_of(policy, path, _RESIZE_POLICIES)
        if pod_restart_policy == "Never" and policy != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, Typed(policy), text))
    return errors


def _validate_init_restart_policy(item: Container, path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates the restart policy of an init container (validateInitContainerRestartPolicy)."""
    policy, rules = item.get("restartPolicy"), item.get("restartPolicyRules") or ()
    if policy is None:
        return [required(f"{path}.restartPolicy", _POLICY_OF_RULES)] if rules and from_minor(35) else []
    if not options.restart_rules:
        return one_of(policy, f"{path}.restartPolicy", ("Always",))
    if policy != "Always" or options.restart_all_containers:
        return _validate_restart_policy(item, path, options)
    return [forbidden(f"{path}.restartPolicyRules", _NO_RULES_OF_SIDECARS)] if rules else []


def _validate_restart_policy(item: Container, path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates the restart policy and rules of a container (validateContainerRestartPolicy)."""
    policy, rules = item.get("restartPolicy"), item.get("restartPolicyRules") or ()
    if policy is None:
        errors = [required(f"{path}.restartPolicy", _POLICY_OF_RULES)] if rules else []
    else:
        errors = one_of(policy, f"{path}.restartPolicy", RESTART_POLICIES)
    errors += _validate_max_items(_RESTART_RULES, rules, f"{path}.restartPolicyRules")
    for index, rule in enumerate(rules):
        errors += _validate_restart_rule(rule, f"{path}.restartPolicyRules[{index}]", options)
    return errors


def _validate_restart_rule(rule: Container, path: str, options: ValidationOptions) -> list[FieldError]:
    allowed = ("Restart", "RestartAllContainers") if options.restart_all_containers else ("Restart",)
    action, errors = rule.get("action", ""), list[FieldError]()
    if action not in allowed:
        errors.append(not_supported(f"{path}.action", action, allowed if from_minor(36) else ("Restart",)))
    codes = rule.get("exitCodes")
    if codes is None:
        return [*errors, required(f"{path}.exitCodes", "must be specified")]
    operator, values = codes.get("operator", ""), codes.get("values") or ()
    if operator not in ("In", "NotIn"):
        errors.append(not_supported(f"{path}.exitCodes.operator", operator, ("In", "NotIn")))
    return errors + _validate_max_items(EXIT_CODES, values, f"{path}.exitCodes.values")


def _validate_max_items(most: int, items: Sequence[Any], path: str) -> list[FieldError]:
    if len(items) <= most:
        return []
    return [too_many(path, len(items), most) if from_minor(36) else too_long(path, most)]


def validate_image_without_padding(item: Container, path: str) -> list[FieldError]:
    """Validates that an image has no leading or trailing space, in pods but not in templates."""
    image = item.get("image", "")
    if image == image.strip():
        return []
    return [invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _validate_liveness_or_startup_probe(probe: Part, path: str) -> list[FieldError]:
    errors = _validate_probe(probe, path)
    threshold = probe.get("successThreshold", 0)
    return errors if threshold == 1 else [*errors, invalid(f"{path}.successThreshold", threshold, "must be 1")]


def _validate_readiness_probe(probe: Part, path: str) -> list[FieldError]:
    errors = _validate_probe(probe, path)
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None:
        where = f"{path}.terminationGracePeriodSeconds"
        errors.append(invalid(where, grace, "must not be set for readinessProbes"))
    return errors


#: The probes of a container, in the order of validation.
PROBES: tuple[tuple[str, Callable[[Part, str], list[FieldError]]], ...] = (
    ("livenessProbe", _validate_liveness_or_startup_probe),
    ("readinessProbe", _validate_readiness_probe),
    ("startupProbe", _validate_liveness_or_startup_probe),
)

_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def _validate_probe(probe: Part, path: str) -> list[FieldError]:
    errors = _validate_handler(probe, _PROBE_ACTIONS, None, path)
    for field in _COUNTS:
        if probe.get(field, 0) < 0:
            errors += non_negative(probe[field], f"{path}.{field}")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, ABOVE_0))
    return errors


def _validate_lifecycle(hooks: Part, pod: PodContext, path: str) -> list[FieldError]:
    """Validates postStart and preStop hooks and the stop signal; the pod's grace period is the upper bound of sleep actions."""
    errors: list[FieldError] = []
    for field in ("postStart", "preStop"):
        if field in hooks:
            errors += _validate_handler(hooks[field], _HOOK_ACTIONS, pod.grace, f"{path}.{field}")
    signal = hooks.get("stopSignal")
    return errors if signal is None else errors + _validate_stop_signal(signal, pod.os, f"{path}.stopSignal")


_SIGNALS: Final = (
    *(f"SIG{name}" for name in (
        "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE", "POLL", "PROF",
        "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1", "USR2", "VTALRM",
        "WINCH", "XCPU", "XFSZ", "RTMIN", "RTMAX",
    )),
    *(f"SIGRTMIN+{number}" for number in range(1, 16)),
    *(f"SIGRTMAX-{number}" for number in range(1, 15)),
)  # fmt: skip
_SIGNALS_BY_OS: Final = {"linux": _SIGNALS, "windows": ("SIGKILL", "SIGTERM")}


def _validate_stop_signal(signal: str, os: str | None, path: str) -> list[FieldError]:
    """Validates the signal that ends a container (validateStopSignal)."""
    if os is None:
        return [forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    known = _SIGNALS_BY_OS.get(os, (signal,))
    return [] if signal in known else [not_supported(path, signal, sorted(known))]


Action = Callable[[Part, int | None, str], list[FieldError]]


def _validate_handler(actions: Part, known: Mapping[str, Action], grace: int | None, path: str) -> list[FieldError]:
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


def _validate_exec(action: Part, _grace: int | None, path: str) -> list[FieldError]:
    return [] if action.get("command") else [required(f"{path}.command")]


def _validate_http_get(action: Part, _grace: int | None, path: str) -> list[FieldError]:
    errors = [] if action.get("path") else [required(f"{path}.path")]
    errors += port_or_name(action.get("port", 0), f"{path}.port")
    errors += one_of(action.get("scheme", ""), f"{path}.scheme", ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        errors += invalid_each(f"{path}.httpHeaders", name, names.http_header_name(name))
    return errors + (_validate_http_protocol(action, path) if "protocol" in action else [])


def _validate_http_protocol(action: Part, path: str) -> list[FieldError]:
    protocol = action["protocol"]
    if protocol == "HTTP2" and action.get("scheme") != "HTTP":
        return [invalid(f"{path}.protocol", protocol, "is only supported with HTTP (H2C)")]
    if protocol == "HTTP2" and action.get("host"):
        return [invalid(f"{path}.host", action["host"], 'must be empty when `protocol` is "HTTP2"')]
    return one_of(protocol, f"{path}.protocol", ("HTTP1", "HTTP2"))


def _validate_tcp_socket(action: Part, _grace: int | None, path: str) -> list[FieldError]:
    return port_or_name(action.get("port", 0), f"{path}.port")


def _validate_grpc(action: Part, _grace: int | None, path: str) -> list[FieldError]:
    errors = port(action.get("port", 0), f"{path}.port")
    return errors + (one_of(action["mode"], f"{path}.mode", ("Plaintext", "TLS")) if "mode" in action else [])


def _validate_sleep(action: Part, grace: int | None, path: str) -> list[FieldError]:
    seconds, may_be_zero = action.get("seconds", 0), features.current().enabled("PodLifecycleSleepActionAllowZero")
    if grace is None or (0 if may_be_zero else 1) <= seconds <= grace:
        return []
    bound = f"less than terminationGracePeriodSeconds ({grace})"
    if may_be_zero:
        return [invalid(path, seconds, f"must be non-negative and {bound}")]
    hint = "Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
    return [invalid(path, seconds, f"must be greater than 0 and {bound}. {hint}")]


_PROBE_ACTIONS: Mapping[str, Action] = {
    "exec": _validate_exec, "httpGet": _validate_http_get, "tcpSocket": _validate_tcp_socket, "grpc": _validate_grpc,
}  # fmt: skip
_HOOK_ACTIONS: Mapping[str, Action] = {
    "exec": _validate_exec, "httpGet": _validate_http_get, "tcpSocket": _validate_tcp_socket, "sleep": _validate_sleep,
}  # fmt: skip


_PROPAGATION = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def _validate_volume_mounts(container: Part, volumes: Mapping[str, Part], path: str) -> list[FieldError]:
    """Validates volume mounts (ValidateVolumeMounts); `volumes` are those of the pod."""
    mounts = container.get("volumeMounts")
    if not mounts:
        return []
    devices = {item.get("name", ""): item.get("devicePath", "") for item in container.get("volumeDevices") or ()}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        if name not in volumes:
            errors.append(not_found(f"{path}[{index}].name", name))
        if not target:
            errors.append(required(f"{path}[{index}].mountPath"))
        if target in seen:
            errors.append(invalid(f"{path}[{index}].mountPath", target, "must be unique"))
        seen.add(target)
        if name in devices:
            errors.append(invalid(f"{path}[{index}].name", name, "must not already exist in volumeDevices"))
        if target in devices.values():
            text = "must not already exist as a path in volumeDevices"
            errors.append(invalid(f"{path}[{index}].mountPath", target, text))
        if len(mount) > 2:
            errors += _validate_mount_options(mount, container, path, index)
        if mount.get("bindMountOptions"):
            errors += _validate_bind_mount_options(mount, volumes, f"{path}[{index}].bindMountOptions")
    return errors


def _validate_mount_options(mount: Part, container: Part, path: str, index: int) -> list[FieldError]:
    """Validates the other fields of a mount; most of the errors are about the list, not about the mount."""
    errors: list[FieldError] = []
    sub_path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if sub_path:
        errors += descending(sub_path, f"{path}.subPath")
    if expression:
        if sub_path:
            text = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{path}[{index}].subPathExpr", expression, text))
        errors += descending(expression, f"{path}.subPathExpr")
    if "mountPropagation" in mount:
        errors += _validate_propagation(mount["mountPropagation"], container, f"{path}.mountPropagation")
    if "recursiveReadOnly" in mount:
        errors += _validate_recursive_read_only(mount, f"{path}.recursiveReadOnly")
    return errors


def _validate_bind_mount_options(mount: Part, volumes: Mapping[str, Part], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    options, seen = mount["bindMountOptions"], set[str]()
    for index, option in enumerate(options):
        errors += one_of(option, f"{path}[{index}]", ("nodev", "noexec", "nosuid"), plain=True)
        if option in seen:
            errors.append(duplicate(f"{path}[{index}]", option))
        seen.add(option)
    if "image" in volumes.get(mount.get("name", ""), {}):
        errors.append(invalid(path, options, "bindMountOptions may not be used with image volumes"))
    return errors


def _validate_propagation(mode: str, container: Part, path: str) -> list[FieldError]:
    errors = one_of(mode, path, _PROPAGATION)
    if mode == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        text = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(forbidden(path, text))
    return errors


def _validate_recursive_read_only(mount: Part, path: str) -> list[FieldError]:
    mode = mount["recursiveReadOnly"]
    if mode not in ("Enabled", "IfPossible"):
        return one_of(mode, path, _RECURSIVE_READ_ONLY)
    errors: list[FieldError] = []
    if not mount.get("readOnly"):
        errors.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation", "None") != "None":
        text = "may only be specified when mountPropagation is None or not specified"
        errors.append(forbidden(path, text))
    return errors


def validate_volume_devices(container: Part, volumes: Mapping[str, Part], path: str) -> list[FieldError]:
    """Validates volume devices (ValidateVolumeDevices)."""
    mounts = {item.get("name", ""): item.get("mountPath", "") for item in container.get("volumeMounts") or ()}
    mount_paths = set(mounts.values())
    errors: list[FieldError] = []
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices") or ()):
        name, target = device.get("name", ""), device.get("devicePath", "")
        errors += _validate_device_name(name, volumes, seen_names, f"{path}[{index}].name")
        errors += _validate_device_path(target, seen_paths, f"{path}[{index}].devicePath")
        if name in mounts:
            errors.append(invalid(f"{path}[{index}].name", name, "must not already exist in volumeMounts"))
        if target in mount_paths:
            text = "must not already exist as a path in volumeMounts"
            errors.append(invalid(f"{path}[{index}].devicePath", target, text))
        if name:
            seen_names.add(name)
    return errors


def _validate_device_name(name: str, volumes: Mapping[str, Part], seen: set[str], path: str) -> list[FieldError]:
    errors = [] if name else [required(path)]
    if name in seen:
        errors.append(invalid(path, name, "must be unique"))
    volume = volumes.get(name)
    if volume is None:
        errors.append(not_found(path, name))
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        errors.append(invalid(path, name, text))
    return errors


def _validate_device_path(target: str, seen: set[str], path: str) -> list[FieldError]:
    errors = [] if target else [required(path)]
    if target in seen:
        errors.append(invalid(path, target, "must be unique"))
    if target and no_backsteps(target, path):
        errors.append(invalid(path, target, "can not contain backsteps ('..')"))
    else:
        seen.add(target)
    return errors


def validate_file_key_volumes(containers: Sequence[tuple[Part, str]], volumes: Sequence[Part]) -> list[FieldError]:
    """Validates that variables from files refer to emptyDir volumes (validateFileKeyRefVolumes)."""
    by_name = {volume.get("name", ""): volume for volume in volumes}
    errors: list[FieldError] = []
    for container, where in containers:
        for index, variable in enumerate(container.get("env") or ()):
            reference = variable.get("valueFrom", {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName", "")
            path = f"{where}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in by_name:
                errors.append(not_found(path, name))
            elif "emptyDir" not in by_name[name]:
                errors.append(invalid(path, name, "referenced volume must be of type emptyDir"))
    return errors
