"""The command line: `fakekube serve`, `run`, `check`, `export`, `record`, `server` and `envtest`.

Exit codes: 0 if a signal ended a served cluster, the exit code of the command for `run`, 2 for errors before a cluster is ready
(an invalid flag, a port in use, an invalid manifest), which are reported in one line. The exit codes of `check` are in its
module.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from fakekube.apimachinery.data import DEFAULT
from fakekube.base.golang.net import is_loopback, reachability_warning
from fakekube.cli.arguments import Options, UsageError, help_text, parse
from fakekube.cli.memory import PERIOD, Housekeeping, collect_seldom, use_one_arena
from fakekube.cli.process import discard_output, end_process, handle_signals, raise_file_limit, setup_signal_handler
from fakekube.cli.show import open_in_browser, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakekube.cluster import Cluster

__all__ = ["main"]

#: The flag of kube-apiserver for the addresses of Services, as `Options.flags` names it.
_SERVICE_RANGE: Final = "service_cluster_ip_range"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    try:
        options = parse(sys.argv[1:] if arguments is None else list(arguments))
        code = _COMMANDS[options.command](options)
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads the output any more, as after `head`
        discard_output()
        return 128 + signal.SIGPIPE
    except TimeoutError as problem:  # controllers that do not come to rest
        print(f"fakekube: {problem}", file=sys.stderr)
        return 2
    except OSError as error:  # the output cannot be written; of files, commands tell the name
        discard_output()
        print(f"fakekube: {error.filename or 'standard output'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except UsageError as problem:
        print(f"fakekube: {problem}", file=sys.stderr)
        return 2
    except RecursionError:
        print("fakekube: a file is nested too deeply", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # in a command without a handler of its own
        return 128 + signal.SIGINT
    return code


@contextmanager
def _cluster(options: Options) -> Iterator[Cluster]:
    """Starts a cluster, loads manifests and writes kubeconfigs; stops it at the end of the block. Raises UsageError."""
    if options.tls:  # before the modules of a cluster are imported, which takes as long
        from fakekube.net.certificates import make_in_child

        make_in_child(options.host)
    from fakekube.apiserver.auth.options import OptionError
    from fakekube.cli.logs import log_to_stderr, with_access_log
    from fakekube.cluster import Cluster
    from fakekube.cluster.testing.manifests import ManifestError
    from fakekube.controllers.client import ApiError, UnknownResource
    from fakekube.net import busy_poll
    from fakekube.nodes.stages import StageError
    from fakekube.powers.state import StateError

    log_to_stderr()
    flags = options.flags
    if options.kube_system:
        from fakekube.nodes.kube_system import SERVICE_SUBNET

        flags = {_SERVICE_RANGE: SERVICE_SUBNET, **flags}
    try:
        cluster = Cluster(
            version=options.version or _loaded_version(options) or DEFAULT,
            profile=options.profile,
            host=options.host,
            port=options.port,
            tls=options.tls,
            feature_gates=options.feature_gates,
            controllers=options.controllers,
            control=options.control,
            page=options.page,
            compaction_interval=options.compaction_interval,
            nodes=options.nodes,
            stages=options.stages,
            seed=options.cluster_seed,
            keep_requests=options.keep_requests,
            **flags,
        )
    except (OptionError, ManifestError, StageError) as problem:
        raise UsageError(str(problem)) from None
    try:
        if options.command in ("serve", "run"):
            cluster.pace = options.pace
            cluster.network_policies = options.network_policies
            _load_pods(cluster, options)
        if options.verbose:
            cluster.wrap_served = with_access_log
        if options.missing_images:
            cluster.images.missing.extend(options.missing_images)
        _lead_services(cluster, options)
        try:
            cluster.start()
        except OptionError as problem:
            raise UsageError(str(problem)) from None
        except OSError as error:
            raise UsageError(f"cannot listen on {options.host}:{options.port}: {error.strerror}") from None
        _warn_of_other_hosts(options)
        collect_seldom()
        busy_poll.allow()
        if options.kube_system:
            _create_kube_system(cluster, flags[_SERVICE_RANGE].split(",")[0])
        if _keeps_changes(options):
            cluster.keep_changes()
        for source in options.load:
            try:
                cluster.load(source)
                cluster.keep_initial()
            except (ManifestError, StateError) as problem:
                raise UsageError(str(problem)) from None
            except (ApiError, UnknownResource) as problem:
                raise UsageError(f"{source}: {problem}") from None
        if options.replay is not None:
            _replay(cluster, options)
        if options.kubeconfig is not None:
            try:
                cluster.write_kubeconfig(options.kubeconfig)
            except OSError as error:
                raise UsageError(f"{options.kubeconfig}: {error.strerror}") from None
        if options.clusters:
            _open_pool(cluster, options)
        for name, groups in options.users:
            cluster.write_kubeconfig(_kubeconfig_of(options, cluster, name), user=name, groups=groups)
        yield cluster
    finally:
        cluster.stop()


def _keeps_changes(options: Options) -> bool:
    """Reports whether changes are kept after the history is compacted. Trace files show them."""
    if options.trace is not None:
        return True
    return options.command == "serve" if options.keep_changes is None else options.keep_changes


def _loaded_version(options: Options) -> str:
    """Returns the minor version of a saved state or a trace file that is loaded; "" if none is."""
    from fakekube.apimachinery.data import RELEASES
    from fakekube.cli.show import version_of

    for source in options.load:
        if source.is_file():
            try:
                version = version_of(source.read_bytes())
            except OSError:
                continue  # loading it reports the error
            if version in RELEASES:
                return version
    return ""


def _warn_of_other_hosts(options: Options) -> None:
    """Prints a warning if other hosts can reach the server."""
    warning = reachability_warning(options.host)
    if warning and options.flags.get("insecure_anonymous_admin"):
        warning = reachability_warning(options.host, "are administrators without any credentials (--insecure-anonymous-admin)")
    if warning:
        print(f"fakekube: {warning}", file=sys.stderr, flush=True)


def _create_kube_system(cluster: Cluster, subnet: str) -> None:
    """Creates the system components of a kind cluster with that range for Services. Raises UsageError without nodes."""
    from fakekube.apiserver.http.nonresource_paths import git_version
    from fakekube.controllers.manager import PREPARATION_TIMEOUT
    from fakekube.nodes.kube_system import kube_system
    from fakekube.nodes.metrics_api import NAME

    node = next((one["metadata"]["name"] for one in cluster.nodes), None)
    if node is None:
        raise UsageError("--kube-system needs a node")
    metrics = any(one["metadata"]["name"] == NAME for one in cluster.list("apiservices"))
    classes = [one["metadata"]["name"] for one in cluster.list("storageclasses")]
    for name in classes:
        cluster.delete("storageclasses", name)  # the default class, whose name that of kind has
    for one in kube_system(node, git_version(cluster.version), metrics=metrics, storage=bool(classes), subnet=subnet):
        cluster.create(one)
    cluster.settle(PREPARATION_TIMEOUT)
    cluster.keep_initial()


def _open_pool(cluster: Cluster, options: Options) -> None:
    """Gives the cluster a pool. Raises UsageError."""
    from fakekube.cluster.pool import MAX_CLUSTERS, ClusterPool

    if not cluster.has_control:
        raise UsageError("--clusters needs the control API (--control)")
    ClusterPool(cluster, MAX_CLUSTERS if options.max_clusters is None else options.max_clusters, options.cluster_idle)


def _lead_services(cluster: Cluster, options: Options) -> None:
    """Forwards Services, and writes the certificates of the servers behind them. Raises UsageError."""
    for service, host, port in options.forwards:
        cluster.services.forward(service, port, host=host)
    for service, folder in options.certificates:
        try:
            cluster.services.certificate(service).write(folder)
        except OSError as error:
            raise UsageError(f"{error.filename or folder}: {error.strerror}") from None


def _load_pods(cluster: Cluster, options: Options) -> None:
    """Loads the files of images and of rules for pods. Raises UsageError."""
    if options.images:
        from fakekube.cluster.control.pods import set_image

        for path in options.images:
            _load_bodies(path, lambda body: set_image(cluster, body))
    if options.pod_rules:
        from fakekube.cluster.control.pods import create_rule

        for path in options.pod_rules:
            # In YAML 1.1, the key `on` is a boolean.
            _load_bodies(path, lambda body: create_rule(cluster, {"on" if key == "true" else key: body[key] for key in body}))


def _load_bodies(path: Path, create: Callable[[dict[str, Any]], object]) -> None:
    """Creates what a file describes: an object, or a list of objects. Raises UsageError."""
    from fakekube.apimachinery.codecs import yaml
    from fakekube.cluster.control.members import BadMembers

    try:
        found, _ = yaml.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError as problem:
        raise UsageError(f"{path}: {problem}") from None
    for number, body in enumerate(found if isinstance(found, list) else [found], 1):
        if not isinstance(body, dict):
            raise UsageError(f"{path}: item {number} is not an object")
        try:
            create(body)
        except BadMembers as problem:
            raise UsageError(f"{path}: item {number}: {problem}") from None
        except KeyError as missing:
            raise UsageError(f"{path}: item {number}: member {missing} is required") from None


def _replay(cluster: Cluster, options: Options) -> None:
    """Starts to play a recording back. Raises UsageError."""
    from fakekube.powers.recording import RecordingError

    assert options.replay is not None
    try:
        cluster.replay(options.replay, speed=options.speed)
    except OSError as error:
        raise UsageError(f"{options.replay}: {error.strerror}") from None
    except RecordingError as problem:
        raise UsageError(f"{options.replay}: {problem}") from None


def _kubeconfig_of(options: Options, cluster: Cluster, user: str) -> Path:
    """Returns the path for the kubeconfig of a user, in the folder of the administrator's kubeconfig."""
    name = re.sub("[^A-Za-z0-9.-]", "-", user)
    return (options.kubeconfig or cluster.kubeconfig).parent / f"{name}.kubeconfig"


