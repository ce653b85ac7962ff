"""The options of the plugin, of ini file, command line and marker, all from one table of names and types.

Invariant: nothing of the package is imported but the names of the options; a value of the ini file or the command line gets the
type that `PluginOptions` declares.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import pytest

from fakekube.cluster_options import PluginOptions, option_types, unknown_options

__all__ = ["add_options", "configured_options", "marker_options"]

#: Option → what it does; the other options are flags of kube-apiserver.
_HELP: Final[Mapping[str, str]] = {
    "version": "the minor version of Kubernetes",
    "profile": "cluster (all controllers), envtest (those for namespaces and garbage collection) or apiserver (none)",
    "host": "the address on which the server listens",
    "port": "the port of the server; 0 is a free one",
    "tls": "serve HTTPS",
    "feature_gates": "feature gates, GATE=true",
    "controllers": "which controllers run: *, NAME, -NAME, separated by commas",
    "control": "serve the control API, /fakekube/v1",
    "page": "serve the page of the cluster, /fakekube/",
    "compaction_interval": "seconds between compactions of the history",
    "nodes": "the number of initial nodes (1 if kubelets run, else 0)",
    "stages": "Stage files of kwok",
    "load": "manifests, or a saved state, that every cluster starts with",
    "keep_requests": "how many of the latest requests are recorded",
    "strict": "fail a test if a fault that it armed never happened",
    "first_revision": "the revision from which new ones continue",
    "kubeconfig": "set KUBECONFIG for the test",
}

#: Type of an option → type of the ini option. "paths" are relative to the ini file.
_INI: Final[Mapping[str, str]] = {"bool": "bool", "Source": "paths", "Path | str": "paths", "Mapping[str, bool]": "linelist"}
#: Type of an option → what converts a text.
_NUMBERS: Final[Mapping[str, Callable[[str], Any]]] = {"int": int, "float": float}
#: Types whose command line option may be repeated.
_REPEATED: Final = frozenset({"Source", "Mapping[str, bool]"})


def add_options(parser: pytest.Parser) -> None:
    """Adds an ini option and a command line option for each option of a cluster."""
    group = parser.getgroup("fakekube", "Kubernetes clusters for tests")
    for name, type_ in option_types(PluginOptions).items():
        flag = name.replace("_", "-")
        text = _HELP.get(name) or f"the flag --{flag} of the API server"
        parser.addini(f"fakekube_{name}", text, type=_INI.get(type_, "string"), default=None)  # type: ignore[arg-type]
        if type_ == "bool":
            group.addoption(f"--fakekube-{flag}", action=argparse.BooleanOptionalAction, default=None, help=text)
        elif type_ in _REPEATED:
            group.addoption(f"--fakekube-{flag}", action="append", default=None, help=text)
        else:
            group.addoption(f"--fakekube-{flag}", default=None, help=text)


#: The options of ini file and command line, which are read once.
_CONFIGURED = pytest.StashKey[PluginOptions]()


def configured_options(config: pytest.Config) -> PluginOptions:
    """Returns the options of ini file and command line. Raises UsageError."""
    if _CONFIGURED not in config.stash:
        chosen: dict[str, Any] = {}
        for name, type_ in option_types(PluginOptions).items():
            # The command line takes precedence over the ini file.
            for value in (_ini_value(config, f"fakekube_{name}"), config.getoption(f"fakekube_{name}")):
                if value not in (None, [], ""):
                    chosen[name] = _convert_value(name, type_, value)
        config.stash[_CONFIGURED] = cast("PluginOptions", chosen)
    return config.stash[_CONFIGURED].copy()


def _ini_value(config: pytest.Config, name: str) -> Any:
    """Returns a value of the ini file. Raises UsageError."""
    try:
        return config.getini(name)
    except (pytest.UsageError, ValueError) as problem:  # the text of pytest does not name the option
        raise pytest.UsageError(f"{name}: {problem}") from None


def _convert_value(name: str, type_: str, value: Any) -> Any:
    """Returns a value of the ini file or of the command line as `PluginOptions` declares it. Raises UsageError."""
    if type_ in _NUMBERS:
        try:
            return _NUMBERS[type_](value)
        except ValueError:
            raise pytest.UsageError(f"fakekube_{name}: {value!r} is not a number") from None
    if type_ == "Path | str" and isinstance(value, list):
        if len(value) > 1:
            raise pytest.UsageError(f"fakekube_{name} is one path, not {len(value)}")
        return value[0]
    if type_ == "Mapping[str, bool]":
        pairs = [part.partition("=") for line in value for part in line.split(",") if part.strip()]
        wrong = [gate for gate, _, text in pairs if text.strip().lower() not in ("true", "false")]
        if wrong:
            raise pytest.UsageError(f"fakekube_{name}: {wrong[0]!r} is neither GATE=true nor GATE=false")
        return {gate.strip(): text.strip().lower() == "true" for gate, _, text in pairs}
    return value


def marker_options(marker: pytest.Mark | None) -> PluginOptions:
    """Returns the options of a test's marker. Raises UsageError, which names the nearest option, for an unknown one."""
    if marker is None:
        return {}
    if marker.args:
        raise pytest.UsageError("the marker fakekube takes the options of a cluster, fakekube(profile='apiserver')")
    problem = unknown_options(marker.kwargs, PluginOptions.__annotations__)
    if problem:
        raise pytest.UsageError(f"the marker fakekube: {problem}")
    return cast("PluginOptions", dict(marker.kwargs))
