"""Parses the command line into `Options`.

Invariant: every error is a `UsageError` with a text of one line; options that are not given have the defaults of `Options`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from fakekube.apimachinery.data import DEFAULT, RELEASES
from fakekube.apiserver.options import flags
from fakekube.cli.values import (
    read_boolean,
    read_certificate,
    read_controllers,
    read_count,
    read_duration,
    read_forward,
    read_gates,
    read_minor,
    read_node_count,
    read_output,
    read_output_folder,
    read_pause,
    read_port,
    read_release,
    read_seconds,
    read_speed,
    read_user,
)

#: The values of --profile, in the order of how many controllers they run.
PROFILES = ("apiserver", "envtest", "cluster")


class UsageError(Exception):
    """The command line, or a file it refers to, is invalid."""


@dataclass(slots=True)
class Options:
    """A parsed command line: its command, and the options of all commands, which have their defaults for others."""

    command: str = "help"
    rest: list[str] = field(default_factory=list)
    """The command of `run` and `check`, and the arguments of `server`."""
    version: str = ""
    """The minor of --kubernetes-version; "" for the default."""

    # serve and run: the cluster
    host: str = "127.0.0.1"
    port: int = 0
    profile: str = "cluster"
    controllers: list[str] | None = None
    """The items of --controllers: *, name, -name."""
    tls: bool = False
    kubeconfig: Path | None = None
    users: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Names and groups of the users for whom kubeconfigs are written."""
    feature_gates: dict[str, bool] = field(default_factory=dict)
    flags: dict[str, Any] = field(default_factory=dict)
    """Flags of kube-apiserver, with underscores; see `fakekube.apiserver.options`."""
    compaction_interval: float | None = None
    """Seconds."""
    nodes: int | None = None
    """The number of initial nodes; None: 1 if kubelets run, else 0."""
    stages: list[Path] | None = None
    pace: float = 0.05
    """Seconds that kubelets take."""
    network_policies: bool = False
    pod_rules: list[Path] = field(default_factory=list)
    images: list[Path] = field(default_factory=list)
    missing_images: list[str] = field(default_factory=list)
    """Patterns of names of images that do not exist."""
    kube_system: bool = False
    cluster_seed: int | None = None
    """What uids, names and addresses come from; None for chance."""
    load: list[Path] = field(default_factory=list)
    replay: Path | None = None
    speed: float = 1.0
    """Recorded seconds per second."""
    forwards: list[tuple[str, str, int]] = field(default_factory=list)
    """Services (`namespace/name`) that are forwarded, with host and port."""
    certificates: list[tuple[str, Path]] = field(default_factory=list)
    """Services (`namespace/name`) that get a serving certificate, and the folders for it."""
    control: bool | None = None
    """Whether the control API is served; None: on a loopback address."""
    page: bool = True
    keep_requests: int = 10_000
    keep_changes: bool | None = None
    """Whether changes are kept after the history is compacted; by default `serve` keeps them."""
    verbose: bool = False

    # serve and run: the pool of clusters
    clusters: bool = False
    """Whether the cluster has a pool of others."""
    max_clusters: int | None = None
    cluster_idle: float | None = None
    """Seconds."""

    # serve
    ready_file: Path | None = None
    ready_message: str = ""
    page_port: int | None = None
    """The port of --page-port; 0 is a free one."""
    open: bool = False

    # run and show
    trace: Path | None = None
    """Where `run` writes a trace file."""
    file: Path | None = None
    """The file that `show` opens."""

    # check
    sample: list[Path] | None = None
    rules: str | None = None
    """The ids of rules for `check`, separated by commas."""
    legality: str = "A,C"
    again: str | None = None
    idle: float | None = None
    """Seconds."""
    seconds: float | None = None
    """How long `check` provokes repeated failures."""
    timeout: float | None = None
    """Seconds."""
    expect: list[str] = field(default_factory=list)
    """RESOURCE/NAME[:PATH[=VALUE]]: what shows the client's reaction."""
    seed: int = 0
    """The seed of random choices."""
    accept: str | None = None
    excluded: str | None = None
    require: str | None = None
    min_exercised: int | None = None
    strict: bool = False
    allow_timeout: bool = False
    report: Path | None = None
    junit: Path | None = None
    sarif: Path | None = None
    summary: Path | None = None
    keep: Path | None = None

    # validate
    paths: list[Path] = field(default_factory=list)
    """What `validate` reads."""
    output_format: str = "text"
    ignore_missing_schemas: bool = False

    # scenario
    scenarios: list[str] = field(default_factory=list)
    """Files and names, or `list`, or `test` with files and names."""
    hints: bool = False
    """Whether all hints are shown at once."""

    # export and record
    context: str = ""
    namespace: str | None = None
    kinds: list[str] = field(default_factory=list)
    """Resources as kubectl names them; none for all."""
    secrets: bool = False
    format: str = "yaml"
    """yaml or json."""
    normalised: bool = False
    output: Path | None = None
    """The file to write, of `show` and `record`; None for a temporary one, or the standard output."""
    duration: float | None = None
    """The duration of a recording in seconds; None for no limit."""

    # envtest
    dir: Path | None = None
    install: bool = False
    """Whether envtest writes into the store of setup-envtest."""
    powers: bool = False
    """Whether the control API is served to administrators."""
    releases: list[tuple[str, str]] = field(default_factory=list)
    """The releases of --kubernetes-version of `envtest`, with the minors that are emulated for them."""


