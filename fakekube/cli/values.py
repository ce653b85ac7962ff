"""Reads the values of command line arguments: users, Services, numbers, durations, controllers, versions, feature gates.

Invariant: a value that cannot be read raises argparse.ArgumentTypeError, whose text tells what is expected.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from fakekube.apimachinery.data import RELEASES

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")

#: The beginning of a user name with colons → the number of its parts.
_PARTS_OF_NAMES = {"system:serviceaccount": 4, "system:node": 3}


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
    """Parses NAMESPACE/SERVICE=[HOST:]PORT; returns the Service, the host (127.0.0.1 by default) and the port."""
    service, address = _service_and_value(text, "[HOST:]PORT")
    host, _, number = address.rpartition(":")
    if not _is_number(number, _MAX_PORT) or not int(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAMESPACE/SERVICE=[HOST:]PORT")
    return service, host.strip("[]") or "127.0.0.1", int(number)


def read_certificate(text: str) -> tuple[str, Path]:
    """Parses NAMESPACE/SERVICE=DIR; returns the Service and the folder."""
    service, folder = _service_and_value(text, "DIR")
    return service, Path(folder)


def read_output(text: str) -> Path:
    """Parses the path of a file that is written at the end of a long command, which must be possible."""
    path = Path(text)
    if path.is_dir() or not _is_writable(path):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written")
    return path


def read_output_folder(text: str) -> Path:
    """Parses the path of a folder in which a long command writes, which must be possible."""
    path = Path(text)
    if (path.exists() and not path.is_dir()) or not _is_writable(path):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written")
    return path


def _is_writable(path: Path) -> bool:
    """Reports whether a file or folder can be written, or made where it does not exist.

    It is tried, because permissions do not tell: nobody makes files below /proc.
    """
    import tempfile

    folder = path if path.is_dir() else next(parent for parent in (*path.parents, Path()) if parent.exists())
    try:
        if path.is_file():
            path.open("ab").close()
        elif path.is_dir() or not path.exists():
            tempfile.TemporaryFile(dir=folder).close()
        else:
            return os.access(path, os.W_OK)  # a pipe or a device
    except OSError:
        return False
    return True


#: The largest number of what is counted; its digits are the most that are read as a number.
_MAX_COUNT = 999_999_999
_MAX_PORT = 65_535
#: The largest cluster that Kubernetes supports.
_MAX_NODES = 5000


def _is_number(text: str, maximum: int) -> bool:
    """Reports whether a text is a number from 0 to a maximum."""
    return text.isdecimal() and len(text) <= len(str(_MAX_COUNT)) and int(text) <= maximum


def read_port(text: str) -> int:
    """Parses a port; 0 is allowed."""
    if not _is_number(text, _MAX_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def read_count(text: str) -> int:
    """Parses a number from 0 on."""
    if not _is_number(text, _MAX_COUNT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_MAX_COUNT}")
    return int(text)


def read_node_count(text: str) -> int:
    """Parses the number of nodes of a cluster."""
    if not _is_number(text, _MAX_NODES):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes from 0 to {_MAX_NODES}")
    return int(text)


def read_duration(text: str) -> float:
    """Parses a Go duration and returns seconds; 0 is not allowed."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 5s or 1m30s")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is {'too long' if seconds else 'zero'}")
    return seconds


def read_pause(text: str) -> float:
    """Parses a number of seconds, or a Go duration, and returns seconds; 0 is allowed."""
    return 0.0 if text in ("0", "0s", "0ms") else read_seconds(text)


def read_seconds(text: str) -> float:
    """Parses a number of seconds, or a Go duration, and returns seconds; 0 is not allowed."""
    try:
        seconds = float(text)
    except ValueError:
        return read_duration(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def read_speed(text: str) -> float:
    """Parses the recorded seconds that are played in a second: 10, 10x, 0.5 or inf."""
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not speed > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a speed such as 10 or 0.5")
    return speed


def read_controllers(text: str) -> list[str]:
    """Parses the names of controllers, `*` for all, and `-NAME` to leave one out, with commas between them."""
    from fakekube.controllers.controller_descriptors import UnknownController, select_controllers
    from fakekube.nodes.controller_descriptors import NODE_CONTROLLERS

    switches = text.split(",")
    try:
        select_controllers(switches, NODE_CONTROLLERS)
    except UnknownController as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
    return switches


def read_boolean(text: str) -> bool:
    """Parses `true` or `false`."""
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text == "true"


def read_minor(text: str) -> str:
    """Returns the minor of a version: 1.35, v1.35 or v1.35.4."""
    minor = ".".join(text.removeprefix("v").split(".")[:2])
    if minor not in RELEASES:
        raise argparse.ArgumentTypeError(f"Kubernetes {text} is not known; known: {', '.join(RELEASES)}")
    return minor


def read_release(text: str) -> tuple[str, str]:
    """Parses a release. Returns it without `v`, such as 1.35.4, and the minor that is emulated for it: its own or the nearest."""
    found = re.fullmatch(r"v?1\.(\d{1,3})(?:\.(\d{1,3}))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a release such as 1.35.4")
    minor = min(RELEASES, key=lambda known: abs(int(known.partition(".")[2]) - int(found[1])))
    patch = found[2] or (RELEASES[minor] if minor == f"1.{found[1]}" else 0)
    return f"1.{found[1]}.{patch}", minor


def read_gates(text: str) -> dict[str, bool]:
    """Parses feature gates, GATE=true or GATE=false with commas between them."""
    gates = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if not name or value.lower() not in ("true", "false"):
            raise argparse.ArgumentTypeError(f"{part!r} is not GATE=true or GATE=false")
        gates[name] = value.lower() == "true"
    return gates
