"""The replacement for kubectl, for machines without the real one.

It has the commands `get`, `create`, `apply`, `delete`, `config` and `version`, with the flags for the server and the user.
`apply` is a server-side apply; `config` reads and changes kubeconfig files. All other commands are errors.

Invariants: the output is that of the real kubectl for the same command, except for the texts of usage errors. A command of
`config` changes only the entries and fields that it names; only the owner can read a written file.

Specified by: k8s.io/kubectl/pkg/cmd (get, create, apply, delete, version; config: set_cluster.go, set_credentials.go,
set_context.go, unset.go …), k8s.io/cli-runtime/pkg/genericclioptions (config_flags.go),
k8s.io/client-go/tools/clientcmd/loader.go.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from fakekube.apimachinery.patch import APPLY_YAML
from fakekube.base.objects import Object
from fakekube.cli.envtest.command_line import FlagError, seconds, split
from fakekube.cluster.kubeconfig import write_kubeconfig
from fakekube.cluster.testing.manifests import ManifestError, objects
from fakekube.controllers.client import ApiError, UnknownResource
from fakekube.controllers.client.client import DiscoveredResource
from fakekube.controllers.client.remote import KubeconfigContext, KubeconfigError, RemoteClient, read_context, read_kubeconfig

# --- `config` of the replacement for kubectl --------------------------------------------------------------------------


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


def run_config(words: Sequence[str], flags: Flags) -> int:
    """Runs a subcommand and returns the exit code. Raises KubeconfigError."""
    path = path_of(flags)
    config = read_kubeconfig(path) if path.is_file() and path.stat().st_size else {**_EMPTY}
    command, name = [*words, "", ""][:2]
    if command not in _CONFIG_COMMANDS:
        raise KubeconfigError(f'unknown command "config {command}"')
    changed, output = _CONFIG_COMMANDS[command](config, name, flags)
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


def _delete_entry(part: str) -> Callable[[Object, str, Flags], tuple[bool, str]]:
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


_CONFIG_COMMANDS: Mapping[str, Callable[[Object, str, Flags], tuple[bool, str]]] = {
    "current-context": _current_context,
    "delete-cluster": _delete_entry("clusters"),
    "delete-context": _delete_entry("contexts"),
    "delete-user": _delete_entry("users"),
    "get-contexts": lambda config, _name, _flags: (False, "\n".join(entry["name"] for entry in _entries(config, "contexts"))),
    "set-cluster": _set("clusters", ("server", "certificate-authority", "insecure-skip-tls-verify"), "Cluster"),
    "set-context": _set("contexts", ("cluster", "user", "namespace"), "Context"),
    "set-credentials": _set("users", ("client-certificate", "client-key", "token", "username", "password"), "User"),
    "unset": _unset,
    "use-context": _use_context,
    "view": _view,
}


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
FIELD_MANAGER = "kubectl"

_SWITCHES = frozenset((
    "A", "all", "all-namespaces", "cascade", "client", "current", "embed-certs", "flatten", "force", "force-conflicts", "h",
    "help", "ignore-not-found", "insecure-skip-tls-verify", "minify", "no-headers", "now", "raw", "R", "recursive", "server-side",
    "show-labels", "validate", "w", "wait", "watch",
))  # fmt: skip
_KNOWN = frozenset((
    "as", "as-group", "certificate-authority", "client-certificate", "client-key", "cluster", "context", "f", "field-manager",
    "field-selector", "filename", "grace-period", "kubeconfig", "l", "n", "namespace", "o", "output", "password",
    "request-timeout", "s", "selector", "server", "set-raw-bytes", "timeout", "token", "user", "username", "v",
))  # fmt: skip
_SHORT = {"A": "all-namespaces", "f": "filename", "l": "selector", "n": "namespace", "o": "output", "s": "server", "w": "watch"}


class CommandError(Exception):
    """The command failed; the text is printed after `error: `."""


@dataclass(slots=True)
class Session:
    """The client, the default namespace and the flags of one command."""

    client: RemoteClient
    namespace: str
    flags: Flags

    def resource(self, name: str) -> DiscoveredResource:
        """Returns the resource for a name, a short name or a kind, with an optional group. Raises CommandError."""
        for one in self.client.resources():
            if one.is_called(name):
                return one
        raise CommandError(f'the server doesn\'t have a resource type "{name}"')

    def resource_of(self, obj: Object) -> DiscoveredResource:
        """Returns the resource of an object's kind. Raises CommandError."""
        for one in self.client.resources():
            if (one.api_version, one.kind) == (obj.get("apiVersion"), obj.get("kind")):
                return one
        raise CommandError(
            f'resource mapping not found for name: "{obj.get("metadata", {}).get("name", "")}": '
            f'no matches for kind "{obj.get("kind")}" in version "{obj.get("apiVersion")}"'
        )

    def path(self, resource: DiscoveredResource, name: str = "", namespace: str = "") -> str:
        """Returns the path of an object, or of a collection."""
        place = None if "all-namespaces" in self.flags else namespace or self.namespace
        return self.client.path(resource, place) + (f"/{quote(name)}" if name else "")