class _Parser(argparse.ArgumentParser):
    """Raises UsageError instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse(arguments: Sequence[str]) -> Options:
    """Parses a command line. Raises UsageError; exits the process for --help and --version."""
    if arguments[:1] == ["server"] and not {"-h", "--help"} & set(arguments):  # its flags are those of k3s
        return Options(command="server", rest=list(arguments[1:]))
    arguments, rest = _split(arguments)
    try:
        parsed = _make_parser().parse_args(arguments)
    except UsageError as problem:
        if arguments[:1] in (["run"], ["check"]) and not rest:
            raise UsageError(f"{problem} (a command is required after --)") from None
        raise
    if parsed.command in ("run", "check") and not rest:
        raise UsageError(f"{parsed.command}: a command is required after --")
    if parsed.command == "serve" and rest:
        raise UsageError("serve does not run a command; did you mean run?")
    options = {name: value for name, value in vars(parsed).items() if value is not None}
    if "speed" in options and "replay" not in options:
        raise UsageError("--speed has no effect without --replay")
    if "clusters" not in options and {"max_clusters", "cluster_idle"} & set(options):
        raise UsageError("--max-clusters and --cluster-idle have no effect without --clusters")
    given = {flag.name: options.pop(flag.name) for flag in flags() if flag.name in options}
    return Options(**options, flags=given, rest=list(rest))


def help_text() -> str:
    """Returns the text that `fakekube` prints without arguments."""
    return _make_parser().format_help()


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Splits the arguments at the first `--`."""
    if "--" not in arguments:
        return arguments, ()
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def _make_parser() -> argparse.ArgumentParser:
    """Returns the parser with all commands, in the order in which the help lists them."""
    parser = _Parser(prog="fakekube", description="An in-memory Kubernetes API server for tests.")
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", parser_class=_Parser)
    serve = commands.add_parser("serve", help="serve a cluster until Ctrl-C")
    run = commands.add_parser(
        "run", help="run a command against a fresh cluster", usage="fakekube run [options] -- COMMAND [ARGUMENT ...]"
    )
    _add_check(
        commands.add_parser(
            "check",
            help="check whether a client handles what a Kubernetes API server may do",
            usage="fakekube check [options] -- COMMAND [ARGUMENT ...]",
        )
    )
    _add_validate(commands.add_parser("validate", help="apply manifests with a dry run to a fresh cluster"))
    _add_scenario(
        commands.add_parser(
            "scenario",
            help="serve a cluster with tasks to practise on",
            usage="fakekube scenario FILE|NAME | list | test [FILE|NAME ...]",
        )
    )
    _add_export(commands.add_parser("export", help="print the objects of a cluster, for --load"))
    _add_record(commands.add_parser("record", help="record the changes in a cluster, for --replay"))
    _add_show(commands.add_parser("show", help="open a trace file, a saved state or a recording in a browser"))
    _add_server(commands.add_parser("server", help="serve a cluster with the arguments of `k3s server`, for container images"))
    _add_envtest(commands.add_parser("envtest", help="write replacements for kube-apiserver, etcd and kubectl"))
    _add_serve(serve)
    run.add_argument("--trace", type=read_output, metavar="FILE", help="write a trace file when the command has ended")
    for command in (serve, run):
        _add_cluster(command)
    return parser


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument(
        "--ready-file",
        type=Path,
        metavar="PATH",
        help="write the URL to this file when the cluster is ready, and delete it at the end",
    )
    serve.add_argument("--ready-message", metavar="TEXT", help="print this line when the cluster is ready")
    serve.add_argument(
        "--page-port",
        type=read_port,
        metavar="PORT",
        help="also serve the page at this port of 127.0.0.1 over plain HTTP, with a token; 0 is a free one",
    )
    serve.add_argument("--open", action="store_true", default=None, help="open the page of the cluster in a browser")


