"""Validation of the security contexts of pods and containers, their profiles, and the fields that each operating system lacks.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import Typed, forbidden, invalid, not_supported, required, too_long
from fakekube.apis.core.pods.sysctls import validate_sysctls
from fakekube.apis.core.pods.validation_options import ValidationOptions
from fakekube.apis.core.pods.visitor import containers_with_paths
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import descending, invalid_each, one_of, required_one_of
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.to_internal import to_internal
from fakekube.base.golang.strconv import MAX_INT32
from fakekube.base.objects import Part

MAX_ID = MAX_INT32

#: Types of seccomp and AppArmor profiles.
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_APPARMOR_PATH_LENGTH = 4095


def _validate_identifier(context: Part, field: str, path: str) -> list[FieldError]:
    """Validates the number of a user or group."""
    value = context.get(field)
    if value is None or 0 <= value <= MAX_ID:
        return []
    return invalid_each(f"{path}.{field}", value, names.in_range(value, 0, MAX_ID))


def validate_pod_security_context(context: Part, spec: dict[str, Any], path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates the security context of a pod at `path` (validatePodSpecSecurityContext)."""
    if not context and not spec.get("shareProcessNamespace"):
        return []
    errors: list[FieldError] = []
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        errors += _validate_identifier(context, field, path)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        details = names.in_range(group, 0, MAX_ID)
        errors += invalid_each(f"{path}.supplementalGroups[{index}]", group, details)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        where = path.removesuffix(".securityContext") if from_minor(37) else path
        errors.append(invalid(f"{where}.shareProcessNamespace", True, text))
    if "sysctls" in context:
        errors += validate_sysctls(context["sysctls"], spec, f"{path}.sysctls", allow_shared=options.host_sysctls)
    if "fsGroupChangePolicy" in context:
        supported = ("Always", "OnRootMismatch")
        errors += one_of(context["fsGroupChangePolicy"], f"{path}.fsGroupChangePolicy", supported)
    errors += _validate_profiles(context, path)
    if "supplementalGroupsPolicy" in context:
        supported = ("Merge", "Strict")
        errors += one_of(context["supplementalGroupsPolicy"], f"{path}.supplementalGroupsPolicy", supported)
    if "seLinuxChangePolicy" in context:
        policies = ("MountOption", "Recursive") if options.selinux_change_policy else ("Recursive",)
        errors += one_of(context["seLinuxChangePolicy"], f"{path}.seLinuxChangePolicy", list(policies))
    return errors


