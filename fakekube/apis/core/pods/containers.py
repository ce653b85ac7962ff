"""Validation of containers, init containers and ephemeral containers.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, forbidden, invalid, not_found, not_supported, required, too_many
from fakekube.apis.core.pods import environment
from fakekube.apis.core.pods.probes import PROBES, lifecycle
from fakekube.apis.core.pods.security_context import container_security, pull_policy
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.core.pods.visitor import is_sidecar
from fakekube.apis.core.pods.volume_mounts import volume_devices, volume_mounts
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each, one_of, port, required_one_of
from fakekube.apis.validation.resource_lists import container_resource_name, requirements

Container = Mapping[str, Any]

PROTOCOLS = ("SCTP", "TCP", "UDP")
RESIZED_RESOURCES = ("cpu", "memory")
RESIZE_POLICIES = ("NotRequired", "RestartContainer")
RESTART_POLICIES = ("Always", "Never", "OnFailure")
RESTART_RULES = 20
EXIT_CODES = 255

#: Fields that an ephemeral container cannot have, in the order of Go's struct.
NOT_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe",
    "readinessProbe", "startupProbe", "lifecycle",
)  # fmt: skip


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
    options: ValidationOptions


def containers(items: Sequence[Container], path: str, pod: PodContext) -> list[FieldError]:
    """Validates the containers of a pod (validateContainers)."""
    if not items:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        where, name = f"{path}[{index}]", item.get("name", "")
        errors += _common(item, where, pod)
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        errors += _validate_lifecycle_and_probes(item, where, pod)
        if "restartPolicy" in item or "restartPolicyRules" in item:
            errors += _restart_policy(item, where, checks_rules=True)
    return errors + host_port_conflicts(items, path)


def init_containers(items: Sequence[Container], regular: Sequence[Container], path: str, pod: PodContext) -> list[FieldError]:
    """Validates the init containers of a pod (validateInitContainers)."""
    errors: list[FieldError] = []
    seen = {item.get("name", "") for item in regular}
    for index, item in enumerate(items):
        where, name = f"{path}[{index}]", item.get("name", "")
        errors += _common(item, where, pod)
        if "restartPolicy" in item or item.get("restartPolicyRules"):
            errors += _restart_policy(item, where, checks_rules="restartPolicy" in item)
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        elif name:
            seen.add(name)
        errors += host_port_conflicts([item], path)
        if is_sidecar(dict(item)):
            errors += _validate_lifecycle_and_probes(item, where, pod)
        else:
            errors += _forbid_sidecar_fields(item, where, pod.options)
    return errors


def _forbid_sidecar_fields(item: Container, path: str, options: ValidationOptions) -> list[FieldError]:
    text = "may not be set for init containers without restartPolicy=Always"
    fields = ("lifecycle", *(field for field, _ in PROBES))
    errors = [forbidden(f"{path}.{field}", text) for field in fields if field in item]
    if options.restarting_init_containers:
        return errors
    text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return errors + [
        invalid(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer", text)
        for index, policy in enumerate(item.get("resizePolicy") or ())
        if policy.get("restartPolicy") == "RestartContainer"
    ]


def ephemeral_containers(items: Sequence[Container], others: Sequence[Container], path: str, pod: PodContext) -> list[FieldError]:
    """Validates the ephemeral containers of a pod (validateEphemeralContainers)."""
    errors: list[FieldError] = []
    other_names = {item.get("name", "") for item in others}
    seen = set(other_names)
    for index, item in enumerate(items):
        where, name, target = f"{path}[{index}]", item.get("name", ""), item.get("targetContainerName", "")
        errors += _common(item, where, pod) + image_without_padding(item, where)
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        if target and target not in other_names:
            errors.append(not_found(f"{where}.targetContainerName", target))
        wrong = [field for field in NOT_EPHEMERAL if item.get(field) is not None]
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


def _common(item: Container, path: str, pod: PodContext) -> list[FieldError]:
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
        errors += _ports(item["ports"], f"{path}.ports")
    if "env" in item:
        errors += environment.variables(item["env"], f"{path}.env")
    if "envFrom" in item:
        errors += environment.sources(item["envFrom"], f"{path}.envFrom")
    if "volumeMounts" in item:
        errors += volume_mounts(item, pod.volumes, f"{path}.volumeMounts")
    if "volumeDevices" in item:
        errors += volume_devices(item, pod.volumes, f"{path}.volumeDevices")
    errors += pull_policy(item.get("imagePullPolicy", ""), f"{path}.imagePullPolicy")
    resources = item.get("resources")
    if resources:
        errors += requirements(resources, f"{path}.resources", container_resource_name, pod.claims, pod.options.huge_pages)
    if "resizePolicy" in item:
        errors += _resize_policies(item["resizePolicy"], f"{path}.resizePolicy", pod.restart_policy)
    security = item.get("securityContext")
    if security:
        errors += container_security(security, f"{path}.securityContext", host_users=pod.host_users)
    return errors


def _validate_lifecycle_and_probes(item: Container, path: str, pod: PodContext) -> list[FieldError]:
    """Validates lifecycle hooks and probes, which only long-running containers have."""
    errors: list[FieldError] = []
    if "lifecycle" in item:
        errors += lifecycle(item["lifecycle"], pod.grace, f"{path}.lifecycle")
    for field, check in PROBES:
        if field in item:
            errors += check(item[field], f"{path}.{field}")
    return errors


def _ports(items: Sequence[Container], path: str) -> list[FieldError]:
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


def host_port_conflicts(items: Sequence[Container], path: str) -> list[FieldError]:
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


def _resize_policies(items: Sequence[Container], path: str, pod_restart_policy: str) -> list[FieldError]:
    """Validates resizePolicy; most of the errors are about the list, not about its items (validateResizePolicy)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        resource, policy = item.get("resourceName", ""), item.get("restartPolicy", "")
        if resource in seen:
            errors.append(duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        errors += required_one_of(resource, path, RESIZED_RESOURCES)
        errors += required_one_of(policy, path, RESIZE_POLICIES)
        if pod_restart_policy == "Never" and policy != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, policy, text))
    return errors