# --- Commands ---------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Runs a command and returns the exit code."""
    try:
        given, words = split(arguments, switches=_SWITCHES, known=_KNOWN)
        flags = {_SHORT.get(name, name): values for name, values in given.items()}
        command = words[0] if words else ""
        if command == "config":
            return run_config(words[1:], flags)
        if command not in _COMMANDS:
            raise CommandError(f'unknown command "{command}"; this replacement has {", ".join([*_COMMANDS, "config"])}')
        return _COMMANDS[command](words[1:], flags)
    except ApiError as error:
        reason = f" ({error.reason})" if error.reason else ""
        print(
            f"Error from server{reason}: {error}" if error.code else f"Unable to connect to the server: {error}", file=sys.stderr
        )
    except (CommandError, FlagError, KubeconfigError, ManifestError, UnknownResource) as error:
        print(f"error: {error}", file=sys.stderr)
    return 1


def _session(flags: Flags) -> Session:
    """Returns the session for flags and kubeconfig. Raises KubeconfigError."""
    path = path_of(flags)
    empty = KubeconfigContext({}, {}, "")
    context = empty if _last_value(flags, "server") and not path.is_file() else read_context(path, _last_value(flags, "context"))
    cluster, user = dict(context.cluster), dict(context.user)
    for name in ("server", "certificate-authority"):
        _override(cluster, flags, name)
    for name in ("client-certificate", "client-key", "token"):
        _override(user, flags, name)
    if "insecure-skip-tls-verify" in flags:
        cluster["insecure-skip-tls-verify"] = _last_value(flags, "insecure-skip-tls-verify") == "true"
    timeout = _last_value(flags, "request-timeout")
    patience = seconds("request-timeout", timeout if timeout[-1:].isalpha() else f"{timeout}s") if timeout else 0.0
    client = RemoteClient(cluster, user, path.parent, patience or 60.0)
    return Session(client, _last_value(flags, "namespace") or context.namespace or "default", flags)


def _override(entry: Object, flags: Flags, name: str) -> None:
    value = _last_value(flags, name)
    if value:
        entry.pop(f"{name}-data", None)
        entry[name] = value if name in ("server", "token") else str(Path(value).absolute())


def _last_value(flags: Flags, name: str) -> str:
    return flags[name][-1] if name in flags else ""


#: The parameters of a list, and the flags that set them.
_SELECTORS = (("labelSelector", "selector"), ("fieldSelector", "field-selector"))


def _get(words: Sequence[str], flags: Flags) -> int:
    session = _session(flags)
    output = _last_value(flags, "output")
    query = {name: _last_value(flags, flag) for name, flag in _SELECTORS}
    for resource, name in _targets(session, words):
        path = session.path(resource, name)
        suffix = "?" + "&".join(f"{key}={quote(value)}" for key, value in query.items() if value)
        try:
            found = session.client.request(
                "GET", path + suffix.rstrip("?"), accept=TABLE if output in ("", "wide") else "application/json"
            )
        except ApiError as error:
            if error.code == 404 and name and "ignore-not-found" in flags:
                continue
            raise
        _print(found, resource, output, flags, session)
    return 0


def _targets(session: Session, words: Sequence[str]) -> Iterator[tuple[DiscoveredResource, str]]:
    """Yields resources and names of `pods`, `pods,services`, `pod a b` and `pod/a service/b`. Raises CommandError."""
    if not words:
        raise CommandError("you must specify the type of resource")
    if "/" in words[0]:
        for word in words:
            kind, _, name = word.partition("/")
            yield session.resource(kind), name
        return
    for kind in words[0].split(","):
        for name in words[1:] or ("",):
            yield session.resource(kind), name


def _print(found: Object, resource: DiscoveredResource, output: str, flags: Flags, session: Session) -> None:
    form, _, template = output.partition("=")
    if form in ("", "wide") and found.get("kind") == "Table":
        _print_table(found, resource, flags, session, wide=form == "wide")
    elif form == "name":
        for obj in found.get("items", [found]):
            print(f"{_resource_name(resource)}/{obj['metadata']['name']}")
    elif form == "yaml":
        from fakekube.apimachinery.codecs import yaml

        sys.stdout.write(yaml.dumps(found).decode())
    elif form in ("", "json", "wide"):
        print(json.dumps(found, indent=4))
    elif form == "jsonpath":
        from fakekube.apimachinery.printers.jsonpath import parse

        path = parse(template.removeprefix("{").removesuffix("}"))
        sys.stdout.write(" ".join(value if isinstance(value, str) else json.dumps(value) for value in path.find(found)))
    else:
        raise CommandError(f'unable to match a printer suitable for the output format "{output}"')


