"""The endpoints of the control API for the page: what there is, what happened, and its changes.

    GET info
    GET rows/requests          ?since=&until=&before=&limit=&own=
    GET rows/changes           the same, and ?resource=&namespace=&name=&paths=true
    GET rows/objects           ?at=&kinds=&namespace=&after=&limit=
    GET requests/N             one request with bodies
    POST requests/N/repeat
    GET changes/REV            the object before and after a change, and what differs
    GET compare                ?from=&to=&resource=&namespace=&name=
    GET findings
    GET scenario               what is practised in the cluster: tasks, hints, and what is still missing
    POST trace                 {"redact": true}: a trace file
    GET live                   ?requests=&changes=&marks=: what happens, as JSON lines
    GET marks                  ?since=
    POST marks                 {"text": "scaled to 3"}
    GET objects/RESOURCE/NAMESPACE/NAME   ?at=
    POST objects               {"yaml": "…", "dryRun": false, "force": false}

Each function is the `answer` of an `Endpoint`, as in `cluster.control.powers`. Rows are columns (`powers.columns`). The object of
POST objects is applied by server-side apply with the field manager `fakekube-page`; its resourceVersion, if it has one, is a
precondition. Errors are a list of paths and messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.codecs import DecodeError, yaml
from fakekube.apimachinery.patch import APPLY_YAML
from fakekube.cluster.control.members import BadMembers, boolean_member
from fakekube.cluster.control.powers import NEGATIVE_LIMIT, NUMBER, Raw, parse_flag
from fakekube.controllers.client import ApiError, UnknownResource
from fakekube.powers.columns import revision_value
from fakekube.store import Compacted, FutureRevision

if TYPE_CHECKING:
    from fakekube.cluster import Cluster


Answer = tuple[int, Any]
Members = Mapping[str, Any]

_MAX_KINDS = 1_000


def read_integer(members: Members, name: str, default: int | None = None) -> int | None:
    """Returns a parameter that is a whole number. Raises BadMembers."""
    text = members.get(name)
    if text is None or text == "":
        return default
    if not NUMBER.fullmatch(text):
        raise BadMembers(f"parameter {name!r} must be a whole number")
    return int(text)


def flag(members: Members, name: str, default: bool = False) -> bool:
    """Returns a parameter that is true or false. Raises BadMembers."""
    return parse_flag(members.get(name, "true" if default else "false"), name)


def _span(members: Members, first: int) -> dict[str, Any]:
    limit = read_integer(members, "limit", 1_000)
    if limit is None or limit < 0:
        raise BadMembers(NEGATIVE_LIMIT)
    return {
        "since": read_integer(members, "since", first),
        "until": read_integer(members, "until"),
        "before": read_integer(members, "before"),
        "limit": limit,
    }


def get_info(cluster: Cluster, _members: Members) -> Answer:
    return 200, cluster.describe()


def list_requests(cluster: Cluster, members: Members) -> Answer:
    return 200, cluster.rows.requests(**_span(members, -1), own=flag(members, "own", default=True))


def list_changes(cluster: Cluster, members: Members) -> Answer:
    namespace = members.get("namespace")
    return 200, cluster.rows.changes(
        **_span(members, 0),
        resource=members.get("resource", ""),
        namespace="" if namespace == "-" else namespace,
        name=members.get("name", ""),
        with_paths=flag(members, "paths"),
    )


def list_objects(cluster: Cluster, members: Members) -> Answer:
    kinds = [kind for kind in members.get("kinds", "").split(",") if kind]
    if len(kinds) > _MAX_KINDS:
        raise BadMembers(f"parameter 'kinds' has more than {_MAX_KINDS} names")
    limit = read_integer(members, "limit", 5_000)
    if limit is None or limit < 1:
        raise BadMembers("parameter 'limit' must be positive")
    try:
        found = cluster.rows.objects(
            read_integer(members, "at"),
            kinds=kinds,
            namespace=members.get("namespace"),
            after=members.get("after", ""),
            limit=min(limit, 5_000),
        )
    except (Compacted, FutureRevision) as problem:
        return _not_kept(problem)
    return 200, found


def _not_kept(problem: Compacted | FutureRevision) -> Answer:
    if isinstance(problem, Compacted):
        return 410, {"error": "the revision is not kept any more", "oldest": revision_value(problem.revision)}
    return 404, {"error": str(problem)}


def get_request(cluster: Cluster, members: Members) -> Answer:
    found = cluster.rows.request(members["number"])
    if found is None:
        raise LookupError(f"request {members['number']} is not recorded, or was dropped")
    return 200, found


def get_change(cluster: Cluster, members: Members) -> Answer:
    found = cluster.rows.change(int(members["revision"]))
    if found is None:
        raise LookupError(f"revision {members['revision']} is no change of an object, or was dropped")
    return 200, found


def get_object(cluster: Cluster, members: Members) -> Answer:
    namespace = members["namespace"]
    try:
        found = cluster.rows.object(
            members["resource"], "" if namespace == "-" else namespace, members["name"], read_integer(members, "at")
        )
    except UnknownResource as problem:
        raise LookupError(str(problem)) from None
    except (Compacted, FutureRevision) as problem:
        return _not_kept(problem)
    if found is None:
        raise LookupError(f"there is no {members['resource']} {namespace}/{members['name']} at this revision")
    return 200, found


def list_findings(cluster: Cluster, _members: Members) -> Answer:
    return 200, {"items": [one.data() for one in cluster.findings()]}


def get_scenario(cluster: Cluster, _members: Members) -> Answer:
    found = cluster.scenario()
    if found is None:
        raise LookupError("no scenario is played in this cluster")
    return 200, found


def compare(cluster: Cluster, members: Members) -> Answer:
    first, last = read_integer(members, "from"), read_integer(members, "to")
    if first is None or last is None:
        raise BadMembers("parameters 'from' and 'to' are required")
    namespace = members.get("namespace")
    try:
        found = cluster.compare(
            first,
            last,
            namespace="" if namespace == "-" else namespace,
            resource=members.get("resource", ""),
            name=members.get("name", ""),
        )
    except (Compacted, FutureRevision) as problem:
        return _not_kept(problem)
    return 200, found.data()


def follow(cluster: Cluster, members: Members) -> Answer:
    found = {name: read_integer(members, name, default) for name, default in (("requests", -1), ("changes", 0), ("marks", 0))}
    return 200, cluster.live(**{name: number or 0 for name, number in found.items()})


def list_marks(cluster: Cluster, members: Members) -> Answer:
    since = read_integer(members, "since", 0)
    return 200, cluster.mark_rows(since or 0)


def create_mark(cluster: Cluster, members: Members) -> Answer:
    mark = cluster.mark(members["text"])
    return 201, {"number": mark.number, "revision": revision_value(mark.revision), "text": mark.text}


def make_trace(cluster: Cluster, members: Members) -> Answer:
    raw = Raw(cluster.trace_html(redact=boolean_member(members, "redact", default=True)).encode())
    raw.content_type = "text/html; charset=utf-8"
    raw.file_name = "trace.html"
    return 200, raw


FIELD_MANAGER: Final = "fakekube-page"
_AGENT: Final = "fakekube-page"
#: Verbs of requests that are streams, and those of calls of webhooks.
_NOT_REPEATED: Final = frozenset({"watch", "connect", "proxy", "call"})
_MAX_BYTES: Final = 3 << 20


def apply_object(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    obj = _object_in(members["yaml"])
    dry_run, force = (boolean_member(members, name) for name in ("dryRun", "force"))
    client = cluster.client_of(_AGENT)
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    try:
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        resource = client.resource(f"{obj['kind']}.{version}.{group}" if group else str(obj["kind"]))
        path = client.path(resource, metadata.get("namespace") or "default", str(metadata["name"]))
        query = {"fieldManager": FIELD_MANAGER, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
        found = client.call("PATCH", path, {**obj, "metadata": metadata}, query, content_type=APPLY_YAML)
    except UnknownResource as problem:
        raise BadMembers(str(problem)) from None
    except ApiError as problem:
        return 422 if problem.code == 422 else problem.code, {"error": str(problem), "errors": _causes(problem)}
    return 200, {"object": found, "dryRun": dry_run}


def repeat_request(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    """Sends a recorded request again, as an administrator."""
    found = next((one for one in cluster.requests.where(own=True) if one.number == members["number"]), None)
    if found is None:
        raise LookupError(f"request {members['number']} is not recorded, or was dropped")
    if found.verb in _NOT_REPEATED:
        raise BadMembers(f"a {found.verb} is not sent again")
    answer = cluster.client_of(_AGENT).request(
        found.method, found.path, found.raw_body or None, found.query, content_type=found.content_type
    )
    return 200, {"status": answer.code, "number": cluster.requests.mark()}


def _object_in(text: str) -> dict[str, Any]:
    """Returns the object in a text. Raises BadMembers."""
    if len(text) > _MAX_BYTES:
        raise BadMembers(f"member 'yaml' has more than {_MAX_BYTES} characters")
    try:
        obj, _ = yaml.loads(text.encode("utf-8", "surrogatepass"))
    except (DecodeError, RecursionError) as problem:
        raise BadMembers(f"member 'yaml' is no YAML: {problem}") from None
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(obj, dict) or not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise BadMembers("member 'yaml' must be one object with metadata.name")
    if not isinstance(obj.get("kind"), str) or not isinstance(obj.get("apiVersion"), str):
        raise BadMembers("member 'yaml' must have kind and apiVersion")
    return obj


def _causes(problem: ApiError) -> list[dict[str, str]]:
    """Returns the errors of a Status by path; a conflict names the fields of other managers."""
    causes = (problem.status.get("details") or {}).get("causes") or []
    return [{"path": str(one.get("field", "")), "message": str(one.get("message", ""))} for one in causes]