def _add_server(server: argparse.ArgumentParser) -> None:
    server.usage = "fakekube server [argument of k3s server ...]"
    server.description = "It listens on 0.0.0.0:6443 and writes /etc/rancher/k3s/k3s.yaml, unless arguments say otherwise."
    server.epilog = "Arguments of k3s that concern real nodes are ignored."


def _add_show(show: argparse.ArgumentParser) -> None:
    show.add_argument("file", type=Path, metavar="FILE")
    show.add_argument(
        "--output", "-o", type=Path, metavar="HTML", help="where to write the trace of a state or a recording (a temporary file)"
    )


def _add_cluster(command: argparse.ArgumentParser) -> None:
    """Adds the options of the cluster that a command serves."""
    _add_pods(command)
    command.add_argument(
        "--seed",
        type=int,
        dest="cluster_seed",
        metavar="N",
        help="uids, generated names, addresses and ports come from it, and the clock starts at a fixed time",
    )
    command.add_argument(
        "--clusters", action="store_true", default=None, help="serve a pool of clusters, POST /fakekube/v1/clusters; see docs"
    )
    command.add_argument("--max-clusters", type=read_count, metavar="N", help="the maximum number of clusters in the pool (256)")
    command.add_argument(
        "--cluster-idle",
        type=read_duration,
        metavar="5m",
        help="end clusters of the pool that no client uses for so long (never)",
    )
    command.add_argument("--host", help="the address to listen on (127.0.0.1)")
    command.add_argument("--port", type=read_port, help="the port to listen on; 0 is a free one (0)")
    command.add_argument(
        "--profile",
        choices=PROFILES,
        help="cluster runs all controllers, envtest those for namespaces and garbage collection, apiserver none (cluster)",
    )
    command.add_argument(
        "--tls", action="store_true", default=None, help="serve HTTPS with a certificate of the cluster's own CA"
    )
    command.add_argument("--kubeconfig", type=Path, metavar="PATH", help="where to write the kubeconfig")
    command.add_argument(
        "--compaction-interval", type=read_duration, metavar="5s", help="the interval between compactions of the history (5m)"
    )
    _add_version(command)
    command.add_argument(
        "--feature-gates", type=read_gates, metavar="A=true,…", help="feature gates that differ from their defaults"
    )
    command.add_argument(
        "--controllers",
        type=read_controllers,
        metavar="*,-NAME,…",
        help="which controllers run: * for all, NAME, or -NAME to leave one out (those of the profile)",
    )
    command.add_argument(
        "--stages", type=Path, action="append", metavar="FILE_OR_DIR", help="load Stage files of kwok; may be repeated"
    )
    command.add_argument(
        "--missing-image",
        dest="missing_images",
        action="append",
        default=[],
        metavar="PATTERN",
        help="images with this name cannot be pulled; * and ? match any characters; may be repeated",
    )
    command.add_argument(
        "--forward",
        type=read_forward,
        dest="forwards",
        action="append",
        default=[],
        metavar="NAMESPACE/SERVICE=[HOST:]PORT",
        help="call webhooks and aggregated APIs of this Service at a port of this machine; may be repeated",
    )
    command.add_argument(
        "--certificate",
        type=read_certificate,
        dest="certificates",
        action="append",
        default=[],
        metavar="NAMESPACE/SERVICE=DIR",
        help="write tls.crt and tls.key, a certificate of the cluster's CA for this Service; may be repeated",
    )
    command.add_argument(
        "--nodes", type=read_node_count, metavar="N", help="the number of initial nodes (1 if kubelets run, else 0)"
    )
    _add_boolean(command, "--control", "serve the control API, /fakekube/v1 (true on a loopback address)")
    _add_boolean(command, "--page", "serve the page, /fakekube/ (true)")
    command.add_argument(
        "--keep-requests",
        type=read_count,
        metavar="N",
        help="how many of the latest requests are recorded (10000); 0 records none",
    )
    _add_boolean(
        command, "--keep-changes", "keep changes after the history is compacted, for the page and trace files (true for serve)"
    )
    command.add_argument(
        "--load",
        type=Path,
        action="append",
        metavar="FILE_OR_DIR",
        help="apply manifests, or restore a saved state; may be repeated",
    )
    command.add_argument("--replay", type=Path, metavar="FILE", help="play back a recording of `fakekube record` or kwokctl")
    command.add_argument(
        "--speed", type=read_speed, metavar="N", help="recorded seconds per second (1); inf applies all changes at once"
    )
    command.add_argument(
        "--user",
        type=read_user,
        action="append",
        dest="users",
        metavar="NAME[:GROUP,…]",
        help="write a kubeconfig for this user beside the administrator's; may be repeated",
    )
    _add_server_flags(command)