# --- Serve ------------------------------------------------------------------------------------------------------------


def _serve(options: Options) -> NoReturn:
    """Serves until a signal arrives, and ends the process."""
    stop = setup_signal_handler(limited=True)
    raise_file_limit()
    use_one_arena()
    with _cluster(options) as cluster:
        path = options.kubeconfig or cluster.kubeconfig
        users = "".join(
            f"    export KUBECONFIG={_kubeconfig_of(options, cluster, name)}   # {name}\n" for name, _ in options.users
        )
        token = "" if is_loopback(options.host) else f"\nThe administrator's token is {cluster.token}\n"
        pool = f"\nClusters of the pool: POST {cluster.url}/fakekube/v1/clusters\n" if options.clusters else ""
        address = _page_address(options, cluster)
        page = f"\nIts page is at {address}\n" if address else ""
        print(
            _GREETING.format(
                version=cluster.version,
                url=cluster.url,
                profile=options.profile,
                path=path,
                users=users,
                token=token,
                page=page + pool,
            ),
            flush=True,
        )
        if options.open and address:
            open_in_browser(address)
        with _ready_file(options.ready_file, cluster.url):
            if options.ready_message:
                print(options.ready_message, flush=True)
            housekeeping = Housekeeping(cluster.pack_past)
            while not stop.wait(PERIOD):
                housekeeping.return_memory_if_idle()
    end_process()


