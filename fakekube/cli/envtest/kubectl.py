"""The replacement for kubectl, for machines without the real one.

It has the commands `get`, `create`, `apply`, `delete`, `config` and `version`, with the flags for the server and the user.
`apply` is a server-side apply. All other commands are errors.

Invariant: the output is that of the real kubectl for the same command, except for the texts of usage errors.

Specified by: k8s.io/kubectl/pkg/cmd (get, create, apply, delete, version) and k8s.io/cli-runtime/pkg/genericclioptions
(config_flags.go).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from fakekube.apimachinery.patch import APPLY_YAML
from fakekube.base.objects import Object
from fakekube.cli.envtest import kubectl_config
from fakekube.cli.envtest.flags import FlagError, seconds, split
from fakekube.cluster.testing.manifests import ManifestError, objects
from fakekube.controllers.client import ApiError, UnknownResource
from fakekube.controllers.client.client import DiscoveredResource
from fakekube.controllers.client.remote import KubeconfigContext, KubeconfigError, RemoteClient, read_context

Flags: TypeAlias = Mapping[str, Sequence[str]]

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


# ---------------------------------------------------------------- commands


def main(arguments: Sequence[str]) -> int:
    """Runs a command and returns the exit code."""
    try:
        given, words = split(arguments, switches=_SWITCHES, known=_KNOWN)
        flags = {_SHORT.get(name, name): values for name, values in given.items()}
        command = words[0] if words else ""
        if command == "config":
            return kubectl_config.run(words[1:], flags)
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
    path = kubectl_config.path_of(flags)
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
        from fakekube.apimachinery.printers import jsonpath

        path = jsonpath.parse(template.removeprefix("{").removesuffix("}"))
        sys.stdout.write(" ".join(value if isinstance(value, str) else json.dumps(value) for value in path.find(found)))
    else:
        raise CommandError(f'unable to match a printer suitable for the output format "{output}"')


def _print_table(table: Object, resource: DiscoveredResource, flags: Flags, session: Session, *, wide: bool) -> None:
    columns = [place for place, column in enumerate(table["columnDefinitions"]) if wide or not column.get("priority")]
    rows = [
        [str("" if row["cells"][place] is None else row["cells"][place]) for place in columns] for row in table.get("rows") or ()
    ]
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
    from fakekube.apiserver.http.documents import version_info

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