def _add_validate(validate: argparse.ArgumentParser) -> None:
    validate.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help="a file, a folder with manifests, or - for the input"
    )
    _add_version(validate)
    validate.add_argument(
        "--output",
        dest="output_format",
        choices=("text", "json", "junit"),
        help="lines FILE:LINE: KIND NAMESPACE/NAME: message, JSON, or JUnit's XML (text)",
    )
    validate.add_argument("--strict", action="store_true", default=None, help="warnings count as refusals")
    validate.add_argument(
        "--ignore-missing-schemas", action="store_true", default=None, help="skip kinds without a definition, and say so"
    )


def _add_scenario(scenario: argparse.ArgumentParser) -> None:
    scenario.add_argument("scenarios", nargs="+", metavar="FILE|NAME", help="a file, or a name that `scenario list` prints")
    scenario.add_argument("--port", type=read_port, help="the port to listen on; 0 is a free one (0)")
    scenario.add_argument("--kubeconfig", type=Path, metavar="PATH", help="where to write the kubeconfig")
    scenario.add_argument(
        "--hints", action="store_true", default=None, help="show all hints at once (in a terminal, Enter shows one)"
    )


def _add_boolean(command: argparse._ActionsContainer, name: str, text: str) -> None:
    """Adds an option that may stand alone, for true, or with =true or =false, as the flags of Kubernetes do."""
    command.add_argument(name, type=read_boolean, nargs="?", const=True, metavar="true|false", help=text)


def _add_version(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--kubernetes-version",
        type=read_minor,
        dest="version",
        metavar="1.35",
        help=f"the Kubernetes minor to emulate, one of {', '.join(RELEASES)} ({DEFAULT})",
    )


def _add_export(export: argparse.ArgumentParser) -> None:
    _add_source(export)
    export.add_argument(
        "--normalised", action="store_true", default=None, help="replace what differs by chance by stable names, for golden files"
    )
    export.add_argument("--format", choices=("yaml", "json"), help="a YAML stream or a v1 List (yaml)")