def _restart_policy(item: Container, path: str, *, checks_rules: bool) -> list[FieldError]:
    """Validates the restart policy and rules of a container (validateContainerRestartPolicy)."""
    rules = item.get("restartPolicyRules") or ()
    policy = item.get("restartPolicy")
    if policy is None:
        text = "must specify restartPolicy when restart rules are used"
        errors = [required(f"{path}.restartPolicy", text)] if rules else []
    else:
        errors = one_of(policy, f"{path}.restartPolicy", RESTART_POLICIES)
    if not checks_rules:
        return errors
    if len(rules) > RESTART_RULES:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), RESTART_RULES))
    for index, rule in enumerate(rules):
        errors += _restart_rule(rule, f"{path}.restartPolicyRules[{index}]")
    return errors


def _restart_rule(rule: Container, path: str) -> list[FieldError]:
    whole_pod = ("RestartAllContainers",) if features.current().enabled("RestartAllContainersOnContainerExits") else ()
    errors = one_of(rule.get("action", ""), f"{path}.action", ("Restart", *whole_pod))
    codes = rule.get("exitCodes")
    if codes is None:
        return [*errors, required(f"{path}.exitCodes", "must be specified")]
    operator, values = codes.get("operator", ""), codes.get("values") or ()
    if operator not in ("In", "NotIn"):
        errors.append(not_supported(f"{path}.exitCodes.operator", operator, ("In", "NotIn")))
    if len(values) > EXIT_CODES:
        errors.append(too_many(f"{path}.exitCodes.values", len(values), EXIT_CODES))
    return errors


def image_without_padding(item: Container, path: str) -> list[FieldError]:
    """Validates that an image has no leading or trailing space, in pods but not in templates."""
    image = item.get("image", "")
    if image == image.strip():
        return []
    return [invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]
