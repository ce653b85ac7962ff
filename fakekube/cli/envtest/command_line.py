"""Translates a command line of kube-apiserver into arguments of a cluster.

Flags of `fakekube.apiserver.options` are passed on; `read` translates those about address, certificates, feature gates and
etcd; those in `REFUSED` are errors, because they require a feature that a cluster does not have. All others are ignored: flags
whose effect clients of a server in memory cannot observe, and flags of other releases, which suites often keep.

Invariant: an unsupported flag is refused before the port is opened, with its name and the reason.

Specified by: k8s.io/kubernetes/cmd/kube-apiserver/app/options (options.go, validation.go), k8s.io/apiserver/pkg/server/options
(serving.go, etcd.go, authentication.go).
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakekube.apiserver.options import flags
from fakekube.cli.envtest.flags import FlagError, boolean, integer, mapping, parse, read_value, values

SECURE_PORT = 6443
PROFILE_FLAG = "fakekube-profile"
"""The flag for the profile of the cluster, which only these replacements have."""
PROFILE_VARIABLE = "FAKEKUBE_PROFILE"
"""The environment variable for the same."""
LOOPBACK = "127.0.0.1"
"""The default of --bind-address. That of the real server is all addresses, which would expose a test to the network."""

#: The boolean flags of kube-apiserver that `fakekube.apiserver.options` does not have.
_SWITCHES = frozenset((
    "aggregator-reject-forwarding-redirect", "allow-privileged", "alsologtostderr", "audit-log-batch-throttle-enable",
    "audit-log-compress", "audit-log-truncate-enabled", "audit-webhook-batch-throttle-enable",
    "audit-webhook-truncate-enabled", "contention-profiling", "emulation-forward-compatible",
    "enable-aggregator-routing", "enable-bootstrap-token-auth", "enable-garbage-collector", "enable-logs-handler",
    "enable-priority-and-fairness", "enable-swagger-ui", "encryption-provider-config-automatic-reload", "help",
    "log-text-split-stream", "logtostderr", "permit-address-sharing", "permit-port-sharing", "profiling",
    "runtime-config-emulation-forward-compatible", "service-account-extend-token-expiration", "service-account-lookup",
    "shutdown-send-retry-after", "version", "watch-cache",
))  # fmt: skip

#: The flags with values that are read here, or whose value may begin with a dash.
_KNOWN = frozenset((
    "admission-control", "advertise-address", "bind-address", "cert-dir", "emulated-version", "etcd-servers",
    "fakekube-profile", "feature-gates", "insecure-bind-address", "insecure-port", "runtime-config", "secure-port",
    "v", "vmodule", "watch-cache-sizes",
))  # fmt: skip

#: Flags that are not supported with a non-empty value → what to use instead.
REFUSED: Mapping[str, str] = {
    "authentication-token-webhook-config-file": "use --authentication-config or --token-auth-file",
    "authorization-policy-file": "the mode ABAC is not supported; use RBAC or Webhook",
    "oidc-issuer-url": "use --authentication-config with a JWT authenticator",
    "service-account-signing-endpoint": "external signers are not supported; use --service-account-signing-key-file",
    "tls-sni-cert-key": "one certificate is served; use --tls-cert-file",
}


@dataclass(slots=True)
class CommandLine:
    """A parsed command line."""

    host: str = LOOPBACK
    port: int = SECURE_PORT
    feature_gates: dict[str, bool] = field(default_factory=dict)
    flags: dict[str, Any] = field(default_factory=dict)
    """The flags of `fakekube.apiserver.options`, with underscores."""
    certificates: Path | None = None
    """The value of --cert-dir, unless --tls-cert-file is set."""
    etcd: str = ""
    """The value of --etcd-servers."""
    profile: str = ""
    """The value of --fakekube-profile, else of FAKEKUBE_PROFILE; "" if there is none."""
    wants: str = "serve"
    """serve, help or version."""


def read(arguments: Sequence[str]) -> CommandLine:
    """Reads a command line of kube-apiserver. Raises FlagError."""
    own = {flag.name.replace("_", "-"): str(flag.type) for flag in flags()}
    switches = _SWITCHES | {name for name, kind in own.items() if kind.startswith("bool")}
    given = parse(arguments, switches=switches, known=_KNOWN | REFUSED.keys() | own.keys())
    for name in ("help", "version"):
        if name in given or (name == "help" and "h" in given):
            return CommandLine(wants=name)
    _refuse(given)
    line = CommandLine(
        host=_host(given.get("bind-address", [LOOPBACK])[-1]),
        port=_port(given.get("secure-port", [str(SECURE_PORT)])[-1]),
        feature_gates=_gates(given.get("feature-gates", ())),
        flags={name.replace("-", "_"): read_value(name, own[name], texts) for name, texts in given.items() if name in own},
    )
    line.etcd = given.get("etcd-servers", [""])[-1]
    line.profile = given.get(PROFILE_FLAG, [""])[-1] or os.environ.get(PROFILE_VARIABLE, "")
    if "admission-control" in given:
        line.flags.setdefault("enable_admission_plugins", values(given["admission-control"]))
    if not line.flags.get("tls_cert_file") and given.get("cert-dir", [""])[-1]:
        line.certificates = Path(given["cert-dir"][-1])
    return line


def _refuse(given: Mapping[str, Sequence[str]]) -> None:
    for name, reason in REFUSED.items():
        if given.get(name, [""])[-1]:
            raise FlagError(f"--{name} is not supported: {reason}")
    if given.get("insecure-port", ["0"])[-1] not in ("", "0"):
        raise FlagError("--insecure-port is not supported: there is no insecure port since Kubernetes 1.24")
    certificate, key = (bool(given.get(name, [""])[-1]) for name in ("tls-cert-file", "tls-private-key-file"))
    if certificate != key:
        raise FlagError("--tls-cert-file and --tls-private-key-file must be specified together")


def _host(text: str) -> str:
    """Returns the address to listen on; the real server reads an IP address here."""
    try:
        address = ipaddress.ip_address(text or LOOPBACK)
    except ValueError:
        raise FlagError(f'invalid argument "{text}" for "--bind-address" flag: failed to parse IP: "{text}"') from None
    return str(address)


def _port(text: str) -> int:
    port = integer("secure-port", text)
    if not 1 <= port <= 65535:
        raise FlagError(f"--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0")
    return port


def _gates(texts: Sequence[str]) -> dict[str, bool]:
    """Returns the feature gates of kube-apiserver; a name may have a component as its prefix (kube:NAME=true)."""
    gates = {}
    for name, text in mapping("feature-gates", texts).items():
        component, _, gate = name.rpartition(":")
        if component in ("", "kube"):
            gates[gate] = boolean("feature-gates", text)
    return gates
