"""Reads the values of command line arguments: users, Services, numbers, durations, controllers, versions, feature gates.

Invariant: a value that cannot be read raises argparse.ArgumentTypeError, whose text tells what is expected.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from fakekube.apimachinery.data import RELEASES

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")

_PARTS_OF_NAMES = {"system:serviceaccount": 4, "system:node": 3}
"""The beginning of a user name with colons → the number of its parts."""


def read_user(text: str) -> tuple[str, tuple[str, ...]]:
    """Parses a user name with optional groups after a colon; system names contain colons themselves."""
    parts = text.split(":")
    length = _PARTS_OF_NAMES.get(":".join(parts[:2]), 2) if parts[0] == "system" else 1
    name, groups = ":".join(parts[:length]), ":".join(parts[length:])
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} has no user name")
    return name, tuple(group for group in groups.split(",") if group)


def _service_and_value(text: str, what: str) -> tuple[str, str]:
    """Splits NAMESPACE/SERVICE=VALUE."""
    service, _, value = text.partition("=")
    if not re.fullmatch(r"[^/]+/[^/]+", service) or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAMESPACE/SERVICE={what}")
    return service, value


def read_forward(text: str) -> tuple[str, str, int]:
    service, address = _service_and_value(text, "[HOST:]PORT")
    host, _, number = address.rpartition(":")
    if not number.isdigit() or not 0 < int(number) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAMESPACE/SERVICE=[HOST:]PORT")
    return service, host.strip("[]") or "127.0.0.1", int(number)


def read_certificate(text: str) -> tuple[str, Path]:
    service, folder = _service_and_value(text, "DIR")
    return service, Path(folder)


def read_port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def read_count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 999999999")
    return int(text)


#: The largest cluster that Kubernetes supports.
_MAX_NODES = 5000


def read_node_count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or int(text) > _MAX_NODES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes from 0 to {_MAX_NODES}")
    return int(text)


def read_duration(text: str) -> float:
    """Parses a Go duration and returns seconds."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 5s or 1m30s")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not seconds:
        raise argparse.ArgumentTypeError("the interval must not be zero")
    return seconds


def read_pause(text: str) -> float:
    """Parses a number of seconds, or a Go duration; 0 is allowed."""
    return 0.0 if text in ("0", "0s", "0ms") else read_seconds(text)


def read_seconds(text: str) -> float:
    """Parses a number of seconds, or a Go duration."""
    try:
        seconds = float(text)
    except ValueError:
        return read_duration(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def read_speed(text: str) -> float:
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not speed > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a speed such as 10 or 0.5")
    return speed


def read_controllers(text: str) -> list[str]:
    from fakekube.controllers.controller_descriptors import UnknownController, select_controllers
    from fakekube.nodes.controller_descriptors import NODE_CONTROLLERS

    switches = text.split(",")
    try:
        select_controllers(switches, NODE_CONTROLLERS)
    except UnknownController as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
    return switches


def read_boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text == "true"


def read_minor(text: str) -> str:
    """Returns the minor of a version: 1.35, v1.35 or v1.35.4."""
    minor = ".".join(text.removeprefix("v").split(".")[:2])
    if minor not in RELEASES:
        raise argparse.ArgumentTypeError(f"Kubernetes {text} is not known; known: {', '.join(RELEASES)}")
    return minor


def release_of(text: str) -> tuple[str, str]:
    """Returns a release without `v`, such as 1.35.4, and the minor that is emulated for it: its own or the nearest one."""
    found = re.fullmatch(r"v?1\.(\d{1,3})(?:\.(\d{1,3}))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a release such as 1.35.4")
    minor = min(RELEASES, key=lambda known: abs(int(known.partition(".")[2]) - int(found[1])))
    patch = found[2] or (RELEASES[minor] if minor == f"1.{found[1]}" else 0)
    return f"1.{found[1]}.{patch}", minor


def read_gates(text: str) -> dict[str, bool]:
    gates = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if not name or value.lower() not in ("true", "false"):
            raise argparse.ArgumentTypeError(f"{part!r} is not GATE=true or GATE=false")
        gates[name] = value.lower() == "true"
    return gates
