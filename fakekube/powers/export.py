"""Objects without what belongs to one cluster: manifests that another cluster can load, and forms for golden files and snapshots.

A normalised object is equal in every run. What differs by chance gets a stable name: uids `uid-1`, resourceVersions `revision-1`,
suffixes of generated names `generated-1` (for each prefix), addresses `clusterip-1`, `podip-1`, ports `nodeport-1`, tokens and
certificates `token-1`, `pem-1`. The numbers follow the order of first appearance, and references have the same name as what they
refer to. All times are `time`, because whether two of them are equal is chance as well. Endpoints and EndpointSlices have no
generation and no time of their last trigger, which depend on how many changes of pods their controllers met at once.

Invariants: an export contains no field that the exported cluster assigned (uids, revisions, timestamps, managedFields, and those
of `assigned`), and no object that every cluster makes itself. The order of normalised objects, and so the numbers, do not depend
on what is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from fakekube.apimachinery.codecs import json, yaml
from fakekube.apis.well_known import ENDPOINTS_LAST_CHANGE_TRIGGER_TIME, ROOT_CA_CERT_CONFIG_MAP_NAME
from fakekube.base.objects import Object, group_resource
from fakekube.powers.assigned import is_made_by_every_server, without_assigned
from fakekube.powers.redaction import without_secret_data

if TYPE_CHECKING:
    from fakekube.controllers.client.client import RESTMapping


#: Resources that an export omits by default: controllers create their objects in every cluster, or they record the past.
NOT_EXPORTED = frozenset(
    {"events", "events.events.k8s.io", "endpoints", "endpointslices.discovery.k8s.io", "leases.coordination.k8s.io"}
)

#: ConfigMaps with the certificate authorities of a cluster, which every cluster makes for itself.
_OWN_AUTHORITIES = frozenset({ROOT_CA_CERT_CONFIG_MAP_NAME, "extension-apiserver-authentication"})

#: What has to come before all others, and what after them: a webhook that nobody serves refuses what follows.
_ORDER: Final = {
    "CustomResourceDefinition": -3,
    "Namespace": -2,
    "PriorityClass": -1,
    "RuntimeClass": -1,
    "ServiceAccount": -1,
    "StorageClass": -1,
    "MutatingWebhookConfiguration": 1,
    "ValidatingWebhookConfiguration": 1,
}

#: Fields of metadata that the API server assigns.
_NOT_EXPORTED_METADATA = frozenset(
    {
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    }
)


class Reader(Protocol):
    """The part of a client that an export uses; `client.Client` and `controllers.client.remote.RemoteClient` have it."""

    def resource(self, name: str, /) -> RESTMapping:
        """Returns the resource for a name that kubectl accepts. Raises UnknownResource."""

    def listable_resources(self) -> Sequence[RESTMapping]:
        """Returns one version of every resource whose objects are stored."""

    def path(self, resource: RESTMapping, namespace: str | None = None, /) -> str:
        """Returns the path of a collection."""

    def call(self, method: str, path: str, /) -> Object:
        """Sends a request and returns the object in the response. Raises ApiError."""


def export(client: Reader, *, namespace: str | None = None, kinds: Sequence[str] = (), redact: bool = True) -> list[Object]:
    """Returns the objects of a cluster in a form that another one can load: definitions and namespaces first, webhooks last.

    Args:
        client: reads the cluster.
        namespace: only objects in this namespace; by default all.
        kinds: resources as kubectl names them; by default all except events, endpoints and leases.
        redact: leave out the data of Secrets.

    Raises ApiError and UnknownResource.
    """
    found: list[Object] = []
    for resource in _select_resources(client, kinds, namespace):
        found += [_export_object(obj, redact) for obj in _read(client, resource, namespace) if not _is_own(obj)]
    return sorted(found, key=lambda obj: _ORDER.get(obj["kind"], 0))


def _select_resources(client: Reader, kinds: Sequence[str], namespace: str | None) -> list[RESTMapping]:
    """Returns the resources of these names, by default all that are exported; with a namespace only those in namespaces."""
    if kinds:
        wanted = [client.resource(name) for name in kinds]
    else:
        every = client.listable_resources()
        wanted = [one for one in every if group_resource(one.group, one.plural) not in NOT_EXPORTED]
    return [one for one in wanted if namespace is None or one.namespaced]


def _read(client: Reader, resource: RESTMapping, namespace: str | None) -> list[Object]:
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return [{**kind, **item} for item in client.call("GET", client.path(resource, namespace))["items"]]


def _is_own(obj: Object) -> bool:
    """Reports whether every cluster has an object of this name, or it only has the certificate authority of its cluster."""
    return is_made_by_every_server(obj) or (obj["kind"] == "ConfigMap" and obj["metadata"]["name"] in _OWN_AUTHORITIES)


def _export_object(obj: Object, redact: bool) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _NOT_EXPORTED_METADATA}
    exported = without_assigned({**obj, "metadata": metadata})
    return without_secret_data(exported) if redact else exported


def as_yaml(objects: Sequence[Object]) -> bytes:
    """Encodes objects as a stream of YAML documents."""
    return b"---\n".join(yaml.dumps(obj) for obj in objects)


def as_list(objects: Sequence[Object]) -> bytes:
    """Encodes objects as a v1 List in JSON."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}) + b"\n"


