"""The Node authorizer: allows kubelets what they need, and reads only of objects that their own pods use.

A kubelet's user is system:node:NAME in the group system:nodes. Most requests are authorized by the rules of the cluster role
system:node; objects that pods use need a path to the node in `NodeGraph`. The graph is made of pods, persistent volumes, volume
attachments and resource slices, on its first use, and kept until one of them changes; it costs nothing without the Node
authorizer.

Specified by: k8s.io/kubernetes/plugin/pkg/auth/authorizer/node (node_authorizer.go, graph.go) and
pkg/api/persistentvolume/util.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apis.core.nodes import CSI_NODE_OF_OTHER_NODE, LEASE_OF_OTHER_NODE
from fakekube.apis.core.pods.visitor import claim_names, config_map_names, secret_names
from fakekube.apis.rest.cluster_access import Decision
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.well_known import MIRROR_POD_ANNOTATION_KEY, NAMESPACE_NODE_LEASE, NODE_USER_NAME_PREFIX, NODES_GROUP
from fakekube.apiserver.auth import identities
from fakekube.apiserver.auth.authorization import ALLOWED, NO_OPINION, Attributes, Observed, ResolvedRules, Rule
from fakekube.apiserver.auth.rbac import rule_allows
from fakekube.apiserver.endpoints.request import User
from fakekube.base.objects import group_resource

#: Group and plural of the resources that define relations.
RESOURCES: Final = (
    ("", "pods"),
    ("", "persistentvolumes"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceslices"),
)
#: The buckets of these resources.
BUCKETS: Final = tuple(group_resource(group, plural) for group, plural in RESOURCES)


_Object = tuple[str, str, str]
"""Plural, namespace and name."""

#: Source of a persistent volume → fields with a secret that kubelets use (a reference, or the name itself).
_PV_SECRET_SOURCES: Final = (
    *((source, "secretRef") for source in ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")),
    ("azureFile", "secretName"), ("csi", "nodePublishSecretRef"), ("csi", "nodeStageSecretRef"), ("csi", "nodeExpandSecretRef"),
)  # fmt: skip


class NodeGraph:
    """The graph of one cluster.

    Args:
        objects: reads `RESOURCES`.
    """

    def __init__(self, objects: Observed) -> None:
        self._objects = objects
        self._known: tuple[object, Mapping[_Object, frozenset[str]]] | None = None

    def has_path(self, node: str, plural: str, namespace: str, name: str) -> bool:
        """Reports whether there is a path from this object to the node."""
        version = self._objects.version
        if self._known is None or self._known[0] is not version:
            self._known = version, _nodes_of_objects(self._objects)
        return node in self._known[1].get((plural, namespace, name), ())


def _nodes_of_objects(objects: Observed) -> Mapping[_Object, frozenset[str]]:
    """Returns the nodes to which each object is related."""
    nodes: dict[_Object, set[str]] = {}
    for pod in objects.list("", "pods"):
        meta, node = pod["metadata"], pod["spec"].get("nodeName", "")
        if not node:
            continue
        for plural, name in (("pods", meta["name"]), *_visit_pod_objects(pod)):
            nodes.setdefault((plural, meta["namespace"], name), set()).add(node)
    for volume in objects.list("", "persistentvolumes"):
        claim = volume["spec"].get("claimRef")
        found = nodes.get(("persistentvolumeclaims", claim.get("namespace", ""), claim.get("name", ""))) if claim else None
        if not found:
            continue
        nodes.setdefault(("persistentvolumes", "", volume["metadata"]["name"]), set()).update(found)
        for namespace, secret in _secrets_of_volume(volume["spec"], claim):
            nodes.setdefault(("secrets", namespace, secret), set()).update(found)
    for group, plural in RESOURCES[2:]:
        for obj in objects.list(group, plural):
            node = obj["spec"].get("nodeName", "")
            if node:
                meta = obj["metadata"]
                nodes.setdefault((plural, meta.get("namespace", ""), meta["name"]), set()).add(node)
    return {key: frozenset(found) for key, found in nodes.items()}


def _visit_pod_objects(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields resource and name of the objects that a pod uses; mirror pods use none."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    if MIRROR_POD_ANNOTATION_KEY in (meta.get("annotations") or {}):
        return
    if spec.get("serviceAccountName"):
        yield "serviceaccounts", spec["serviceAccountName"]
    yield from (("secrets", name) for name in secret_names(spec))
    yield from (("configmaps", name) for name in config_map_names(spec))
    yield from (("persistentvolumeclaims", name) for name in claim_names(spec, meta["name"]))
    for claim in spec.get("resourceClaims") or ():
        if claim.get("resourceClaimName"):
            yield "resourceclaims", claim["resourceClaimName"]
    for made in status.get("resourceClaimStatuses") or ():
        if made.get("resourceClaimName"):
            yield "resourceclaims", made["resourceClaimName"]
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    if extended:
        yield "resourceclaims", extended


def _secrets_of_volume(spec: Mapping[str, Any], claim: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields namespace and name of the secrets of a persistent volume; the default namespace is that of the claim."""
    for source, field in _PV_SECRET_SOURCES:
        holder = spec.get(source) or {}
        value = holder.get(field)
        if not value:
            continue
        if isinstance(value, str):
            yield holder.get("secretNamespace") or claim.get("namespace", ""), value
        else:
            yield value.get("namespace") or claim.get("namespace", ""), value.get("name", "")


