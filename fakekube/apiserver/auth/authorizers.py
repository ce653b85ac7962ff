"""Builds the authorizers of one cluster from the flags --authorization-mode or --authorization-config.

Specified by: k8s.io/kubernetes/pkg/kubeapiserver/authorizer (config.go, reload.go),
pkg/kubeapiserver/options/authorization.go, k8s.io/apiserver/pkg/apis/apiserver/validation (AuthorizationConfiguration).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, not_supported, required
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import ABSOLUTE_PATH
from fakekube.apiserver.auth.authorization import AlwaysAllow, AlwaysDeny, PrivilegedGroup, RuleResolver, UnionAuthorizer
from fakekube.apiserver.auth.options import AuthorizationOptions, OptionError
from fakekube.base.clock import Clock

if TYPE_CHECKING:
    from fakekube.apiserver.auth.authentication_configuration import Section
    from fakekube.apiserver.auth.webhook import WebhookConfiguration


#: The supported modes. ABAC is not supported.
MODES: Final = ("AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")

_CONFIG: Final = "authorization-config"
_PRIVILEGED: Final = "kubernetes.io/system-privileged-group"
_LONGEST_TIMEOUT: Final = 30.0
_MAXIMUM_CONDITIONS: Final = 64

Factories = Mapping[str, Callable[[], RuleResolver]]
"""The constructors of the authorizers that use the cluster: RBAC and Node."""


def authorizer_of(options: AuthorizationOptions, factories: Factories, clock: Clock) -> UnionAuthorizer:
    """Returns the authorizer that follows the one of the privileged group. Raises OptionError."""
    if options.authorization_config:
        authorizers = _configure_authorizers(options.authorization_config, factories, clock)
    else:
        modes = _check_modes(options.authorization_mode)
        names_of_modes = {mode: "default" if mode == "Webhook" else mode.lower() for mode in modes}
        authorizers = {name: _of_mode(mode, name, options, factories, clock) for mode, name in names_of_modes.items()}
    return UnionAuthorizer({_PRIVILEGED: PrivilegedGroup(), **authorizers})


# --- Modes ------------------------------------------------------------------------------------------------------------


def _check_modes(modes: Sequence[str]) -> Sequence[str]:
    """Raises OptionError for unknown or repeated modes."""
    if not modes:
        raise OptionError("at least one authorization-mode must be passed")
    for mode in modes:
        if mode not in MODES:
            raise OptionError(f'authorization-mode "{mode}" is not a valid mode')
    if len(set(modes)) != len(modes):
        raise OptionError(f"authorization-mode {list(modes)} has mode specified more than once")
    return modes


def _of_mode(mode: str, name: str, options: AuthorizationOptions, factories: Factories, clock: Clock) -> RuleResolver:
    if mode != "Webhook":
        return _of_type(mode, factories)
    from fakekube.apiserver.auth.webhook import WebhookConfiguration

    if not options.authorization_webhook_config_file:
        raise OptionError("authorization-mode Webhook's authorization config file not passed")
    return _webhook(
        WebhookConfiguration(
            name,
            options.authorization_webhook_config_file,
            options.authorization_webhook_version,
            authorized_ttl=options.authorization_webhook_cache_authorized_ttl,
            unauthorized_ttl=options.authorization_webhook_cache_unauthorized_ttl,
        ),
        clock,
    )


def _of_type(kind: str, factories: Factories) -> RuleResolver:
    plain: Factories = {"AlwaysAllow": AlwaysAllow, "AlwaysDeny": AlwaysDeny}
    return {**plain, **factories}[kind]()


def _webhook(configuration: WebhookConfiguration, clock: Clock) -> RuleResolver:
    from fakekube.apiserver.auth.webhook import MatchConditionError, WebhookAuthorizer
    from fakekube.apiserver.webhooks.transport import KubeconfigError

    try:
        return WebhookAuthorizer(configuration, clock)
    except (KubeconfigError, MatchConditionError) as error:
        raise OptionError(f"authorizer {configuration.name}: {error}") from None


# --- AuthorizationConfiguration ---------------------------------------------------------------------------------------


def _configure_authorizers(path: str, factories: Factories, clock: Clock) -> dict[str, RuleResolver]:
    from fakekube.apiserver.auth.authentication_configuration import load_configuration, refuse

    section = load_configuration(path, _CONFIG, "AuthorizationConfiguration", ("v1", "v1beta1", "v1alpha1"))
    entries = section.sections("authorizers")
    section.require_no_other_fields()
    errors: list[FieldError] = []
    if not entries:
        errors.append(required("authorizers", "at least one authorization mode must be defined"))
    found: list[str | WebhookConfiguration] = []
    kinds: list[str] = []
    authorizer_names: list[str] = []
    for entry in entries:
        kind, name = entry.text("type"), entry.text("name")
        errors += _entry_errors(entry, kind, name, kinds, authorizer_names)
        kinds.append(kind)
        authorizer_names.append(name)
        if kind == "Webhook" and entry.has("webhook"):
            found.append(_webhook_configuration(entry.section("webhook"), name, errors))
        else:
            found.append(kind)
        entry.require_no_other_fields()
    refuse(_CONFIG, errors)
    made = [_of_type(one, factories) if isinstance(one, str) else _webhook(one, clock) for one in found]
    return dict(zip(authorizer_names, made, strict=True))


def _entry_errors(
    entry: Section, kind: str, name: str, kinds: Sequence[str], authorizer_names: Sequence[str]
) -> list[FieldError]:
    if not kind:
        return [required(entry.path_of("type"))]
    if kind not in MODES:
        return [not_supported(entry.path_of("type"), kind, MODES)]
    if kind in kinds and kind != "Webhook":
        return [duplicate(entry.path_of("type"), kind)]
    errors: list[FieldError] = []
    if not name:
        errors.append(required(entry.path_of("name")))
    elif name in authorizer_names:
        errors.append(duplicate(entry.path_of("name"), name))
    elif problems := names.dns_subdomain(name, False):
        errors.append(invalid(entry.path_of("name"), name, f"authorizer name is invalid: {', '.join(problems)}"))
    if kind == "Webhook" and not entry.has("webhook"):
        errors.append(required(entry.path_of("webhook"), "required when type=Webhook"))
    elif kind != "Webhook" and entry.has("webhook"):
        errors.append(invalid(entry.path_of("webhook"), "non-null", "may only be specified when type=Webhook"))
    return errors


def _webhook_configuration(webhook: Section, name: str, errors: list[FieldError]) -> WebhookConfiguration:
    from fakekube.apiserver.auth.webhook import WebhookConfiguration

    timeout = _time(webhook, "timeout", errors, _LONGEST_TIMEOUT)
    authorized, unauthorized = (_time(webhook, f"{kind}TTL", errors) for kind in ("authorized", "unauthorized"))
    keeps = [not webhook.has(field) or webhook.flag(field) for field in ("cacheAuthorizedRequests", "cacheUnauthorizedRequests")]
    version = _choice(webhook, "subjectAccessReviewVersion", ("v1", "v1beta1"), errors)
    policy = _choice(webhook, "failurePolicy", ("NoOpinion", "Deny"), errors)
    conditions = _conditions(webhook, errors)
    if webhook.has("matchConditionSubjectAccessReviewVersion") or conditions:
        _choice(webhook, "matchConditionSubjectAccessReviewVersion", ("v1",), errors)
    path = _connection(webhook.section("connectionInfo"), errors)
    webhook.require_no_other_fields()
    return WebhookConfiguration(
        name, path, version, timeout, policy == "Deny", authorized * keeps[0], unauthorized * keeps[1], conditions
    )


def _time(webhook: Section, field: str, errors: list[FieldError], longest: float = 0.0) -> float:
    seconds = webhook.seconds(field)
    if not seconds:
        errors.append(required(webhook.path_of(field)))
    elif seconds < 0 or (longest and seconds > longest):
        text = f"must be > 0s and <= {longest:g}s" if longest else "must be > 0s"
        errors.append(invalid(webhook.path_of(field), f"{seconds:g}s", text))
    return seconds


def _choice(section: Section, field: str, choices: Sequence[str], errors: list[FieldError]) -> str:
    value = section.text(field)
    if not value:
        errors.append(required(section.path_of(field)))
    elif value not in choices:
        errors.append(not_supported(section.path_of(field), value, choices))
    return value


def _conditions(webhook: Section, errors: list[FieldError]) -> list[str]:
    from fakekube.apiserver.auth.webhook import MatchConditionError, compiled_condition

    entries = webhook.sections("matchConditions")
    if len(entries) > _MAXIMUM_CONDITIONS:
        text = f"must have at most {_MAXIMUM_CONDITIONS} items"
        errors.append(invalid(webhook.path_of("matchConditions"), len(entries), text))
    sources: list[str] = []
    for entry in entries:
        source, path = entry.text("expression"), entry.path_of("expression")
        entry.require_no_other_fields()
        if not source.strip():
            errors.append(required(path))
        elif source in sources:
            errors.append(duplicate(path, source))
        else:
            try:
                compiled_condition(source)
            except MatchConditionError as error:
                errors.append(invalid(path, source, str(error)))
        sources.append(source)
    return sources


def _connection(info: Section, errors: list[FieldError]) -> str:
    kind, path = info.text("type"), info.text("kubeConfigFile")
    info.require_no_other_fields()
    if kind == "InClusterConfig":
        errors.append(invalid(info.path_of("type"), kind, "there is no cluster around this one"))
    elif kind != "KubeConfigFile":
        choices = ("InClusterConfig", "KubeConfigFile")
        errors.append(not_supported(info.path_of("type"), kind, choices) if kind else required(info.path_of("type")))
    elif not path:
        errors.append(required(info.path_of("kubeConfigFile")))
    elif not Path(path).is_absolute():
        errors.append(invalid(info.path_of("kubeConfigFile"), path, ABSOLUTE_PATH))
    elif not Path(path).is_file():
        errors.append(invalid(info.path_of("kubeConfigFile"), path, "must be a regular file"))
    return path
