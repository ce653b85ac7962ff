"""`config` of the replacement for kubectl: reads and changes kubeconfig files.

Invariant: a command changes only the entries and fields that it names; only the owner can read a written file.

Specified by: k8s.io/kubectl/pkg/cmd/config (set_cluster.go, set_credentials.go, set_context.go, unset.go …) and
k8s.io/client-go/tools/clientcmd/loader.go.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fakekube.base.objects import Object
from fakekube.cluster.kubeconfigs import write_kubeconfig
from fakekube.controllers.client.remote import KubeconfigError, read_kubeconfig

Flags: TypeAlias = Mapping[str, Sequence[str]]

#: Name of a list in the file → the field with the content of an entry.
_CONTENT = {"clusters": "cluster", "contexts": "context", "users": "user"}

#: Flags with paths of files. The paths are made absolute; with --embed-certs the content is put into the kubeconfig.
_FILES = frozenset({"certificate-authority", "client-certificate", "client-key"})
_BOOLEANS = frozenset({"insecure-skip-tls-verify"})

_EMPTY: Mapping[str, Any] = {
    "apiVersion": "v1", "kind": "Config", "clusters": [], "contexts": [], "current-context": "", "preferences": {}, "users": [],
}  # fmt: skip


def path_of(flags: Flags) -> Path:
    """Returns the kubeconfig file: of --kubeconfig, else the first that exists of KUBECONFIG, else ~/.kube/config."""
    if flags.get("kubeconfig"):
        return Path(flags["kubeconfig"][-1])
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return next((path for path in named if path.exists()), named[0] if named else Path.home() / ".kube" / "config")


def run(words: Sequence[str], flags: Flags) -> int:
    """Runs a subcommand and returns the exit code. Raises KubeconfigError."""
    path = path_of(flags)
    config = read_kubeconfig(path) if path.is_file() and path.stat().st_size else {**_EMPTY}
    command, name = [*words, "", ""][:2]
    if command not in _COMMANDS:
        raise KubeconfigError(f'unknown command "config {command}"')
    changed, output = _COMMANDS[command](config, name, flags)
    if changed:
        write_kubeconfig(path, config)
    if output:
        print(output)
    return 0


def _entries(config: Object, part: str) -> list[Object]:
    """Returns a list of a kubeconfig; creates it if it is missing or null."""
    found: list[Object] = config.get(part) or []
    config[part] = found
    return found


def _entry(config: Object, part: str, name: str) -> Object | None:
    return next((entry for entry in _entries(config, part) if entry.get("name") == name), None)


def _set(part: str, names: Sequence[str], label: str) -> Callable[[Object, str, Flags], tuple[bool, str]]:
    """Returns the command that sets fields of an entry from flags."""

    def command(config: Object, name: str, flags: Flags) -> tuple[bool, str]:
        if part == "contexts" and "current" in flags:
            name = config.get("current-context") or ""
        if not name:
            raise KubeconfigError(f"you must specify the name of the {label.lower()}")
        entry = _entry(config, part, name)
        known = entry is not None
        if entry is None:
            entry = {_CONTENT[part]: {}, "name": name}
            _entries(config, part).append(entry)
        content = entry[_CONTENT[part]] = entry.get(_CONTENT[part]) or {}
        for flag in names:
            if flag in flags:
                _set_field(content, flag, flags[flag][-1], embed="embed-certs" in flags)
        return (
            True,
            f'{label} "{name}" {"modified" if known and part == "contexts" else "set" if part != "contexts" else "created"}.',
        )

    return command


def _set_field(content: Object, flag: str, value: str, *, embed: bool) -> None:
    if flag not in _FILES:
        content[flag] = value == "true" if flag in _BOOLEANS else value
        return
    content.pop(flag, None)
    content.pop(f"{flag}-data", None)
    path = Path(value).absolute()
    if not embed:
        content[flag] = str(path)
        return
    try:
        content[f"{flag}-data"] = base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise KubeconfigError(f"could not read {flag} data from {value}: {error.strerror}") from None


def _use_context(config: Object, name: str, flags: Flags) -> tuple[bool, str]:
    if _entry(config, "contexts", name) is None:
        raise KubeconfigError(f'no context exists with the name: "{name}"')
    config["current-context"] = name
    return True, f'Switched to context "{name}".'


def _current_context(config: Object, _name: str, _flags: Flags) -> tuple[bool, str]:
    if not config.get("current-context"):
        raise KubeconfigError("current-context is not set")
    return False, config["current-context"]


def _unset(config: Object, name: str, _flags: Flags) -> tuple[bool, str]:
    """Removes `current-context`, `users.NAME`, or a field of an entry (`contexts.NAME.namespace`)."""
    part, _, rest = name.partition(".")
    if not rest:
        config[part] = type(_EMPTY[part])() if part in _EMPTY else None
    elif part in _CONTENT:
        _unset_entry(config, part, rest)
    return True, f'Property "{name}" unset.'


def _unset_entry(config: Object, part: str, rest: str) -> None:
    entries = _entries(config, part)
    if _entry(config, part, rest) is not None:
        entries[:] = [entry for entry in entries if entry.get("name") != rest]
        return
    name, _, field = rest.rpartition(".")
    entry = _entry(config, part, name)
    if entry is None:
        raise KubeconfigError(f"current map key `{rest}` is invalid")
    (entry.get(_CONTENT[part]) or {}).pop(field, None)


def _delete(part: str) -> Callable[[Object, str, Flags], tuple[bool, str]]:
    """Returns the command that removes an entry."""

    def command(config: Object, name: str, flags: Flags) -> tuple[bool, str]:
        if _entry(config, part, name) is None:
            raise KubeconfigError(f"cannot delete {_CONTENT[part]} {name}, not in {path_of(flags)}")
        _unset_entry(config, part, name)
        return True, f"deleted {_CONTENT[part]} {name} from {path_of(flags)}"

    return command


def _view(config: Object, _name: str, flags: Flags) -> tuple[bool, str]:
    import copy

    from fakekube.apimachinery.codecs import yaml

    shown = copy.deepcopy(config)
    if "raw" not in flags:
        for part, member in _CONTENT.items():
            for entry in _entries(shown, part):
                _hide_data(entry.get(member) or {})
    sys.stdout.write(yaml.dumps(shown).decode())
    return False, ""


def _hide_data(content: Object) -> None:
    for name in content:
        if name.endswith("-data"):
            content[name] = "DATA+OMITTED"
        elif name in ("token", "password"):
            content[name] = "REDACTED"


_COMMANDS: Mapping[str, Callable[[Object, str, Flags], tuple[bool, str]]] = {
    "current-context": _current_context,
    "delete-cluster": _delete("clusters"),
    "delete-context": _delete("contexts"),
    "delete-user": _delete("users"),
    "get-contexts": lambda config, _name, _flags: (False, "\n".join(entry["name"] for entry in _entries(config, "contexts"))),
    "set-cluster": _set("clusters", ("server", "certificate-authority", "insecure-skip-tls-verify"), "Cluster"),
    "set-context": _set("contexts", ("cluster", "user", "namespace"), "Context"),
    "set-credentials": _set("users", ("client-certificate", "client-key", "token", "username", "password"), "User"),
    "unset": _unset,
    "use-context": _use_context,
    "view": _view,
}
