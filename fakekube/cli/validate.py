"""`fakekube validate PATH…`: applies manifests with a server-side dry run to a fresh cluster, and reports what it refuses.

Definitions, namespaces, admission policies with their parameters, and what pods refer to (service accounts, classes) are created
first, in the cluster that is thrown away (of several classes of one name the last one stays); everything else is a dry run.
Namespaces that the manifests do not define are assumed to exist. A YAML document is sent as it stands, with
`fieldValidation=Strict`, so that unknown and duplicate fields are errors.
Of a folder, what is for kustomize, helm or other programs is skipped (`repository`); a file that is named must be a manifest.

Exit codes: 0; 1 if something is refused (with `--strict` also for warnings); 2 if a path or a file cannot be read.

Invariant: nothing is skipped without a line that says so.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

from fakekube.base.objects import Object
from fakekube.cli.arguments import Options

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.controllers.client.client import Client

_SEPARATOR: Final = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_CONTENT: Final = re.compile(r"^[ \t]*(?![ \t#\r\n]|\.\.\.)", re.MULTILINE)
_YAML_LINE: Final = re.compile(r"\bline (\d+)\b")
_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
#: The path that means the standard input.
_STDIN: Final = Path("-")
#: The largest file that is read, in bytes.
_MAX_BYTES: Final = 64 << 20
#: What is created before the dry runs, in this order.
_FIRST: Final = (
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "IngressClass",
    "ServiceAccount",
)
#: What is created after the parameters of policies.
_POLICIES: Final = (
    "ValidatingAdmissionPolicy",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBinding",
)


@dataclass(slots=True)
class Manifest:
    """One object of a file, and what the API server says of it."""

    file: str
    line: int
    text: bytes
    """The document, or the item of a List as JSON."""
    obj: Object
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    skipped: str = ""
    """Why it was not sent."""
    of_folder: bool = False
    """Whether its file was found in a folder, where files of other programs are, too."""

    @property
    def kind(self) -> str:
        return str(self.obj.get("kind") or "?")

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the object; empty if there are none, or something else."""
        found = self.obj.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        metadata = self.metadata
        generated = f"{metadata['generateName']}*" if metadata.get("generateName") else "?"
        name = str(metadata.get("name") or generated)
        return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name

    @property
    def title(self) -> str:
        """Kind and name; "" of what is no object."""
        return f"{self.kind} {self.name}" if "kind" in self.obj else ""

    def lines(self) -> Iterator[str]:
        """Returns a line for each problem."""
        head = f"{self.file}:{self.line}: {self.title}{': ' if self.title else ''}"
        yield from (head + " ".join(text.split()) for text in self.errors)
        yield from (f"{head}warning: {text}" for text in self.warnings)
        if self.skipped:
            yield f"{head}skipped: {self.skipped}"

    def data(self) -> dict[str, Any]:
        """Returns the result for JSON."""
        metadata = self.metadata
        return {
            "file": self.file,
            "line": self.line,
            "apiVersion": self.obj.get("apiVersion"),
            "kind": self.obj.get("kind"),
            "namespace": metadata.get("namespace"),
            "name": metadata.get("name"),
            "status": "invalid" if self.errors else "skipped" if self.skipped else "valid",
            "errors": self.errors,
            "warnings": self.warnings,
            **({"skipped": self.skipped} if self.skipped else {}),
        }


@dataclass(slots=True)
class Report:
    """The results of all files."""

    manifests: list[Manifest] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    """A line for each path or file that cannot be read."""

    def exit_code(self, *, strict: bool) -> int:
        """Returns the exit code of the command."""
        if self.unreadable:
            return 2
        return int(any(one.errors or (strict and one.warnings) for one in self.manifests))


def validate(options: Options) -> int:
    """Runs the command, and returns its exit code. Raises UsageError."""
    from fakekube.apimachinery.data import DEFAULT
    from fakekube.cluster import Cluster

    report = Report()
    for path in options.paths:
        _read_path(path, report)
    with Cluster(version=options.version or DEFAULT, profile="apiserver", keep_requests=0) as cluster:
        _Validation(cluster, ignore_missing=options.ignore_missing_schemas).run(report.manifests)
    _PRINTERS[options.output_format](report)
    return report.exit_code(strict=options.strict)


def _read_path(path: Path, report: Report) -> None:
    """Adds the objects of a file, of the standard input, or of all manifests below a folder."""
    from fakekube.cli.repository import manifest_files

    if path != _STDIN and not path.exists():
        report.unreadable.append(f"{path}: No such file or directory")
    elif path == _STDIN or not path.is_dir():
        _read_file(path, report)
    else:
        for file, reason in manifest_files(path).items():
            if reason:
                report.manifests.append(Manifest(str(file), 1, b"", {}, skipped=reason))
            else:
                _read_file(file, report, of_folder=True)