#: Resource → verbs that a kubelet may use on its own object.
_OWN_OBJECT: Final = frozenset({"get", "create", "update", "patch", "delete"})


class NodeAuthorizer:
    """Authorizes kubelets, and has no opinion about other users.

    Args:
        graph: the relations between objects and nodes.
        rules: the rules of the cluster role system:node.
        selective: whether a node only reads its own Node, Pods and ResourceSlices (the feature gate AuthorizeNodeWithSelectors).
    """

    def __init__(self, graph: NodeGraph, rules: Sequence[Rule], *, selective: bool = True) -> None:
        self._graph = graph
        self._rules = rules
        self._selective = selective
        self._special: Mapping[tuple[str, str], Callable[[str, Attributes], Decision]] = {
            ("", "secrets"): self._read_namespaced, ("", "configmaps"): self._read_namespaced,
            ("", "persistentvolumeclaims"): self._claim, ("", "persistentvolumes"): self._get,
            ("resource.k8s.io", "resourceclaims"): self._get, ("storage.k8s.io", "volumeattachments"): self._get,
            ("", "serviceaccounts"): self._service_account, ("coordination.k8s.io", "leases"): _lease,
            ("storage.k8s.io", "csinodes"): _csi_node, ("resource.k8s.io", "resourceslices"): self._resource_slice,
            **({("", "nodes"): _node, ("", "pods"): self._pod} if selective else {}),
        }  # fmt: skip

    def authorize(self, attributes: Attributes) -> Decision:
        """See `Authorizer.authorize`."""
        if NODES_GROUP not in attributes.user.groups or not identities.is_node_username(attributes.user.name):
            return NO_OPINION
        node = attributes.user.name[len(NODE_USER_NAME_PREFIX) :]
        if not node:
            return Decision(False, f'unknown node for user "{attributes.user.name}"')
        if attributes.is_resource_request:
            special = self._special.get((attributes.group, attributes.resource))
            if special is not None:
                return special(node, attributes)
        return ALLOWED if any(rule_allows(rule, attributes) for rule in self._rules) else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Reports that the rules of a node cannot be listed."""
        if NODES_GROUP not in user.groups or not identities.is_node_username(user.name):
            return ResolvedRules()
        return ResolvedRules((), True, "node authorizer does not support user rule resolution")

    # --- Objects that pods use ----------------------------------------------------------------------------------------

    def _authorize_related(self, node: str, attributes: Attributes) -> Decision:
        if not attributes.name:
            return Decision(False, "No Object name found")
        if self._graph.has_path(node, attributes.resource, attributes.namespace, attributes.name):
            return ALLOWED
        return Decision(False, f"no relationship found between node '{node}' and this object")

    def _get(self, node: str, attributes: Attributes) -> Decision:
        if attributes.verb != "get":
            return Decision(False, "can only get individual resources of this type")
        if attributes.subresource:
            return Decision(False, "cannot get subresource")
        return self._authorize_related(node, attributes)

    def _read_namespaced(self, node: str, attributes: Attributes) -> Decision:
        if attributes.verb not in ("get", "list", "watch"):
            return Decision(False, "can only read resources of this type")
        if attributes.subresource:
            return Decision(False, "cannot read subresource")
        if not attributes.namespace:
            return Decision(False, "can only read namespaced object of this type")
        return self._authorize_related(node, attributes)

    def _claim(self, node: str, attributes: Attributes) -> Decision:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return Decision(False, "can only get/update/patch this type")
        return self._authorize_related(node, attributes)

    def _service_account(self, node: str, attributes: Attributes) -> Decision:
        if attributes.verb == "get" and not attributes.subresource:
            return self._read_namespaced(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return Decision(False, "can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return Decision(False, "can only create token subresource of serviceaccount")
        return self._authorize_related(node, attributes)

    def _resource_slice(self, node: str, attributes: Attributes) -> Decision:
        if attributes.subresource:
            return Decision(False, "cannot authorize ResourceSlice subresources")
        if attributes.verb == "create":
            return ALLOWED
        if attributes.verb in ("get", "update", "patch", "delete"):
            return self._authorize_related(node, attributes)
        if attributes.verb in ("watch", "list", "deletecollection"):
            if not self._selective or _selects(attributes, "spec.nodeName", node):
                return ALLOWED
            return Decision(False, "can only list/watch/deletecollection resourceslices with nodeName field selector")
        return Decision(
            False,
            "only the following verbs are allowed for a ResourceSlice: "
            "get, watch, list, create, update, patch, delete, deletecollection",
        )

    def _pod(self, node: str, attributes: Attributes) -> Decision:
        asked = (attributes.subresource, attributes.verb)
        if asked == ("", "get"):
            return self._get(node, attributes)
        if asked in (("", "list"), ("", "watch")):
            if _selects(attributes, "spec.nodeName", node):
                return ALLOWED
            if attributes.name:
                return self._authorize_related(node, attributes)
            return Decision(False, "can only list/watch pods with spec.nodeName field selector")
        return ALLOWED if asked in _PODS else NO_OPINION


#: Subresource of pods → verbs that a kubelet may use.
_PODS: Final = frozenset({("", "create"), ("", "delete"), ("status", "update"), ("status", "patch"), ("eviction", "create")})


def _selects(attributes: Attributes, field: str, value: str) -> bool:
    """Reports whether a field selector requires this value."""
    found = attributes.selectors
    return found is not None and any(one.field == field and one.operator == "=" and one.value == value for one in found.fields)


def _lease(node: str, attributes: Attributes) -> Decision:
    if attributes.verb not in _OWN_OBJECT:
        return Decision(False, "can only get, create, update, patch, or delete a node lease")
    if attributes.namespace != NAMESPACE_NODE_LEASE:
        return Decision(False, f'can only access leases in the "{NAMESPACE_NODE_LEASE}" system namespace')
    if attributes.verb != "create" and attributes.name != node:
        return Decision(False, LEASE_OF_OTHER_NODE)
    return ALLOWED


def _csi_node(node: str, attributes: Attributes) -> Decision:
    if attributes.subresource == "status" and from_minor(37):
        if not features.current().enabled("CSIVolumeHealth"):
            return Decision(False, "CSINode status access requires CSIVolumeHealth feature")
        if attributes.verb not in ("get", "update", "patch"):
            return Decision(False, "can only get, update, or patch CSINode status")
    elif attributes.verb not in _OWN_OBJECT:
        return Decision(False, "can only get, create, update, patch, or delete a CSINode")
    elif attributes.subresource:
        return Decision(False, "cannot authorize CSINode subresources")
    if attributes.verb != "create" and attributes.name != node:
        return Decision(False, CSI_NODE_OF_OTHER_NODE)
    return ALLOWED


def _node(node: str, attributes: Attributes) -> Decision:
    verb = attributes.verb
    if attributes.subresource == "status":
        return ALLOWED if verb in ("update", "patch") else NO_OPINION
    if attributes.subresource:
        return NO_OPINION
    if verb in ("create", "update", "patch"):
        return ALLOWED
    if verb not in ("get", "list", "watch"):
        return NO_OPINION
    if attributes.name == node:
        return ALLOWED
    if not attributes.name:
        return Decision(False, f"node '{node}' cannot read all nodes, only its own Node object")
    return Decision(False, f"node '{node}' cannot read '{attributes.name}', only its own Node object")
