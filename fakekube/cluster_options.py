"""The options of a cluster, typed: what `Cluster`, the pytest plugin (marker, ini file, command line) and the base classes for
unittest take.

Type checkers refuse a misspelt option and a value of another type. `unknown_options`, which names the nearest one, and
`wrong_types` make the texts of the errors at run time.
The module imports nothing of the package, so that the plugin can read the names when pytest starts.

Invariant: `ServerFlags` has the fields of the dataclasses in `fakekube.apiserver.options`, and `ClusterOptions` the arguments of
`Cluster` (tests/unit/test_cluster_options.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

__all__ = ["ClusterOptions", "Object", "PluginOptions", "ServerFlags", "Source", "option_types", "unknown_options", "wrong_types"]

Object: TypeAlias = "dict[str, Any]"
"""An object of the API, as JSON data."""

Source: TypeAlias = "str | Path | Mapping[str, Any] | Iterable[Source]"
"""Manifests: a file or folder, YAML text with a line break or a brace at its beginning, an object, or several of these."""


class ServerFlags(TypedDict, total=False):
    """The flags of kube-apiserver, and a few of fakekube alone, with underscores; `fakekube.apiserver.options` explains them.

    Lists may be strings with commas. Durations are seconds.
    """

    # serving
    tls_cert_file: Path | str
    tls_private_key_file: Path | str
    http2: bool
    disable_http2_serving: bool
    http2_max_streams_per_connection: int
    goaway_chance: float
    # authentication
    client_ca_file: Path | str
    token_auth_file: Path | str
    service_account_key_file: str | Sequence[str]
    service_account_signing_key_file: Path | str
    service_account_issuer: str | Sequence[str]
    api_audiences: str | Sequence[str]
    anonymous_auth: bool
    authentication_config: Path | str
    requestheader_client_ca_file: Path | str
    requestheader_allowed_names: str | Sequence[str]
    requestheader_username_headers: str | Sequence[str]
    requestheader_uid_headers: str | Sequence[str]
    requestheader_group_headers: str | Sequence[str]
    requestheader_extra_headers_prefix: str | Sequence[str]
    allowed_hosts: str | Sequence[str]
    insecure_anonymous_admin: bool
    # authorization
    authorization_mode: str | Sequence[str]
    authorization_config: Path | str
    authorization_webhook_config_file: Path | str
    authorization_webhook_version: str
    authorization_webhook_cache_authorized_ttl: float
    authorization_webhook_cache_unauthorized_ttl: float
    # admission
    enable_admission_plugins: str | Sequence[str]
    disable_admission_plugins: str | Sequence[str]
    admission_control_config_file: Path | str
    # aggregation
    proxy_client_cert_file: Path | str
    proxy_client_key_file: Path | str
    # audit
    audit_policy_file: Path | str
    audit_log_path: Path | str
    audit_log_format: str
    audit_webhook_config_file: Path | str
    audit_webhook_mode: str
    audit_webhook_batch_max_size: int
    audit_webhook_batch_max_wait: float
    audit_webhook_batch_buffer_size: int
    # services
    service_cluster_ip_range: str
    service_node_port_range: str
    # storage
    event_ttl: float
    # served APIs
    runtime_config: str | Sequence[str]
    emulated_version: str


class ClusterOptions(ServerFlags, total=False):
    """The arguments of `Cluster`, which explains them."""

    version: str
    profile: str
    host: str
    port: int
    tls: bool
    feature_gates: Mapping[str, bool]
    controllers: str | Sequence[str]
    control: bool
    page: bool
    compaction_interval: float
    nodes: int
    stages: Source
    load: Source
    keep_requests: int
    strict: bool
    first_revision: int
    seed: int


class PluginOptions(ClusterOptions, total=False):
    """The options of the pytest plugin."""

    kubeconfig: bool
    """Whether KUBECONFIG is set to the kubeconfig of the cluster during the test."""


def option_types(options: type) -> dict[str, str]:
    """Returns the type of each option of a class of this module, as it is written."""
    # A TypedDict keeps a postponed annotation as a ForwardRef.
    return {name: str(getattr(one, "__forward_arg__", one)) for name, one in options.__annotations__.items()}


def unknown_options(given: Iterable[str], known: Iterable[str] = ClusterOptions.__annotations__) -> str:
    """Returns which names of options are unknown, each with the nearest known one; "" if all are known."""
    known = tuple(known)
    unknown = sorted(set(given) - set(known))
    if not unknown:
        return ""
    from difflib import get_close_matches

    parts = []
    for name in unknown:
        near = get_close_matches(name.replace("-", "_"), known, 1)
        parts.append(repr(name) + (f" (did you mean {near[0]!r}?)" if near else ""))
    return f"unknown {'options' if len(unknown) > 1 else 'option'}: {', '.join(parts)}"


#: Types as they are written → what their values are at run time. Others are read by those who take them.
_CHECKED: Mapping[str, Any] = {"bool": bool, "int": int, "float": (int, float), "str": str, "Mapping[str, bool]": Mapping}
_CHECKED_TYPES = {name: _CHECKED[type_] for name, type_ in option_types(ClusterOptions).items() if type_ in _CHECKED}


def wrong_types(given: Mapping[str, Any]) -> str:
    """Returns which option has a value of a wrong type; "" if none has. None is the default of any option."""
    for name, value in given.items():
        if value is not None and not isinstance(value, _CHECKED_TYPES.get(name, object)):
            return f"option {name!r} is {value!r}, a {type(value).__name__}; it takes {option_types(ClusterOptions)[name]}"
    return ""
