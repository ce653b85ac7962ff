"""`fakekube server`: a cluster with the command line of `k3s server`, for container images that replace those of k3s.

The k3s modules of Testcontainers start the image with arguments of k3s, wait for a line of its log, and read the kubeconfig at a
fixed path. Manifests in the data folder are applied before the line is printed. Flags that are not listed here are ignored;
most of them concern real nodes.

Invariant: when the line is printed, the port is open, the kubeconfig is written and every manifest is applied.

Specified by: github.com/k3s-io/k3s/pkg/cli/cmds/server.go and the k3s modules of testcontainers for Java, Go and Python.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakekube.cli.envtest import command_line
from fakekube.cli.envtest.command_line import FlagError, boolean, integer, split, values
from fakekube.cli.process import setup_signal_handler

if TYPE_CHECKING:
    from fakekube.cluster import Cluster


READY = "Node controller sync successful"
"""The line that testcontainers' modules wait for."""

#: The boolean flags of k3s.
_SWITCHES = frozenset((
    "cluster-init", "cluster-reset", "debug", "disable-agent", "disable-apiserver", "disable-cloud-controller",
    "disable-controller-manager", "disable-etcd", "disable-helm-controller", "disable-kube-proxy", "disable-network-policy",
    "disable-scheduler", "docker", "embedded-registry", "flannel-external-ip", "prefer-bundled-bin", "protect-kernel-defaults",
    "rootless", "secrets-encryption", "selinux",
))  # fmt: skip
#: The flags of k3s with a value that are read here, and others that have one.
_KNOWN = frozenset((
    "bind-address", "data-dir", "d", "disable", "https-listen-port", "kube-apiserver-arg", "node-name", "no-deploy",
    "service-cidr", "service-node-port-range", "tls-san", "token", "write-kubeconfig", "o", "write-kubeconfig-mode",
))  # fmt: skip
#: Short flags, and their long names.
_LONG = {"d": "data-dir", "o": "write-kubeconfig"}

#: Flags of k3s whose values are flags of kube-apiserver.
_PASSED_ON = {"service-cidr": "service-cluster-ip-range", "service-node-port-range": "service-node-port-range"}


@dataclass(slots=True)
class Arguments:
    """A parsed command line, with the defaults of k3s."""

    host: str = "0.0.0.0"
    port: int = 6443
    kubeconfig: Path = Path("/etc/rancher/k3s/k3s.yaml")
    data: Path = Path("/var/lib/rancher/k3s")
    names: tuple[str, ...] = ()
    """Additional names and addresses in the certificate."""
    scheduler: bool = True
    feature_gates: dict[str, bool] = field(default_factory=dict)
    flags: dict[str, Any] = field(default_factory=dict)
    """Flags of kube-apiserver, as arguments of `Cluster`."""


def read_arguments(arguments: Sequence[str]) -> Arguments:
    """Parses the command line of `k3s server`, without the program and `server`. Raises FlagError."""
    given, _ = split(arguments, switches=_SWITCHES, known=_KNOWN)
    found = {_LONG.get(name, name): texts for name, texts in given.items()}
    passed = [f"--{_PASSED_ON[name]}={','.join(texts)}" for name, texts in found.items() if name in _PASSED_ON]
    line = command_line.read([*passed, *(f"--{text}" for text in found.get("kube-apiserver-arg", ()))])
    default = Arguments()
    return Arguments(
        host=_last_value(found, "bind-address", default.host),
        port=integer("https-listen-port", _last_value(found, "https-listen-port", str(default.port))),
        kubeconfig=Path(_last_value(found, "write-kubeconfig", str(default.kubeconfig))),
        data=Path(_last_value(found, "data-dir", str(default.data))),
        names=values(found.get("tls-san", ())),
        scheduler=not boolean("disable-scheduler", _last_value(found, "disable-scheduler", "false")),
        feature_gates=line.feature_gates,
        flags=line.flags,
    )


def _last_value(given: Mapping[str, Sequence[str]], name: str, default: str) -> str:
    return given[name][-1] if name in given else default


def main(arguments: Sequence[str]) -> int:
    """Serves until a signal arrives, and returns the exit code."""
    from fakekube.apiserver.auth.options import OptionError
    from fakekube.cluster.testing.manifests import ManifestError
    from fakekube.controllers.client import ApiError, UnknownResource
    from fakekube.net import busy_poll

    stop = setup_signal_handler()
    try:
        with _start_cluster(read_arguments(arguments)):
            busy_poll.allow()
            print(READY, flush=True)
            stop.wait()
    except (FlagError, OptionError, ManifestError, ApiError, UnknownResource) as problem:
        print(f"fakekube server: {problem}", file=sys.stderr)
        return 1
    except OSError as problem:  # without a file it is one of the address
        print(f"fakekube server: {problem if problem.filename else problem.strerror}", file=sys.stderr)
        return 1
    return 0


def _start_cluster(arguments: Arguments) -> Cluster:
    """Starts the cluster, applies the manifests and writes the kubeconfig.

    Raises OptionError, OSError, ManifestError, ApiError and UnknownResource.
    """
    from fakekube.apiserver.options import ineffective_flags
    from fakekube.base.golang.net import is_loopback, reachability_warning
    from fakekube.cli.envtest.storage import serving_files
    from fakekube.cli.logs import log_to_stderr
    from fakekube.cluster import Cluster

    certificate, key = serving_files(arguments.data / "server" / "tls", arguments.names)
    ignored = ineffective_flags(arguments.flags, tls=True, is_local=is_loopback(arguments.host))  # as k3s ignores them
    own = {name: value for name, value in arguments.flags.items() if name not in ignored}
    flags = {"tls_cert_file": certificate, "tls_private_key_file": key, **own}
    if warning := reachability_warning(arguments.host):
        print(f"fakekube server: {warning}", file=sys.stderr)
    controllers = None if arguments.scheduler else ["*", "-kube-scheduler"]
    log_to_stderr()
    cluster = Cluster(
        host=arguments.host,
        port=arguments.port,
        tls=True,
        controllers=controllers,
        feature_gates=arguments.feature_gates,
        **flags,
    ).start()
    try:
        manifests = arguments.data / "server" / "manifests"
        if manifests.is_dir():
            cluster.load(manifests)
        cluster.write_kubeconfig(arguments.kubeconfig)
    except BaseException:
        cluster.stop()
        raise
    return cluster
