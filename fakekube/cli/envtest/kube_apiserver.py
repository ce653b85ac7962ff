"""The replacement for kube-apiserver: serves a cluster with the command line of the real one, until SIGTERM or SIGINT.

/healthz, /readyz and /livez succeed when the port is open. A signal ends the process within a second, also with open streams. It
starts no processes and writes no files except the certificate in --cert-dir and the state in etcd's data folder (`storage`), so
that nothing else remains after SIGKILL.

Invariant: the exit code is 0 after a signal and 1 after an error, which is one line on standard error.

Specified by: k8s.io/kubernetes/cmd/kube-apiserver/app/server.go.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fakekube.base.golang.net import is_loopback, reachability_warning
from fakekube.cli.process import StopChannel, setup_signal_handler

if TYPE_CHECKING:
    from fakekube.cli.envtest.command_line import CommandLine
    from fakekube.cluster import Cluster


#: Profile of this module → profile of the cluster with the admission plugins of the real server, which flags can disable.
_WITH_ALL_PLUGINS = {"apiserver": "envtest"}

ORPHAN_SECONDS = 300.0
"""The process ends after this time without connections if its parent has ended."""
_LOOK_SECONDS = 10.0

_STOP_SECONDS = 0.8
"""The process ends at most this time after a signal, even if stopping the cluster takes longer."""


def main(
    arguments: Sequence[str],
    *,
    profile: str = "apiserver",
    controllers: Sequence[str] | None = None,
    control: bool = False,
    minor: str = "",
) -> int:
    """Runs the API server until a signal arrives, and returns the exit code.

    Args:
        arguments: the command line, without the program.
        profile: the profile of the cluster, unless the command line or the environment chooses another one.
        controllers: the argument `controllers` of `Cluster`; None for the controllers of the profile.
        control: whether to serve the control API, /fakekube/v1.
        minor: the minor of Kubernetes to emulate; "" for the default.
    """
    from fakekube.apimachinery.data import DEFAULT
    from fakekube.apiserver.auth.options import OptionError
    from fakekube.cli.envtest.command_line import FlagError, read
    from fakekube.cli.envtest.storage import data_folder, save
    from fakekube.net import busy_poll
    from fakekube.powers.state import StateError

    try:
        line = read(arguments)
        if line.wants == "version":
            return _print_version(minor or DEFAULT)
        if line.wants == "help":
            return _print_help()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # before it serves, a signal ends the process at once
        chosen = line.profile or profile
        cluster = _start_cluster(line, chosen, controllers if chosen == profile else None, control, minor or DEFAULT)
        busy_poll.allow()
        stop = setup_signal_handler()
    except (FlagError, OptionError, StateError, OSError) as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 1
    if warning := reachability_warning(line.host):
        print(warning, file=sys.stderr)
    print(f"Serving securely on {line.host}:{line.port}", file=sys.stderr, flush=True)
    gc.freeze()  # the launcher disabled collections: a start creates little garbage, and collections make it a tenth slower
    gc.enable()
    _wait(stop, cluster)
    threading.Timer(_STOP_SECONDS, os._exit, (0,)).start()
    cluster.stop()
    folder = data_folder(line.etcd)
    if folder is not None:
        save(cluster, folder)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # does not wait for threads that still serve requests


def _wait(stop: StopChannel, cluster: Cluster) -> None:
    """Waits for a signal, or for `ORPHAN_SECONDS` without a parent process and without connections.

    A suite that is killed does not stop its servers; they would run until the machine is restarted.
    """
    parent, last_use = os.getppid(), time.monotonic()
    while not stop.wait(_LOOK_SECONDS):
        if os.getppid() == parent or cluster.is_connected:
            last_use = time.monotonic()
        elif time.monotonic() - last_use >= ORPHAN_SECONDS:
            return


def _start_cluster(line: CommandLine, profile: str, controllers: Sequence[str] | None, control: bool, minor: str) -> Cluster:
    """Starts the cluster, with the state that the previous one with the same etcd has saved.

    Raises OptionError, also if the port is taken, StateError for a damaged state, and OSError.
    """
    from fakekube.apiserver.auth.options import OptionError
    from fakekube.apiserver.options import ineffective_flags
    from fakekube.cli.envtest.command_line import PROFILE_FLAG, PROFILE_VARIABLE, FlagError
    from fakekube.cli.envtest.storage import data_folder, restore, serving_files
    from fakekube.cli.logs import log_to_stderr
    from fakekube.cluster import Cluster
    from fakekube.controllers import PROFILES

    if profile not in PROFILES:
        raise FlagError(
            f"the profile of --{PROFILE_FLAG}, or {PROFILE_VARIABLE}, must be one of {', '.join(PROFILES)}: {profile}"
        )
    ignored = ineffective_flags(line.flags, tls=True, is_local=is_loopback(line.host))  # as the real server ignores them
    flags = {name: value for name, value in line.flags.items() if name not in ignored}
    if line.certificates is not None:
        flags["tls_cert_file"], flags["tls_private_key_file"] = map(str, serving_files(line.certificates, [line.host]))
    log_to_stderr()
    cluster = Cluster(
        version=minor,
        host=line.host,
        port=line.port,
        tls=True,
        profile=_WITH_ALL_PLUGINS.get(profile, profile),
        controllers=PROFILES[profile] if controllers is None else controllers,
        control=control,
        feature_gates=line.feature_gates,
        keep_requests=10_000 if control else 0,
        **flags,
    )
    cluster.pace = line.pace
    folder = data_folder(line.etcd)
    if folder is not None:
        restore(cluster, folder)
    try:
        return cluster.start()
    except OSError as error:
        reason = f"listen tcp {line.host}:{line.port}: bind: {os.strerror(error.errno or 0).lower()}"
        raise OptionError(f"failed to create listener: failed to listen on {line.host}:{line.port}: {reason}") from None


def _print_version(minor: str) -> int:
    from fakekube.apiserver.http.nonresource_paths import git_version

    print(f"Kubernetes {git_version(minor)}")
    return 0


def _print_help() -> int:
    from fakekube.apiserver.options import flags

    print("Usage:\n  kube-apiserver [flags]\n\nThis is the replacement of fakekube. Flags with an effect:\n")
    for flag in sorted(flag.name.replace("_", "-") for flag in flags()):
        print(f"      --{flag}")
    return 0