def _add_record(record: argparse.ArgumentParser) -> None:
    _add_source(record)
    record.add_argument("--output", "-o", type=Path, metavar="FILE", help="where to write the recording (standard output)")
    record.add_argument("--duration", type=read_duration, metavar="30s", help="how long to record (until Ctrl-C)")


def _add_source(command: argparse.ArgumentParser) -> None:
    """Adds the arguments of commands that read another cluster."""
    command.add_argument(
        "--kubeconfig", type=Path, metavar="PATH", help="the kubeconfig of the cluster (KUBECONFIG, else ~/.kube/config)"
    )
    command.add_argument("--context", metavar="NAME", help="the context in the kubeconfig (the current one)")
    command.add_argument("--namespace", "-n", metavar="NAME", help="only objects in this namespace (all)")
    command.add_argument(
        "--kinds", type=lambda text: text.split(","), metavar="pods,deployments.apps", help="only these resources (all)"
    )
    command.add_argument("--secrets", action="store_true", default=None, help="include the data of Secrets")


def _add_envtest(envtest: argparse.ArgumentParser) -> None:
    place = envtest.add_mutually_exclusive_group()
    place.add_argument("--dir", type=Path, metavar="DIR", help="the folder to write (one in the user's cache)")
    place.add_argument("--install", action="store_true", default=None, help="write into the store of setup-envtest")
    envtest.add_argument(
        "--profile",
        default="apiserver",
        choices=PROFILES,
        help="the controllers: none, as with the real binaries (apiserver, the default), those for namespaces and garbage "
        "collection (envtest), or all (cluster); a suite chooses another one by FAKEKUBE_PROFILE or --fakekube-profile",
    )
    envtest.add_argument(
        "--controllers", type=read_controllers, metavar="*,-NAME,…", help="which controllers run (those of the profile)"
    )
    envtest.add_argument(
        "--kubernetes-version",
        type=read_release,
        dest="releases",
        action="append",
        default=[],
        metavar="1.35.4",
        help=f"the release whose place they take ({DEFAULT}.{RELEASES[DEFAULT]}); may be repeated with --install",
    )
    envtest.add_argument(
        "--powers", action="store_true", default=None, help="serve the control API, /fakekube/v1, to administrators"
    )


def _add_pods(command: argparse.ArgumentParser) -> None:
    """Adds the options about pods and nodes, and about what is written of requests."""
    command.add_argument(
        "--pace",
        type=read_pause,
        metavar="50ms",
        default=0.05,
        help="the time to start and to remove a pod, and to finalize definitions and namespaces (50ms); 0 for at once",
    )
    command.add_argument("--network-policies", action="store_true", help="NetworkPolicies decide which pods reach each other")
    command.add_argument(
        "--rules",
        dest="pod_rules",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="rules for pods, in YAML or JSON: the bodies of POST /fakekube/v1/pods/rules; may be repeated",
    )
    command.add_argument(
        "--images",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="images of containers, in YAML or JSON: the bodies of POST /fakekube/v1/images; may be repeated",
    )
    command.add_argument(
        "--kube-system",
        action="store_true",
        help="start with the system pods of a kind cluster: control plane, CoreDNS, kube-proxy, kindnet",
    )
    command.add_argument("-v", dest="verbose", action="store_true", help="write a line for each request to stderr")


