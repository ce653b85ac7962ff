"""Reads the member `flags` of a new cluster: values as JSON, or as texts of a command line.

Invariant: a flag that was read has the type that `ServerOptions` expects, and names no file of the server's machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakekube.base.golang.timestamps import parse_duration
from fakekube.cluster.control.members import BadMembers
from fakekube.cluster_options import ServerFlags, option_types, unknown_options

#: What is beside the flags of kube-apiserver, with the types of `ServerFlags`.
_OTHERS: Final = {
    "controllers": "str | Sequence[str]",
    "feature_gates": "Mapping[str, bool]",
    "keep_requests": "int",
    "strict": "bool",
}


def read_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the flags, named with underscores. Raises BadMembers for an unknown or a local one, and for wrong values."""
    types: Mapping[str, str] = {**option_types(ServerFlags), **_OTHERS}
    named = {name.replace("-", "_"): value for name, value in given.items()}
    problem = unknown_options(named, types)
    if problem:
        raise BadMembers(f"flags: {problem}")
    return {name: _read_flag(name, types[name], value) for name, value in named.items()}


def _read_flag(name: str, kind: str, value: Any) -> Any:
    if "Path" in kind or name.endswith("_file"):
        raise BadMembers(f"flag {name} names a file of the server's machine")
    read, what = _READERS.get(kind, (_read_texts, "a string or a list of strings"))
    try:
        return read(value)
    except (ValueError, TypeError, AttributeError):
        raise BadMembers(f"flag {name} must be {what}") from None


def _read_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return bool(value.lower() == "true") if value.lower() in ("true", "false") else _refuse()


def _read_integer(value: Any) -> int:
    return int(value) if isinstance(value, int | str) and not isinstance(value, bool) else _refuse()


def _read_seconds(value: Any) -> float:
    is_duration = isinstance(value, str) and not value.replace(".", "", 1).isdecimal()
    found = parse_duration(value) / 1e9 if is_duration else float(value)
    return found if found > 0 and not isinstance(value, bool) else _refuse()


def _read_text(value: Any) -> str:
    return value if isinstance(value, str) else _refuse()


def _read_texts(value: Any) -> str | list[str]:
    if isinstance(value, str):
        return value
    return value if isinstance(value, list) and all(isinstance(one, str) for one in value) else _refuse()


def _read_gates(value: Any) -> dict[str, bool]:
    parts = value if isinstance(value, dict) else dict(part.strip().split("=", 1) for part in value.split(","))
    return {gate: _read_boolean(switch) for gate, switch in parts.items()}


def _refuse() -> Any:
    raise ValueError


#: Type of a flag → what reads its value, and what it must be.
_READERS: Final[Mapping[str, tuple[Callable[[Any], Any], str]]] = {
    "bool": (_read_boolean, "true or false"),
    "int": (_read_integer, "an integer"),
    "float": (_read_seconds, "a number of seconds, or a duration such as 1m30s"),
    "str": (_read_text, "a string"),
    "Mapping[str, bool]": (_read_gates, "an object of booleans, or a text such as A=true,B=false"),
}
