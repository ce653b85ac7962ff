"""Command lines of kube-apiserver: parses flags as Go programs do, and translates them into arguments of a cluster.

A flag is `--name=value`, `--name value`, `-name value` (Go's flag package, in old etcd), `-nvalue` for one letter, or a bare
`--name` for a switch; underscores count as dashes. A switch takes the next argument only if it is true or false. An unknown flag
takes the next argument if it is not a flag. Repeated flags keep all their values, in order.

Flags of `fakekube.apiserver.options` are passed on; `read` translates those about address, certificates, feature gates and
etcd; those in `REFUSED` are errors, because they require a feature that a cluster does not have. All others are ignored: flags
whose effect clients of a server in memory cannot observe, and flags of other releases, which suites often keep.

Invariants: every argument is read exactly once. An unsupported flag is refused before the port is opened, with its name and the
reason.

Specified by: github.com/spf13/pflag (flag.go, bool.go, string_slice.go) and k8s.io/component-base/cli/flag
(WordSepNormalizeFunc); k8s.io/kubernetes/cmd/kube-apiserver/app/options (options.go, validation.go),
k8s.io/apiserver/pkg/server/options (serving.go, etcd.go, authentication.go).
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakekube.apiserver.options import flags
from fakekube.base.golang.strconv import TRUE_TEXTS, go_quote
from fakekube.base.golang.timestamps import parse_duration

# --- Parses command lines as Go programs do --------------------------------------------------------------------------


_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_NANOSECONDS = 1e9


class FlagError(ValueError):
    """A flag has no value or an invalid one; the text is that of pflag."""


def parse(arguments: Sequence[str], *, switches: Collection[str], known: Collection[str]) -> dict[str, list[str]]:
    """Returns the values of each flag, by its name without dashes. Raises FlagError; see `split`."""
    return split(arguments, switches=switches, known=known)[0]


def split(
    arguments: Sequence[str], *, switches: Collection[str], known: Collection[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Returns the values of each flag, by its name without dashes, and the arguments that are not flags.

    Args:
        arguments: the command line, without the program.
        switches: the names of boolean flags.
        known: the names of flags that take a value.

    Raises FlagError if the last argument is a flag that needs a value.
    """
    found: dict[str, list[str]] = {}
    words: list[str] = []
    rest = list(reversed(arguments))
    while rest:
        argument = rest.pop()
        if argument == "--":
            words += reversed(rest)
            break
        if len(argument) < 2 or not argument.startswith("-"):
            words.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if argument[1] in known and argument[2:3] not in ("", "=") and name not in known and name not in switches:
            name, value = argument[1], argument[2:]
        elif not equals:
            value = _following(name, rest, switches, known)
        found.setdefault(name, []).append(value)
    return found, words


def _following(name: str, rest: list[str], switches: Collection[str], known: Collection[str]) -> str:
    """Returns the value of a flag without `=`, and removes it from the following arguments if it is one of them."""
    following = rest[-1] if rest else None
    if name in switches:
        return rest.pop() if following in TRUE_TEXTS | _FALSE else "true"
    if name in known:
        if following is None:
            raise FlagError(f"flag needs an argument: --{name}")
        return rest.pop()
    return "true" if following is None or following.startswith("-") else rest.pop()


# --- Values -----------------------------------------------------------------------------------------------------------


def boolean(name: str, text: str) -> bool:
    """Parses a boolean as strconv.ParseBool does. Raises FlagError."""
    if text in TRUE_TEXTS:
        return True
    if text in _FALSE:
        return False
    raise _invalid(name, text, f"strconv.ParseBool: parsing {go_quote(text)}: invalid syntax")


def integer(name: str, text: str) -> int:
    """Parses a decimal integer. Raises FlagError."""
    try:
        return int(text)
    except ValueError:
        raise _invalid(name, text, f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax") from None


def fraction(name: str, text: str) -> float:
    """Parses a number. Raises FlagError."""
    try:
        return float(text)
    except ValueError:
        raise _invalid(name, text, f"strconv.ParseFloat: parsing {go_quote(text)}: invalid syntax") from None


def seconds(name: str, text: str) -> float:
    """Parses a Go duration, and returns seconds. Raises FlagError."""
    try:
        return parse_duration(text) / _NANOSECONDS
    except ValueError as error:
        raise _invalid(name, text, str(error)) from None


def values(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the items of a flag that may be repeated and contain several items, separated by commas."""
    return tuple(part for text in texts for part in text.split(",") if part)


def mapping(name: str, texts: Sequence[str]) -> dict[str, str]:
    """Returns the pairs of flags such as `A=true,B=false`. Raises FlagError for an item without `=`."""
    return dict(_pairs(name, texts))


def _pairs(name: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for part in values(texts):
        key, equals, value = part.strip().partition("=")
        if not equals:
            raise _invalid(name, part, f"missing = in {go_quote(part)}")
        yield key.strip(), value.strip()


def read_value(name: str, kind: str, texts: Sequence[str]) -> Any:
    """Parses the value of a flag whose dataclass field has the annotation `kind`: all values for a sequence, else the last one.

    Raises FlagError.
    """
    if "Sequence" in kind:
        return values(texts)
    reader = _READERS.get(kind.partition(" ")[0])
    return texts[-1] if reader is None else reader(name, texts[-1])


_READERS: Mapping[str, Callable[[str, str], Any]] = {"bool": boolean, "int": integer, "float": seconds, "Fraction": fraction}


def _invalid(name: str, text: str, reason: str) -> FlagError:
    return FlagError(f'invalid argument {go_quote(text)} for "--{name}" flag: {reason}')


SECURE_PORT = 6443
PROFILE_FLAG = "fakekube-profile"
"""The flag for the profile of the cluster, which only these replacements have."""
PROFILE_VARIABLE = "FAKEKUBE_PROFILE"
"""The environment variable for the same."""
PACE_FLAG = "fakekube-pace"
"""The flag for the pace of the cluster, a duration, which only these replacements have."""
PACE_VARIABLE = "FAKEKUBE_PACE"
"""The environment variable for the same."""
_PACE = "50ms"
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
    "fakekube-pace", "fakekube-profile", "feature-gates", "insecure-bind-address", "insecure-port", "runtime-config",
    "secure-port", "v", "vmodule", "watch-cache-sizes",
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
    pace: float = 0.0
    """The value of --fakekube-pace, else of FAKEKUBE_PACE, in seconds; see `Cluster.pace`."""
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
    line.pace = _pace(given.get(PACE_FLAG, [""])[-1] or os.environ.get(PACE_VARIABLE, "") or _PACE)
    if "admission-control" in given:
        line.flags.setdefault("enable_admission_plugins", values(given["admission-control"]))
    if not line.flags.get("tls_cert_file") and given.get("cert-dir", [""])[-1]:
        line.certificates = Path(given["cert-dir"][-1])
    return line


def _pace(text: str) -> float:
    pace = seconds(PACE_FLAG, text)
    if pace < 0:
        raise _invalid(PACE_FLAG, text, "it must not be negative")
    return pace


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