def _add_check(check: argparse.ArgumentParser) -> None:
    check.add_argument(
        "--sample",
        type=Path,
        action="append",
        metavar="FILE_OR_DIR",
        help="manifests: definitions are created first, copies of the other objects trigger the client; may be repeated "
        "(an object of each resource that the client watches)",
    )
    which = check.add_mutually_exclusive_group()
    which.add_argument(
        "--again", metavar="W8/slices", help="only this provocation, as the report names it; give the --seed of that report, too"
    )
    which.add_argument("--rules", metavar="W1,R2", help="check only these rules, with all their provocations (all rules)")
    which.add_argument("--all", action="store_const", const="A,B,C", dest="legality", help="provocations of all classes")
    which.add_argument(
        "--legality", metavar="A,C", help="provocations of these classes: A kube-apiserver, B contract, C network (A,C)"
    )
    check.add_argument(
        "--idle", type=read_seconds, metavar="SECONDS", help="the time without events after which the client ends a watch"
    )
    check.add_argument(
        "--seconds", type=read_seconds, metavar="N", help="how long to provoke repeated failures (10; 5 in the profile fast)"
    )
    check.add_argument(
        "--timeout", type=read_seconds, metavar="SECONDS", help="the time for the whole check; what is left then is not exercised"
    )
    check.add_argument(
        "--expect",
        action="append",
        metavar="RESOURCE/NAME[:PATH[=VALUE]]",
        help="an object or field that shows the client's reaction, with {name} for the name of a copy; may be repeated",
    )
    check.add_argument("--seed", type=int, metavar="N", help="the seed of random choices (0)")
    _add_version(check)
    check.add_argument(
        "--profile",
        metavar="fast|full",
        help="fast: the provocations that find most, in less than a minute; full: all (fast if CI is set, else full). "
        "apiserver or envtest, after a comma or alone: the controllers of the clusters (cluster, all)",
    )
    demands = check.add_argument_group("demands")
    demands.add_argument(
        "--accept",
        metavar="W7,N2|FILE",
        help="rules and provocations whose failures and warnings are accepted, or a file with a line `W7: reason` for each",
    )
    demands.add_argument("--except", metavar="W7,N2", dest="excluded", help="rules that do not run")
    demands.add_argument("--require", metavar="W1,W5", help="exit with 4 if one of these rules is not exercised")
    demands.add_argument("--min-exercised", type=read_count, metavar="N", help="exit with 4 if fewer rules are exercised")
    demands.add_argument("--strict", action="store_true", default=None, help="warnings are failures")
    demands.add_argument(
        "--allow-timeout", action="store_true", default=None, help="rules that --timeout leaves unexercised are no failure"
    )
    results = check.add_argument_group("results")
    results.add_argument(
        "--report", type=read_output, metavar="FILE", help="write report.json, or a page if the name ends with .html"
    )
    results.add_argument("--junit", type=read_output, metavar="FILE", help="write JUnit XML with a case for each provocation")
    results.add_argument("--sarif", type=read_output, metavar="FILE", help="write SARIF for code scanning")
    results.add_argument(
        "--summary",
        type=read_output,
        metavar="FILE",
        help="append a summary in Markdown (also to $GITHUB_STEP_SUMMARY if it is set)",
    )
    results.add_argument(
        "--keep", type=read_output_folder, metavar="DIR", help="keep the trace and the client's output of each provocation"
    )


def _add_server_flags(command: argparse.ArgumentParser) -> None:
    """Adds the flags of kube-apiserver."""
    group = command.add_argument_group("flags of kube-apiserver")
    for flag in flags():
        name, kind = f"--{flag.name.replace('_', '-')}", str(flag.type)
        if kind.startswith("bool"):
            _add_boolean(group, name, argparse.SUPPRESS)
        elif "Sequence" in kind:
            group.add_argument(name, action=_Values, metavar="A,B", help=argparse.SUPPRESS)
        else:
            group.add_argument(name, type=_READERS.get(kind, str), metavar="VALUE", help=argparse.SUPPRESS)


class _Version(argparse.Action):
    """Prints the version and exits the process."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        import fakekube

        print(f"fakekube {fakekube.__version__} (Kubernetes {DEFAULT})")
        parser.exit()


class _Values(argparse.Action):
    """Collects the values of a flag that may be repeated and contain several values, separated by commas."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        known = getattr(namespace, self.dest) or ()
        setattr(namespace, self.dest, (*known, *(part for part in str(values).split(",") if part)))


#: Type of a flag's field → what parses its value; others are strings.
_READERS: dict[str, Callable[[str], Any]] = {"float": read_duration, "Fraction": float, "int": int}