def validate_security_context(context: Part, path: str, *, host_users: bool) -> list[FieldError]:
    """Validates the security context of a container (ValidateSecurityContext)."""
    errors = _validate_identifier(context, "runAsUser", path) + _validate_identifier(context, "runAsGroup", path)
    mount = context.get("procMount")
    if mount is not None:
        errors += one_of(mount, f"{path}.procMount", ("Default", "Unmasked"), ordered=True)
        if host_users and mount == "Unmasked":
            errors.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    seccomp = context.get("seccompProfile")
    if seccomp is not None:
        errors += _validate_seccomp_profile(seccomp, f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        errors += _validate_escalation(context, path)
    return errors + _validate_windows_and_apparmor(context, path)


def _validate_escalation(context: Part, path: str) -> list[FieldError]:
    """Validates that a context without privilege escalation does not grant privileges."""
    texts = []
    if context.get("privileged"):
        texts.append("cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
    added = (context.get("capabilities") or {}).get("add") or ()
    wrong = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
    texts += [wrong for capability in added if capability == "CAP_SYS_ADMIN"]
    return invalid_each(path, to_internal("SecurityContext", context), texts) if texts else []


def _validate_profiles(context: Part, path: str) -> list[FieldError]:
    seccomp = context.get("seccompProfile")
    errors = [] if seccomp is None else _validate_seccomp_profile(seccomp, f"{path}.seccompProfile")
    return errors + _validate_windows_and_apparmor(context, path)


def _validate_windows_and_apparmor(context: Part, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    windows, apparmor = context.get("windowsOptions"), context.get("appArmorProfile")
    if windows is not None:
        errors += _validate_windows_options(windows, f"{path}.windowsOptions")
    if apparmor is not None:
        errors += validate_apparmor_profile(apparmor, f"{path}.appArmorProfile")
    return errors


def _validate_seccomp_profile(profile: Part, path: str) -> list[FieldError]:
    """Validates a seccomp profile (validateSeccompProfileField)."""
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    errors: list[FieldError] = []
    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILE_TYPES:
        errors.append(not_supported(f"{path}.type", kind, _PROFILE_TYPES))
    where = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None:
            return [*errors, required(where, "must be set when seccomp type is Localhost")]
        return errors + descending(local, where)
    if local is not None:
        shown = to_internal("SeccompProfile", profile)
        errors.append(invalid(where, shown, "can only be set when seccomp type is Localhost"))
    return errors


def validate_apparmor_profile(profile: Part, path: str) -> list[FieldError]:
    """Validates an AppArmor profile (ValidateAppArmorProfileField)."""
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    where = f"{path}.localhostProfile"
    if not kind:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if kind not in _PROFILE_TYPES:
        return [not_supported(f"{path}.type", kind, _PROFILE_TYPES)]
    if kind != "Localhost":
        text = "can only be set when AppArmor type is Localhost"
        return [] if local is None else [invalid(where, local, text)]
    if local is None:
        return [required(where, "must be set when AppArmor type is Localhost")]
    errors: list[FieldError] = []
    if local.strip() != local:
        errors.append(invalid(where, local, "must not be padded with whitespace"))
    elif not local:
        errors.append(required(where, "must be set when AppArmor type is Localhost"))
    if not names.fits(local, _APPARMOR_PATH_LENGTH):
        errors.append(too_long(where, _APPARMOR_PATH_LENGTH))
    return errors


_GMSA_KIBIBYTES = 64
_DOMAIN_LENGTH = 256
_USER_LENGTH = 104

_control = re.compile(r"[\x00-\x1f\x7f]").search
_net_bios_matches = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}', re.DOTALL).fullmatch
_windows_label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_windows_domain_matches = re.compile(rf"{_windows_label}(?:\.{_windows_label})*").fullmatch
_dots_or_spaces_matches = re.compile(r"[. ]+").fullmatch
_not_in_user = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search


def _validate_windows_options(options: Part, path: str) -> list[FieldError]:
    """Validates the Windows options (validateWindowsSecurityContextOptions)."""
    errors: list[FieldError] = []
    name, spec, user = (options.get(field) for field in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"))
    if name is not None:
        errors += invalid_each(f"{path}.gmsaCredentialSpecName", Typed(name), names.dns_subdomain(name))
    if spec is not None:
        where = f"{path}.gmsaCredentialSpec"
        if not spec:
            errors.append(invalid(where, spec, "gmsaCredentialSpec cannot be an empty string"))
        elif not names.fits(spec, _GMSA_KIBIBYTES * 1024):
            text = f"gmsaCredentialSpec size must be under {_GMSA_KIBIBYTES} KiB"
            errors.append(invalid(where, spec, text))
    if user is not None:
        errors += invalid_each(f"{path}.runAsUserName", Typed(user), _windows_user(user))
    return errors


def _windows_user(text: str) -> list[str]:
    """Returns the errors of DOMAIN\\user or user."""
    if not text:
        return ["runAsUserName cannot be an empty string"]
    if _control(text):
        return ["runAsUserName cannot contain control characters"]
    if text.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = text.rpartition("\\")
    errors = []
    if not names.fits(domain, _DOMAIN_LENGTH - 1):
        errors.append(f"runAsUserName's Domain length must be under {_DOMAIN_LENGTH} characters")
    if backslash and not _net_bios_matches(domain) and not _windows_domain_matches(domain):
        errors.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        errors.append("runAsUserName's User cannot be empty")
    elif not names.fits(user, _USER_LENGTH):
        errors.append(f"runAsUserName's User length must not be longer than {_USER_LENGTH} characters")
    if _dots_or_spaces_matches(user):
        errors.append("runAsUserName's User cannot contain only periods or spaces")
    if _not_in_user(user):
        text = r"""runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"""
        errors.append(text)
    return errors


def validate_host_process(spec: dict[str, Any], path: str) -> list[FieldError]:
    """Validates that either all containers of a Windows pod are host processes, or none."""
    of_pod = _host_process_of(spec.get("securityContext"))
    errors: list[FieldError] = []
    count = total = 0
    for container, where in containers_with_paths(spec, path):
        total += 1
        own = _host_process_of(container.get("securityContext"))
        if of_pod is not None and own is not None and of_pod != own:
            shown = "true" if of_pod else "false"
            text = f"pod hostProcess value must be identical if both are specified, was {shown}"
            errors.append(invalid(f"{where}.securityContext.windowsOptions.hostProcess", own, text))
        if of_pod if own is None else own:
            count += 1
    if not count:
        return errors
    if count != total:
        text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.append(invalid(path, "", text))
    if not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid(f"{path}.hostNetwork", False, text))
    return errors


def _host_process_of(context: Part | None) -> bool | None:
    options = (context or {}).get("windowsOptions") or {}
    value: bool | None = options.get("hostProcess")
    return value


NOT_FOR_WINDOWS = "cannot be set for a windows pod"

#: Fields that a Windows pod cannot set, in the order of the errors.
_NOT_ON_WINDOWS = (
    "securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID", "hostIPC",
    "securityContext.seccompProfile", "securityContext.fsGroup", "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls", "shareProcessNamespace", "securityContext.runAsUser",
    "securityContext.runAsGroup", "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy", "securityContext.seLinuxChangePolicy",
)  # fmt: skip
_NOT_ON_WINDOWS_CONTAINERS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem",
    "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip


def validate_operating_system(spec: dict[str, Any], path: str) -> list[FieldError]:
    """Validates the name of the system, and that no field is set that it does not support (validateOS, validateLinux,
    validateWindows).
    """
    name = spec["os"].get("name", "")
    if name == "windows":
        return _validate_windows(spec, path)
    if name == "linux":
        return _validate_linux(spec, path)
    if not name:
        return [required(f"{path}.os.name", "" if from_minor(34) else "cannot be empty")]
    return [not_supported(f"{path}.os", name, ("linux", "windows"))]


def _validate_linux(spec: dict[str, Any], path: str) -> list[FieldError]:
    parts: Sequence[tuple[Part, str]] = [(spec, path), *containers_with_paths(spec, path)]
    return [
        forbidden(f"{where}.securityContext.windowsOptions", "windows options cannot be set for a linux pod")
        for part, where in parts
        if "windowsOptions" in (part.get("securityContext") or {})
    ]


def _validate_windows(spec: dict[str, Any], path: str) -> list[FieldError]:
    wrong = []
    for field in _NOT_ON_WINDOWS:
        holder, _, name = field.rpartition(".")
        part = spec.get(holder) or {} if holder else spec
        value = part.get(name)
        if value is not None and (value or name not in ("hostPID", "hostIPC", "sysctls")):
            wrong.append(f"{path}.{field}")
    for container, where in containers_with_paths(spec, path):
        context = container.get("securityContext") or {}
        wrong += [f"{where}.securityContext.{name}" for name in _NOT_ON_WINDOWS_CONTAINERS if name in context]
    return [forbidden(where, NOT_FOR_WINDOWS) for where in wrong]


def validate_host_users(spec: dict[str, Any], path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates that a pod with its own user namespace shares no other namespace of the host (validateHostUsers)."""
    if spec.get("hostUsers") is not False:
        return []
    wrong = []
    if spec.get("hostNetwork") and not options.host_network_users:
        wrong.append(f"{path}.hostNetwork")
    wrong += [f"{path}.{shown}" for field, shown in (("hostPID", "HostPID"), ("hostIPC", "HostIPC")) if spec.get(field)]
    if not options.user_namespace_devices:
        wrong += [
            f"{where}.volumeDevices" for container, where in containers_with_paths(spec, path) if container.get("volumeDevices")
        ]
    field = "hostUsers" if from_minor(34) else "pod.Spec.HostUsers"
    return [forbidden(where, f"when `{field}` is false") for where in wrong]


def validate_pull_policy(policy: str, path: str) -> list[FieldError]:
    """Validates the pull policy of the image of a container or volume."""
    return required_one_of(policy, path, ("Always", "IfNotPresent", "Never"))