def _read_file(file: Path, report: Report, *, of_folder: bool = False) -> None:
    """Adds the objects of a file.

    Args:
        file: its path, or `-`.
        report: to which they are added.
        of_folder: whether documents of other programs are skipped; they are errors if the file is named.
    """
    try:
        text = _read_text(file)
    except OSError as problem:
        report.unreadable.append(f"{file}: {problem.strerror}")
        return
    except UnicodeDecodeError:
        report.unreadable.append(f"{file}: not UTF-8")
        return
    for line, document in split_documents(text):
        try:
            found = _read_document(str(file), line, document)
        except _Unreadable as problem:
            report.unreadable.append(f"{file}:{problem.line}: {problem}")
            continue
        for one in found:
            one.of_folder = of_folder
            if of_folder and one.errors and not one.obj.keys() & {"apiVersion", "kind"}:
                one.skipped, one.errors = "no Kubernetes object: it has no apiVersion and no kind", []
            report.manifests.append(one)


def _read_text(file: Path) -> str:
    """Returns the text of a file, a pipe or, for `-`, of the standard input. Raises OSError and UnicodeDecodeError."""
    if file == _STDIN:
        data = sys.stdin.buffer.read(_MAX_BYTES + 1)
    else:
        with file.open("rb") as source:
            data = source.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise OSError(0, f"larger than {_MAX_BYTES} bytes")
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def split_documents(text: str) -> Iterator[tuple[int, str]]:
    """Returns the documents of a YAML stream that have content, each with the line in which it begins."""
    starts = [0]
    ends = []
    for separator in _SEPARATOR.finditer(text):
        ends.append(separator.start())
        starts.append(separator.end() + 1)
    for start, end in zip(starts, [*ends, len(text)], strict=True):
        content = _CONTENT.search(text, start, end) if start < end else None
        if content is not None and text[content.start() : end].strip():
            yield text.count("\n", 0, content.start()) + 1, text[content.start() : end]


class _Unreadable(Exception):
    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


def _read_document(file: str, line: int, text: str) -> Sequence[Manifest]:
    """Returns the object of a document, or the items of a List. Raises _Unreadable."""
    from fakekube.apimachinery.codecs import DecodeError, yaml

    document = text.encode("utf-8", "surrogatepass")
    try:
        obj, _ = yaml.loads(document)
    except (DecodeError, ValueError, RecursionError) as problem:
        found = _YAML_LINE.search(str(problem))
        at = line + max(int(found[1]) - 1, 0) if found is not None else line
        raise _Unreadable(f"not YAML: {' '.join(str(problem).split())}", at) from None
    if obj is None:
        return []
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str) or not isinstance(obj.get("apiVersion"), str):
        made = Manifest(file, line, document, obj if isinstance(obj, dict) else {})
        made.errors.append("not a Kubernetes object: apiVersion and kind are required")
        return [made]
    items = obj.get("items")
    if not obj["kind"].endswith("List") or not isinstance(items, list):
        return [Manifest(file, line, document, obj)]
    lines = _item_lines(text, line)
    return [
        Manifest(
            file, lines[place] if place < len(lines) else line, json.dumps(item).encode(), item if isinstance(item, dict) else {}
        )
        for place, item in enumerate(items)
    ]


def _item_lines(text: str, line: int) -> Sequence[int]:
    """Returns the lines in which the items of a List begin; none if they cannot be told."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError):
        return ()
    for name, value in getattr(root, "value", ()):
        if name.value == "items" and isinstance(value, yaml.SequenceNode):
            return [line + item.start_mark.line for item in value.value]
    return ()


class _Validation:
    """Applies manifests to a cluster."""

    def __init__(self, cluster: Cluster, *, ignore_missing: bool) -> None:
        self._cluster = cluster
        self._client: Client = cluster.client_of("fakekube-validate")
        self._ignore_missing = ignore_missing
        self._classes: set[str] = set()
        """The paths of the classes that manifests have created."""
        self._namespaces = {"default", "kube-system", "kube-public", "kube-node-lease"}

    def run(self, manifests: Sequence[Manifest]) -> None:
        """Fills in the errors and warnings of the manifests."""
        wanted = [one for one in manifests if not one.errors and not one.skipped]
        parameters = {kind for one in wanted if one.kind in _POLICIES for kind in _parameter_kind(one.obj)}
        created = [one for kind in _FIRST for one in wanted if one.kind == kind]
        ranked = {*_FIRST, *_POLICIES}
        created += [one for one in wanted if one.kind not in ranked and (one.obj["apiVersion"], one.kind) in parameters]
        created += [one for kind in _POLICIES for one in wanted if one.kind == kind]
        for one in created:
            self._send(one, dry_run=False)
        done = {id(one) for one in created}
        for one in wanted:
            if id(one) not in done:
                self._send(one, dry_run=True)

    def _send(self, one: Manifest, *, dry_run: bool) -> None:
        from fakekube.controllers.client import UnknownResource

        group, _, version = str(one.obj["apiVersion"]).rpartition("/")
        metadata = one.metadata
        try:
            resource = self._client.resource(f"{one.kind}.{version}.{group}" if group else f"{one.kind}.{version}.")
        except UnknownResource:
            text = f"{one.obj['apiVersion']} {one.kind} is not known, and no definition has it"
            if self._ignore_missing:
                one.skipped = text
            elif one.of_folder and not metadata.get("name") and not metadata.get("generateName"):
                one.skipped = f"the configuration of another program: it has no name, and {text}"
            else:
                one.errors.append(text)
            return
        namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
        if namespace:
            self._require_namespace(namespace)
        name = metadata.get("name")
        query = {"fieldManager": "fakekube-validate", "fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        if not name and metadata.get("generateName"):
            path, method, media_type = self._client.path(resource, namespace), "POST", "application/yaml"
        else:
            path, method, media_type = (
                self._client.path(resource, namespace, str(name or "")),
                "PATCH",
                "application/apply-patch+yaml",
            )
            query["force"] = "true"
            if not name:
                one.errors.append("metadata.name is required")
                return
        if one.kind.endswith("Class") and not dry_run:
            self._replace_class(path)
        answer = self._cluster.request(method, path, one.text, query, headers={"Content-Type": media_type})
        one.warnings += [
            re.sub(r"\\(.)", r"\1", text) for value in answer.headers.get_all("Warning") for text in _WARNING.findall(value)
        ]
        if answer.status >= 400:
            status = answer.json()
            one.errors.append(str(status.get("message") or status))

    def _replace_class(self, path: str) -> None:
        """Deletes a class of another manifest: variants of one class are no updates, most of whose fields are immutable."""
        if path in self._classes:
            self._cluster.request("DELETE", path)
        self._classes.add(path)

    def _require_namespace(self, name: str) -> None:
        """Creates a namespace that the manifests do not define."""
        if name not in self._namespaces:
            self._namespaces.add(name)
            self._cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})


def _parameter_kind(policy: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Returns apiVersion and kind of the parameters of a policy, if it has any."""
    spec = policy.get("spec")
    kind = spec.get("paramKind") if isinstance(spec, dict) else None
    if isinstance(kind, dict):
        yield str(kind.get("apiVersion")), str(kind.get("kind"))