# --- Objects in a form that is equal in every run ---------------------------------------------------------------------


TIME: Final = "time"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
#: What is recognised in every string: the kind of the name → the pattern; groups that are not captured stay.
_PATTERNS: Final[Mapping[str, str]] = {
    "token": r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+|ZXlK[\w+/=]{100,}",
    "pem": r"-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----\n?|LS0tLS1CRUdJTi[\w+/=]+",
    "uid": r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    "volume": r"(?<=\bkube-api-access-)[a-z0-9]{5}\b",
    "container": r"(?<=\bcontainerd://)[0-9a-f]{64}\b",
}
_CRON_JOB: Final = re.compile(r"(.+-)\d{8}")
#: Resources whose generated names and addresses are in others.
_REFERRED: Final = ("pods", "services", "jobs")
#: The fields of ports that are allocated, in the order in which they are looked for.
_PORTS: Final = frozenset({"nodePort", "healthCheckNodePort"})

Label = Callable[[str, str], str]
"""(kind, value): returns the name that replaces the value."""


def normalise(
    client: Reader, *, kinds: Sequence[str] | None = None, namespace: str | None = None, managed_fields: bool = False
) -> list[Object]:
    """Returns the objects of a cluster with stable names in the place of what differs by chance.

    Args:
        client: reads the cluster.
        kinds: resources as kubectl names them; by default all except events, endpoints and leases.
        namespace: only objects in this namespace; by default all.
        managed_fields: keep metadata.managedFields.

    Raises ApiError and UnknownResource.
    """
    found: list[Object] = []
    if kinds:  # names and addresses of these may be in others
        wanted = {client.resource(name).plural for name in kinds}
        others = [one for name in _REFERRED if name not in wanted for one in _read(client, client.resource(name), namespace)]
    else:
        others = []
    for resource in _select_resources(client, kinds or (), namespace):
        found += _read(client, resource, namespace)
    return normalise_objects(found, managed_fields=managed_fields, others=others)


def normalise_objects(objects: Iterable[Object], *, managed_fields: bool = False, others: Iterable[Object] = ()) -> list[Object]:
    """Returns objects with stable names in the place of what differs by chance; see the module.

    Args:
        objects: with apiVersion and kind.
        managed_fields: keep metadata.managedFields.
        others: objects to which the given ones may refer.
    """
    given = [_without_batching(obj) for obj in objects]
    if not managed_fields:
        given = [{**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}} for obj in given]
    given.sort(key=_revision)  # what is equal but for its names stays in the order of its latest write
    values = _Values([*given, *others])
    pods = [one for one in (*given, *sorted(others, key=_revision)) if one.get("kind") == "Pod"]
    ranks = {pod["metadata"].get("uid", ""): rank for rank, (_, pod) in enumerate(values.in_order(pods))}
    masked = values.in_order(_with_ordered_endpoints(obj, ranks) for obj in given)
    labels: dict[tuple[str, str], str] = {}
    counts: dict[str, int] = {}

    def number(kind: str, value: str) -> str:
        label = labels.get((kind, value))
        if label is None:
            counts[kind] = counts.get(kind, 0) + 1
            label = labels[kind, value] = f"{kind}-{counts[kind]}"
        return label

    return [values.replace(obj, number) for _, obj in masked]


