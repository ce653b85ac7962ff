"""The endpoints of the control API with which the page applies an edited object, and sends a request again.

    POST objects               {"yaml": "…", "dryRun": false, "force": false}
    POST requests/N/repeat

The object is applied by server-side apply with the field manager `fakekube-page`; its resourceVersion, if it has one, is a
precondition. Errors are a list of paths and messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.codecs import yaml
from fakekube.apimachinery.codecs.errors import DecodeError
from fakekube.apimachinery.patch.errors import APPLY_YAML
from fakekube.cluster.control.members import BadMembers
from fakekube.controllers.client import ApiError, UnknownResource

if TYPE_CHECKING:
    from fakekube.cluster import Cluster


Answer = tuple[int, Any]

FIELD_MANAGER: Final = "fakekube-page"
_AGENT: Final = "fakekube-page"
#: Verbs of requests that are streams, and those of calls of webhooks.
_NOT_REPEATED: Final = frozenset({"watch", "connect", "proxy", "call"})
_MAX_BYTES: Final = 3 << 20


def apply_object(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    obj = _object_in(members["yaml"])
    dry_run, force = (_flag(members, name) for name in ("dryRun", "force"))
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


def _flag(members: Mapping[str, Any], name: str) -> bool:
    value = members.get(name, False)
    if not isinstance(value, bool):
        raise BadMembers(f"member {name!r} must be true or false")
    return value


def _causes(problem: ApiError) -> list[dict[str, str]]:
    """Returns the errors of a Status by path; a conflict names the fields of other managers."""
    causes = (problem.status.get("details") or {}).get("causes") or []
    return [{"path": str(one.get("field", "")), "message": str(one.get("message", ""))} for one in causes]