# --- Output -----------------------------------------------------------------------------------------------------------


def _print_text(report: Report) -> None:
    for line in report.unreadable:
        print(_escape_controls(line))
    for one in report.manifests:
        for line in one.lines():
            print(_escape_controls(line))
    refused = sum(bool(one.errors) for one in report.manifests)
    warned = sum(bool(one.warnings) for one in report.manifests)
    skipped = sum(bool(one.skipped) for one in report.manifests)
    files = len({one.file for one in report.manifests})
    text = f"{len(report.manifests)} objects in {files} files: {refused} refused, {warned} with warnings, {skipped} skipped"
    print(f"fakekube: {text}", file=sys.stderr)


def _escape_controls(line: str) -> str:
    """Returns a line in which manifests and file names cannot control the terminal, or begin a line that a CI system obeys."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in line)


def _print_json(report: Report) -> None:
    results = [one.data() for one in report.manifests]
    summary = {status: sum(one["status"] == status for one in results) for status in ("valid", "invalid", "skipped")}
    summary["warnings"] = sum(len(one["warnings"]) for one in results)
    print(json.dumps({"results": results, "unreadable": report.unreadable, "summary": summary}, indent=2))


def _print_junit(report: Report) -> None:
    by_file: dict[str, list[Manifest]] = {}
    for one in report.manifests:
        by_file.setdefault(one.file, []).append(one)
    failures = sum(bool(one.errors) for one in report.manifests)
    total = len(report.manifests) + len(report.unreadable)
    print('<?xml version="1.0" encoding="UTF-8"?>')
    print(f'<testsuites name="fakekube validate" tests="{total}" failures="{failures}" errors="{len(report.unreadable)}">')
    for file, found in by_file.items():
        failed, skipped = sum(bool(one.errors) for one in found), sum(bool(one.skipped) for one in found)
        shown = quoteattr(_printable(file))
        print(f'  <testsuite name={shown} tests="{len(found)}" failures="{failed}" errors="0" skipped="{skipped}">')
        for one in found:
            name = quoteattr(_printable(one.title or "document"))
            print(f'    <testcase classname={shown} name={name} line="{one.line}">')
            for text in one.errors:
                print(f"      <failure message={quoteattr(_printable(text))}>{escape(_printable(text))}</failure>")
            if one.skipped:
                print(f"      <skipped message={quoteattr(_printable(one.skipped))}/>")
            if one.warnings:
                print(f"      <system-out>{escape(_printable(chr(10).join(one.warnings)))}</system-out>")
            print("    </testcase>")
        print("  </testsuite>")
    if report.unreadable:
        count = len(report.unreadable)
        print(f'  <testsuite name="unreadable" tests="{count}" failures="0" errors="{count}">')
        for text in report.unreadable:
            print(f'    <testcase classname="unreadable" name={quoteattr(_printable(text))}>')
            print(f"      <error message={quoteattr(_printable(text))}/>")
            print("    </testcase>")
        print("  </testsuite>")
    print("</testsuites>")


def _printable(text: str) -> str:
    """Returns a text without the characters that XML does not have."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)


_PRINTERS: Final = {"text": _print_text, "json": _print_json, "junit": _print_junit}