def _page_address(options: Options, cluster: Cluster) -> str:
    """Returns the address of the page; "" if there is none. Raises UsageError."""
    if options.page_port is None:
        return cluster.page_url if cluster.has_page else ""
    if not options.page or options.control is False:
        raise UsageError(f"--page-port has no effect with {'--control=false' if options.page else '--page=false'}")
    try:
        return cluster.serve_page(options.page_port)
    except OSError as problem:
        raise UsageError(f"--page-port={options.page_port}: {problem.strerror}") from None


@contextmanager
def _ready_file(path: Path | None, url: str) -> Iterator[None]:
    """Writes the URL to a file as a whole, and removes the file at the end. Raises UsageError.

    What is not a regular file (`/dev/stdout`, a named pipe) is written as it is, and stays.
    """
    if path is None:
        yield
        return
    is_special = path.exists() and not path.is_file()
    temporary = path if is_special else path.with_name(f".{path.name}-{os.getpid()}")
    try:
        temporary.write_text(f"{url}\n", encoding="utf-8")
        if not is_special:
            os.replace(temporary, path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    try:
        yield
    finally:
        if not is_special:
            path.unlink(missing_ok=True)


def _server(options: Options) -> int:
    """Serves a cluster with the arguments of `k3s server`."""
    from fakekube.cli.envtest.k3s import main as serve_as_k3s

    code = serve_as_k3s(options.rest)
    if code == 0:
        end_process()
    return code


_GREETING = """\
fakekube serves a Kubernetes {version} API at {url} (profile {profile})

    export KUBECONFIG={path}
{users}    kubectl get namespaces
{page}{token}
Ctrl-C ends it; nothing is kept."""


# --- Run --------------------------------------------------------------------------------------------------------------


def _run(options: Options) -> int:
    """Runs a command with a fresh cluster and returns its exit code."""
    received: list[int] = []
    started: list[subprocess.Popen[bytes]] = []

    def handle(number: int) -> None:
        received.append(number)
        for process in started:
            process.send_signal(number)

    handle_signals(handle)
    with _cluster(options) as cluster:
        if received:
            return 128 + received[0]
        path = options.kubeconfig or cluster.kubeconfig
        try:
            pool = {"FAKEKUBE_POOL": cluster.url} if options.clusters else {}
            process = subprocess.Popen(options.rest, env={**os.environ, "KUBECONFIG": str(Path(path).absolute()), **pool})
        except OSError as error:
            raise UsageError(f"{options.rest[0]}: {error.strerror}") from None
        started.append(process)
        for number in received:  # arrived while the process was started
            process.send_signal(number)
        code = process.wait()
        if options.trace is not None:
            _write_trace(cluster, options, code)
    return 128 - code if code < 0 else code


def _write_trace(cluster: Cluster, options: Options, code: int) -> None:
    """Writes the trace file of a command that has ended. Raises UsageError."""
    assert options.trace is not None
    message = f"{shlex.join(options.rest)} has ended with the exit code {code}"
    cluster.test = {"id": shlex.join(options.rest), "outcome": "failed" if code else "passed", "message": message}
    cluster.mark_phase(message)
    try:
        path = cluster.trace(options.trace)
    except OSError as problem:
        raise UsageError(f"{options.trace}: {problem.strerror}") from None
    print(f"fakekube: the trace of the command is {path}", file=sys.stderr)


def _help(_options: Options) -> int:
    print(help_text(), end="")
    return 0


# --- Export -----------------------------------------------------------------------------------------------------------


def _export(options: Options) -> int:
    """Prints the objects of a cluster, without the data of Secrets by default."""
    from fakekube.cli.record import kubeconfig_to_read
    from fakekube.controllers.client import ApiError, UnknownResource
    from fakekube.controllers.client.remote import KubeconfigError, RemoteClient
    from fakekube.powers.export import as_list, as_yaml, export

    try:
        client = RemoteClient.of_kubeconfig(kubeconfig_to_read(options), options.context)
        if options.normalised:
            from fakekube.powers.export import normalise

            objects = normalise(client, namespace=options.namespace, kinds=options.kinds)
        else:
            objects = export(client, namespace=options.namespace, kinds=options.kinds, redact=not options.secrets)
    except (KubeconfigError, ApiError, UnknownResource) as problem:
        raise UsageError(str(problem)) from None
    sys.stdout.buffer.write(as_list(objects) if options.format == "json" else as_yaml(objects))
    sys.stdout.flush()
    return 0


# --- envtest ----------------------------------------------------------------------------------------------------------


def _envtest(options: Options) -> int:
    """Writes the replacements for envtest's binaries, and prints the shell command that sets KUBEBUILDER_ASSETS."""
    from fakekube.apiserver.http.nonresource_paths import git_version
    from fakekube.cli.envtest.folder import default_folder, installed_folder, named_release, write_folder
    from fakekube.cli.values import read_release

    named = named_release(options.dir) if options.dir is not None else None
    releases = options.releases or [read_release(named) if named else (git_version(DEFAULT).removeprefix("v"), DEFAULT)]
    if len(releases) > 1 and not options.install:
        raise UsageError("several --kubernetes-version need --install: a folder has one")
    for release, minor in releases:
        folder = (installed_folder(release) if options.install else options.dir or default_folder()).absolute()
        write = partial(write_folder, profile=options.profile, controllers=options.controllers, control=options.powers)
        try:
            write(folder, version=f"v{release}", minor=minor)
        except OSError as error:
            raise UsageError(f"{error.filename or folder}: {error.strerror}") from None
        if not release.startswith(f"{minor}."):
            print(f"fakekube: {release} is not emulated: its replacement is a {minor}", file=sys.stderr)
    print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder))}")
    return 0


# --- Check and record -------------------------------------------------------------------------------------------------


def _check(options: Options) -> int:
    from fakekube.cli.check import check

    collect_seldom()
    return check(options)


def _record(options: Options) -> int:
    from fakekube.cli.record import record

    return record(options)


def _validate(options: Options) -> int:
    from fakekube.cli.validate import validate

    return validate(options)


def _scenario(options: Options) -> int:
    from fakekube.cli.scenario import run_scenario

    return run_scenario(options)


_COMMANDS = {
    "check": _check,
    "envtest": _envtest,
    "export": _export,
    "help": _help,
    "record": _record,
    "run": _run,
    "serve": _serve,
    "scenario": _scenario,
    "server": _server,
    "show": show,
    "validate": _validate,
}
