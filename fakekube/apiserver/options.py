"""The kube-apiserver flags that a cluster supports, as dataclasses by topic, and the admission control configuration file.

Flags have the names of kube-apiserver, with underscores in Python (`token_auth_file=…`) and dashes on the command
line (`--token-auth-file=…`); a few are of fakekube alone, which their docstrings say. Each dataclass has a field for each of its
flags; the command line, `Cluster` and the pytest plugin use these fields. Those about authentication and authorization are in
`auth.options`.

Specified by: k8s.io/kubernetes/cmd/kube-apiserver/app/options, pkg/controlplane/apiserver/options (ProxyClientCertFile);
k8s.io/apiserver/pkg/server/options (admission.go, audit.go), k8s.io/apiserver/pkg/admission/config.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from fakekube.apimachinery import data
from fakekube.apimachinery.codecs import DecodeError, yaml
from fakekube.apis.rest.cluster_access import ServiceRanges, parse_networks, parse_ports
from fakekube.apiserver.auth.options import AuthenticationOptions, AuthorizationOptions, OptionError
from fakekube.apiserver.registry.served_apis import NO_RUNTIME_CONFIG, RuntimeConfig, RuntimeConfigError, parse_runtime_config
from fakekube.base.golang.strconv import go_quote

# --- Admission ---------------------------------------------------------------------------------------------------------
#
# A configuration file is an AdmissionConfiguration, whose plugins have their configuration inline or in another file; or, in the
# legacy format, the configuration of ImagePolicyWebhook or PodNodeSelector itself.


@dataclass(slots=True, frozen=True)
class AdmissionOptions:
    """The flags that select and configure admission plugins."""

    enable_admission_plugins: Sequence[str] = ()
    """Plugins that run although they are off by default."""
    disable_admission_plugins: Sequence[str] = ()
    """Plugins that do not run although they are on by default."""
    admission_control_config_file: str = ""
    """The path of an AdmissionConfiguration, which has the configurations of plugins."""


_GROUP, _KIND = "apiserver.config.k8s.io", "AdmissionConfiguration"
_VERSIONS = ("v1", "v1alpha1")
#: Field that identifies a configuration without kind → its plugin.
_LEGACY = {"imagePolicy": "ImagePolicyWebhook", "podNodeSelectorPluginConfig": "PodNodeSelector"}


class ConfigurationError(ValueError):
    """The file, or the configuration of a plugin, is invalid; the text is the reason."""


def read_configuration(path: str) -> Mapping[str, Any]:
    """Returns the configurations in a file, by plugin name. Raises ConfigurationError."""
    value = _document(Path(path))
    if not isinstance(value, dict):
        raise ConfigurationError(f"{path} is no {_KIND}")
    group, _, version = str(value.get("apiVersion", "")).rpartition("/")
    if (group, value.get("kind")) != (_GROUP, _KIND) or version not in _VERSIONS:
        found = {name: value for member, name in _LEGACY.items() if member in value}
        if not found:
            kind = f"no kind {go_quote(str(value.get('kind', '')))} is registered"
            raise ConfigurationError(f"{kind} for version {go_quote(str(value.get('apiVersion', '')))}")
        return found
    return {str(entry.get("name")): _configuration(entry, Path(path).parent) for entry in value.get("plugins") or ()}


def _configuration(entry: Mapping[str, Any], folder: Path) -> Any:
    if entry.get("configuration") is not None:
        return entry["configuration"]
    return _document(folder / entry["path"]) if entry.get("path") else None


def _document(path: Path) -> Any:
    """Raises ConfigurationError."""
    try:
        return yaml.loads(path.read_bytes())[0]
    except OSError as error:
        problem = f"{go_quote(str(path))} [open {path}: {(error.strerror or 'unreadable').lower()}]"
        raise ConfigurationError(f"unable to read admission control configuration from {problem}") from None
    except DecodeError as error:
        raise ConfigurationError(f"{path}: {error}") from None


# --- Aggregated APIs ---------------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class AggregatorOptions:
    """The flags of the proxy client certificate: paths, or "". Both must be set, or none."""

    proxy_client_cert_file: str = ""
    """The client certificate with which this server authenticates as a front proxy."""
    proxy_client_key_file: str = ""


# --- Audit -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class AuditOptions:
    """Flags about audit. Files are paths; "" means that a flag is not set."""

    audit_policy_file: str = ""
    """A file with an audit Policy; required for audit."""
    audit_log_path: str = ""
    """The log file, with a line for each event; "-" is standard output."""
    audit_log_format: str = "json"
    """json or legacy."""
    audit_webhook_config_file: str = ""
    """A kubeconfig with the address and the credentials of the webhook."""
    audit_webhook_mode: str = "batch"
    """batch sends events in batches; blocking and blocking-strict send each event before the response."""
    audit_webhook_batch_max_size: int = 400
    """The maximum number of events in a batch."""
    audit_webhook_batch_max_wait: float = 30.0
    """Real seconds after which a batch is sent although it is not full."""
    audit_webhook_batch_buffer_size: int = 10_000
    """The maximum number of queued events; more are dropped."""


Fraction = float
"""The type of a flag that is a number and not a duration."""


@dataclass(slots=True, frozen=True)
class ServingOptions:
    """Flags about the secure port. Files are paths; "" means that a flag is not set."""

    tls_cert_file: str = ""
    """The server's certificate, with intermediate ones; by default one of the cluster's own CA."""
    tls_private_key_file: str = ""
    http2: bool = True
    """Whether to offer HTTP/2 to clients with TLS. kube-apiserver has the opposite flag, which is the next one."""
    disable_http2_serving: bool = False
    http2_max_streams_per_connection: int = 0
    """The maximum number of concurrent requests on a connection; 0 is the default of Go, 100."""
    goaway_chance: Fraction = 0.0
    """The probability with which a request over HTTP/2 is the last one of its connection, at most 0.02."""

    def __post_init__(self) -> None:
        if not 0 <= self.goaway_chance <= 0.02:
            raise OptionError("--goaway-chance can not be less than 0 or greater than 0.02")

    @property
    def offers_http2(self) -> bool:
        """Whether clients may choose HTTP/2."""
        return self.http2 and not self.disable_http2_serving


@dataclass(slots=True, frozen=True)
class ServiceOptions:
    """Flags about Services; "" means that a flag is not set."""

    service_cluster_ip_range: str = ""
    """A network for the addresses of Services, or two of different IP families, separated by a comma."""
    service_node_port_range: str = ""
    """Ports for Services of type NodePort: `30000-32767`."""

    def ranges(self) -> ServiceRanges:
        """Returns the ranges. Raises OptionError."""
        found = ServiceRanges()
        try:
            if self.service_cluster_ip_range:
                found = replace(found, networks=parse_networks(self.service_cluster_ip_range))
            if self.service_node_port_range:
                found = replace(found, node_ports=parse_ports(self.service_node_port_range))
        except ValueError as error:
            raise OptionError(str(error)) from None
        return found


@dataclass(slots=True, frozen=True)
class StorageOptions:
    """Flags about what is stored."""

    event_ttl: float = 3600.0
    """How long events are kept after their last write, by the clock of the cluster."""


@dataclass(slots=True, frozen=True)
class APIEnablementOptions:
    """Flags about the APIs that are served, and the minor whose gates and APIs a newer server has."""

    runtime_config: Sequence[str] = ()
    """APIs that are switched on or off: `api/beta=true`, `batch/v1=false`, `resource.k8s.io/v1beta1/deviceclasses=true`."""
    emulated_version: str = ""
    """An older minor, whose feature gates and APIs the server has: `1.36`, or `kube=1.36`."""

    def served_apis(self, version: str) -> RuntimeConfig:
        """Returns which APIs a server of a minor serves. Raises OptionError."""
        given = dict(_key_and_value(item) for item in self.runtime_config)
        if not given:
            return NO_RUNTIME_CONFIG
        try:
            return parse_runtime_config(given, data.minor(version))
        except RuntimeConfigError as error:
            raise OptionError(str(error)) from None

    def emulated_minor(self, version: str) -> str:
        """Returns the minor that a server of a minor emulates. Raises OptionError."""
        component, separator, text = self.emulated_version.rpartition("=")
        if not text:
            return version
        found = _MINOR.fullmatch(text)
        if found is None or (separator and component != "kube"):
            raise OptionError(f"could not parse {go_quote(self.emulated_version)} as version")
        newest = int(version.partition(".")[2])
        oldest, wanted = newest - _OLDER_MINORS, int(found[1])
        if not oldest <= wanted <= newest:
            text = f"emulation version 1.{wanted} is not between [1.{oldest}, {version}.0]"
            compatible = f"minCompatibilityVersion version 1.{oldest} is not between [1.{oldest}, 1.{wanted}]"
            raise OptionError(f"[{text}, {compatible}]" if wanted < oldest else text)
        return f"1.{wanted}"


def _key_and_value(item: str) -> tuple[str, str]:
    key, _, value = item.partition("=")
    return key.strip(), value.strip()


_MINOR = re.compile(r"v?1\.(\d+)(?:\.\d+)?")
_OLDER_MINORS = 3
"""How many minors back a server can emulate."""


@dataclass(slots=True, frozen=True)
class ServerOptions:
    """All flags of the API server of one cluster."""

    serving: ServingOptions = field(default_factory=ServingOptions)
    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    admission: AdmissionOptions = field(default_factory=AdmissionOptions)
    aggregation: AggregatorOptions = field(default_factory=AggregatorOptions)
    audit: AuditOptions = field(default_factory=AuditOptions)
    services: ServiceOptions = field(default_factory=ServiceOptions)
    storage: StorageOptions = field(default_factory=StorageOptions)
    apis: APIEnablementOptions = field(default_factory=APIEnablementOptions)

    @property
    def needs_tls(self) -> bool:
        """Whether a flag requires TLS."""
        authentication = self.authentication
        return bool(self.serving.tls_cert_file or authentication.client_ca_file or authentication.requestheader_client_ca_file)

    @classmethod
    def from_flags(cls, given: Mapping[str, Any]) -> ServerOptions:
        """Returns the options for flags, by names with underscores. A list may be a string with commas.

        Raises TypeError for an unknown flag, and OptionError for flags that exclude or require each other.
        """
        left = dict(given)
        parts = {part.name: _take_options(_PARTS[part.name], left) for part in fields(cls)}
        if left:
            raise TypeError(f"unknown arguments or flags: {', '.join(sorted(left))}")
        options = cls(**parts)
        _require_consistency(options, given)
        return options


_PARTS: Mapping[str, type[Any]] = {
    "serving": ServingOptions,
    "authentication": AuthenticationOptions,
    "authorization": AuthorizationOptions,
    "admission": AdmissionOptions,
    "aggregation": AggregatorOptions,
    "audit": AuditOptions,
    "services": ServiceOptions,
    "storage": StorageOptions,
    "apis": APIEnablementOptions,
}


def _require_consistency(options: ServerOptions, given: Mapping[str, Any]) -> None:
    """Raises OptionError for flags that exclude or require each other, with the messages of kube-apiserver.

    Specified by: pkg/kubeapiserver/options/authorization.go (Validate), apiserver pkg/server/options/serving.go.
    """
    authorization, serving = options.authorization, options.serving
    if authorization.authorization_config:
        if any(name == "authorization_mode" or name.startswith("authorization_webhook_") for name in given):
            raise OptionError(
                "--authorization-config can not be specified when "
                "--authorization-mode or --authorization-webhook-* flags are defined"
            )
    elif authorization.authorization_webhook_config_file and "Webhook" not in authorization.authorization_mode:
        raise OptionError("cannot specify --authorization-webhook-config-file without mode Webhook")
    if bool(serving.tls_cert_file) != bool(serving.tls_private_key_file):
        raise OptionError("missing filename for serving cert")


#: Flags that have no effect without another one, as the beginning of their names → that one.
_DEPENDENT: Mapping[str, str] = {
    "requestheader_": "requestheader_client_ca_file",
    "audit_webhook_": "audit_webhook_config_file",
    "audit_log_format": "audit_log_path",
    "authorization_webhook_": "authorization_webhook_config_file",
}
_OVER_TLS: frozenset[str] = frozenset({"disable_http2_serving", "http2_max_streams_per_connection", "goaway_chance"})


def ineffective_flags(given: Mapping[str, Any], *, tls: bool, is_local: bool) -> dict[str, str]:
    """Returns the flags that would be ignored, each with the reason.

    kube-apiserver ignores some of them without a word; a cluster refuses them.

    Args:
        given: the flags, by names with underscores.
        tls: whether the server speaks TLS.
        is_local: whether only this machine can reach the server.
    """
    found: dict[str, str] = {}
    for name in given:
        for beginning, required in _DEPENDENT.items():
            if name.startswith(beginning) and name != required and not given.get(required):
                found[name] = f"has no effect without --{required.replace('_', '-')}"
    if not tls:
        found |= {name: "has no effect without TLS" for name in _OVER_TLS & given.keys() if given[name]}
    if given.get("insecure_anonymous_admin") and (tls or is_local):
        reason = "with TLS" if tls else "for a server that only this machine can reach"
        found["insecure_anonymous_admin"] = f"has no effect {reason}"
    return found


def flags() -> Iterator[Field[Any]]:
    """Returns the dataclass field of every flag."""
    for part in _PARTS.values():
        yield from fields(part)


def _take_options(options: type[Any], given: dict[str, Any]) -> Any:
    """Returns the options of one topic and removes their flags from the mapping."""
    found = {}
    for flag in fields(options):
        if flag.name in given:
            value = given.pop(flag.name)
            if "Sequence" in str(flag.type):
                value = tuple(value.split(",") if isinstance(value, str) and value else value)
            found[flag.name] = str(value) if isinstance(value, Path) else value
    return options(**found)
