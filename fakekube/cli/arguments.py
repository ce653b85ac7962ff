"""The flags of the command line, as values. What is wrong with them is one line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

__all__ = ["Options", "UsageError", "parse"]

PROFILES = ("apiserver", "cluster")

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


class UsageError(Exception):
    """The command line, or what it names, is not usable."""


@dataclass(slots=True)
class Options:
    """A parsed command line."""

    command: str
    host: str = "127.0.0.1"
    port: int = 0
    profile: str = "cluster"
    tls: bool = False
    kubeconfig: Path | None = None
    compaction_interval: float | None = None
    """Seconds."""
    feature_gates: dict[str, bool] = field(default_factory=dict)
    load: list[Path] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    """The command of `run`."""
    controllers: list[str] | None = None
    """Switches: *, name, -name."""
    control: bool | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse(arguments: Sequence[str]) -> Options:
    """Read a command line. Raises UsageError; ends the process for --help and --version."""
    arguments, rest = _split(arguments)
    parsed = _parser().parse_args(arguments)
    if parsed.command == "run" and not rest:
        raise UsageError("run: say what to run after --")
    if parsed.command == "serve" and rest:
        raise UsageError("serve takes no command; did you mean run?")
    options = {name: value for name, value in vars(parsed).items() if value is not None}
    return Options(**options, rest=list(rest))


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before and after the first `--`."""
    if "--" not in arguments:
        return arguments, ()
    place = list(arguments).index("--")
    return arguments[:place], arguments[place + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="fakekube", description="An in-memory Kubernetes API server for tests.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    serve = commands.add_parser("serve", help="serve a cluster until Ctrl-C")
    run = commands.add_parser(
        "run", help="run a command against a fresh cluster", usage="fakekube run [options] -- COMMAND [ARGUMENT ...]"
    )
    for command in (serve, run):
        command.add_argument("--host", help="where to listen (127.0.0.1)")
        command.add_argument("--port", type=_port, help="0 is a free one (0)")
        command.add_argument("--profile", choices=PROFILES, help="apiserver has no controllers, as envtest (cluster)")
        command.add_argument("--tls", action="store_true", default=None, help="serve HTTPS with a CA of its own")
        command.add_argument("--kubeconfig", type=Path, metavar="PATH", help="where to write the kubeconfig")
        command.add_argument(
            "--compaction-interval", type=_duration, metavar="5s", help="how soon the past is forgotten (5m)"
        )
        command.add_argument(
            "--feature-gates", type=_gates, metavar="A=true,…", help="feature gates that are not as by default"
        )
        command.add_argument(
            "--controllers", type=_controllers, metavar="*,-NAME,…",
            help="which controllers run: * for all, NAME, or -NAME to leave one out (those of the profile)",
        )
        command.add_argument(
            "--control", type=_boolean, nargs="?", const=True, metavar="true|false",
            help="serve /fakekube/v1 (true where only this machine is heard)",
        )
        command.add_argument(
            "--load", type=Path, action="append", metavar="FILE_OR_DIR", help="apply manifests; may be given again"
        )
    return parser


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _duration(text: str) -> float:
    """A duration as Go writes it, in seconds."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 5s or 1m30s")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not seconds:
        raise argparse.ArgumentTypeError("the interval must not be zero")
    return seconds


def _controllers(text: str) -> list[str]:
    from fakekube.controllers.table import UnknownController, enabled

    switches = text.split(",")
    try:
        enabled(switches)
    except UnknownController as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
    return switches


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text == "true"


def _gates(text: str) -> dict[str, bool]:
    gates = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if not name or value.lower() not in ("true", "false"):
            raise argparse.ArgumentTypeError(f"{part!r} is not GATE=true or GATE=false")
        gates[name] = value.lower() == "true"
    return gates