def _print_table(table: Object, resource: DiscoveredResource, flags: Flags, session: Session, *, wide: bool) -> None:
    columns = [place for place, column in enumerate(table["columnDefinitions"]) if wide or not column.get("priority")]
    rows = [[_cell_text(row["cells"][place]) for place in columns] for row in table.get("rows") or ()]
    heads = [table["columnDefinitions"][place]["name"].upper() for place in columns]
    if "all-namespaces" in flags:
        heads = ["NAMESPACE", *heads]
        spaces = [row["object"]["metadata"].get("namespace", "") for row in table.get("rows") or ()]
        rows = [[space, *row] for space, row in zip(spaces, rows, strict=True)]
    if not rows:
        where = f" in {session.namespace} namespace." if resource.namespaced and "all-namespaces" not in flags else ""
        print(f"No resources found{where}", file=sys.stderr)
        return
    lines = rows if "no-headers" in flags else [heads, *rows]
    widths = [max(map(len, column)) + 3 for column in zip(*lines, strict=True)]
    for line in lines:
        print("".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell_text(cell: Any) -> str:
    """Returns the first line of a cell, without what a terminal would obey (appendCellValue of kubectl's printer)."""
    text = "" if cell is None else str(cell)
    line, *rest = re.split("[\f\n\r]", text.replace("\x1b", "^["), maxsplit=1)
    return f"{line}..." if rest else line


def _resource_name(resource: DiscoveredResource) -> str:
    return f"{resource.kind.lower()}.{resource.group}" if resource.group else resource.kind.lower()


def _manifests(flags: Flags) -> list[Object]:
    """Returns the objects of -f. Raises CommandError and ManifestError."""
    if "filename" not in flags:
        raise CommandError("must specify -f")
    sources = [sys.stdin.read() if name == "-" else Path(name) for text in flags["filename"] for name in text.split(",")]
    return objects(*sources)


def _create(words: Sequence[str], flags: Flags) -> int:
    session = _session(flags)
    for obj in _manifests(flags):
        resource = session.resource_of(obj)
        path = session.path(resource, namespace=obj.get("metadata", {}).get("namespace", ""))
        made = session.client.request("POST", f"{path}?fieldManager={FIELD_MANAGER}-create", obj)
        print(f"{_resource_name(resource)}/{made['metadata']['name']} created")
    return 0


def _apply(words: Sequence[str], flags: Flags) -> int:
    session = _session(flags)
    manager = _last_value(flags, "field-manager") or FIELD_MANAGER
    force = "true" if "server-side" not in flags or "force-conflicts" in flags else "false"
    for obj in _manifests(flags):
        resource, metadata = session.resource_of(obj), obj.get("metadata", {})
        path = session.path(resource, metadata.get("name", ""), metadata.get("namespace", ""))
        before = None if "server-side" in flags else _revision(session, path)
        made = session.client.request("PATCH", f"{path}?fieldManager={quote(manager)}&force={force}", obj, APPLY_YAML)
        changes = {None: "created", made["metadata"]["resourceVersion"]: "unchanged"}
        done = "serverside-applied" if "server-side" in flags else changes.get(before, "configured")
        print(f"{_resource_name(resource)}/{made['metadata']['name']} {done}")
    return 0


def _revision(session: Session, path: str) -> str | None:
    """Returns the resourceVersion of an object; None if it does not exist. Raises ApiError."""
    try:
        return str(session.client.get(path)["metadata"]["resourceVersion"])
    except ApiError as error:
        if error.code == 404:
            return None
        raise


def _delete(words: Sequence[str], flags: Flags) -> int:
    session = _session(flags)
    if "filename" in flags:
        targets = [
            (session.resource_of(obj), obj["metadata"]["name"], obj["metadata"].get("namespace", "")) for obj in _manifests(flags)
        ]
    else:
        targets = [(resource, name, "") for resource, name in _targets(session, words)]
    for resource, name, namespace in targets:
        if not name:
            raise CommandError("resource(s) were provided, but no name was specified")
        try:
            session.client.request("DELETE", session.path(resource, name, namespace))
        except ApiError as error:
            if error.code == 404 and "ignore-not-found" in flags:
                continue
            raise
        where = f" from {namespace or session.namespace} namespace" if resource.namespaced else ""
        print(f'{_resource_name(resource)} "{name}" deleted{where}')
    return 0


def _version(words: Sequence[str], flags: Flags) -> int:
    from fakekube.apimachinery.data import DEFAULT
    from fakekube.apiserver.http.nonresource_paths import version_info

    own = version_info(DEFAULT)
    found = {"clientVersion": own, "kustomizeVersion": "v0.0.0"}
    if "client" not in flags:
        found["serverVersion"] = _session(flags).client.get("/version")
    if _last_value(flags, "output") == "json":
        print(json.dumps(found, indent=2))
        return 0
    print(f"Client Version: {own['gitVersion']}")
    if "serverVersion" in found:
        print(f"Server Version: {found['serverVersion']['gitVersion']}")  # type: ignore[index]
    return 0


_COMMANDS: Mapping[str, Callable[[Sequence[str], Flags], int]] = {
    "apply": _apply,
    "create": _create,
    "delete": _delete,
    "get": _get,
    "version": _version,
}