class _Values:
    """The values in a set of objects that differ by chance."""

    def __init__(self, objects: Sequence[Object]) -> None:
        self._exact: dict[str, tuple[str, str]] = {}
        """Value → the kind of its name, and what stays before it."""
        for obj in objects:
            owners = {one["kind"] for one in obj["metadata"].get("ownerReferences") or ()}
            self._add_generated_name(obj["metadata"], owners, is_event=obj.get("kind") == "Event")
            self._add_addresses(obj)
        names = sorted(self._exact, key=len, reverse=True)
        exact = rf"(?<![\w.-])(?:{'|'.join(map(re.escape, names))})(?!\w)" if names else r"(?!)"
        patterns = {"exact": exact, **_PATTERNS}
        self._pattern = re.compile("|".join(f"(?P<{kind}>{text})" for kind, text in patterns.items()))
        uids = {obj["metadata"].get("uid", "") for obj in objects}
        self._plain_uids = {uid.replace("-", ""): uid for uid in uids if uid}

    def _add_generated_name(self, metadata: Mapping[str, Any], owners: set[str], *, is_event: bool) -> None:
        name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
        if prefix and name.startswith(prefix) and "StatefulSet" not in owners:  # its pods have numbers
            self._exact[name] = ("generated", prefix)
        elif "CronJob" in owners and (of_cron_job := _CRON_JOB.fullmatch(name)):
            self._exact[name] = ("generated", of_cron_job[1])
        elif is_event:
            self._exact[name] = ("event", "")

    def _add_addresses(self, obj: Object) -> None:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if obj.get("kind") == "Service":
            for ip in spec.get("clusterIPs") or ():
                if ip != "None":
                    self._exact[ip] = ("clusterip", "")
        elif obj.get("kind") == "Pod":
            for one in status.get("podIPs") or ():
                self._exact.setdefault(one["ip"], ("podip", ""))

    def in_order(self, objects: Iterable[Object]) -> list[tuple[Object, Object]]:
        """Returns objects in an order that does not depend on chance, each after its form without what differs by chance."""
        masked = [(self.replace(obj, lambda kind, _value: kind), obj) for obj in objects]
        return sorted(masked, key=lambda pair: _place(pair[0]))

    def replace(self, value: Any, label: Label, field: str = "") -> Any:
        """Returns a value of JSON with names in the place of what differs by chance."""
        if isinstance(value, dict):
            return {name: self.replace(value[name], label, name) for name in sorted(value)}
        if isinstance(value, list):
            return [self.replace(one, label, field) for one in value]
        if isinstance(value, str):
            return self._replace_text(value, label, field)
        if field in _PORTS and isinstance(value, int) and value:
            return label("nodeport", str(value))
        return value

    def _replace_text(self, text: str, label: Label, field: str) -> str:
        if field == "resourceVersion":
            return label("revision", text)
        if text in self._plain_uids:
            return label("uid", self._plain_uids[text])

        def name_of(match: re.Match[str]) -> str:
            kind, found = match.lastgroup or "", match[0]
            if kind != "exact":
                return label(kind, found)
            kind, prefix = self._exact[found]
            prefix = self._pattern.sub(name_of, prefix)  # it may be a generated name as well
            return prefix + label(f"{prefix}{kind}" if prefix else kind, found).removeprefix(prefix)

        return self._pattern.sub(name_of, _TIME.sub(TIME, text))


def _without_batching(obj: Object) -> Object:
    """Returns the object; if it has endpoints, without what depends on how many changes of pods were met at once."""
    if obj.get("kind") not in ("Endpoints", "EndpointSlice"):
        return obj
    metadata = {name: value for name, value in obj["metadata"].items() if name not in ("annotations", "generation")}
    annotations = {**(obj["metadata"].get("annotations") or {})}
    annotations.pop(ENDPOINTS_LAST_CHANGE_TRIGGER_TIME, None)
    return {**obj, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}


def _with_ordered_endpoints(obj: Object, ranks: Mapping[str, int]) -> Object:
    """Returns the object; if it has endpoints, which are in the order of their addresses, in the order of their pods.

    Args:
        obj: the object.
        ranks: uid of a pod → its position.
    """

    def in_order(addresses: Iterable[Object]) -> list[Object]:
        return sorted(addresses, key=lambda one: ranks.get((one.get("targetRef") or {}).get("uid", ""), len(ranks)))

    if obj.get("kind") == "EndpointSlice" and obj.get("endpoints"):
        return {**obj, "endpoints": in_order(obj["endpoints"])}
    if obj.get("kind") != "Endpoints":
        return obj
    lists = ("addresses", "notReadyAddresses")
    subsets = [{**one, **{name: in_order(one[name]) for name in lists if one.get(name)}} for one in obj.get("subsets") or ()]
    return {**obj, "subsets": subsets} if subsets else obj


def _revision(obj: Object) -> int:
    text = obj["metadata"].get("resourceVersion", "")
    return int(text) if text.isdigit() else 0


def _place(obj: Object) -> tuple[str, str, str, str, bytes]:
    metadata = obj["metadata"]
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return group, str(obj.get("kind", "")), metadata.get("namespace", ""), metadata.get("name", ""), json.dumps(obj)
