"""The Node authorizer: allows kubelets what they need, and reads only of objects that their own pods use.

A kubelet's user is system:node:NAME in the group system:nodes. Most requests are authorized by the rules of the
cluster role system:node; objects that pods use need a path to the node in `NodeGraph`.

Specified by: k8s.io/kubernetes/plugin/pkg/auth/authorizer/node (node_authorizer.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fakekube.apiserver.auth import identities
from fakekube.apiserver.auth.authorization import ALLOWED, NO_OPINION, Attributes, Decision, ResolvedRules, Rule
from fakekube.apiserver.auth.node_graph import NodeGraph
from fakekube.apiserver.auth.rbac import rule_allows
from fakekube.apiserver.endpoints.request import User

#: Resource → verbs that a kubelet may use on its own object.
_OWN_OBJECT: Final = frozenset({"get", "create", "update", "patch", "delete"})
_NODE_LEASES: Final = "kube-node-lease"


class NodeAuthorizer:
    """Authorizes kubelets, and has no opinion about other users.

    Args:
        graph: The relations between objects and nodes.
        rules: The rules of the cluster role system:node.
    """

    def __init__(self, graph: NodeGraph, rules: Sequence[Rule]) -> None:
        self._graph = graph
        self._rules = rules
        self._special: Mapping[tuple[str, str], Callable[[str, Attributes], Decision]] = {
            ("", "secrets"): self._read_namespaced, ("", "configmaps"): self._read_namespaced,
            ("", "persistentvolumeclaims"): self._claim, ("", "persistentvolumes"): self._get,
            ("resource.k8s.io", "resourceclaims"): self._get, ("storage.k8s.io", "volumeattachments"): self._get,
            ("", "serviceaccounts"): self._service_account, ("coordination.k8s.io", "leases"): _lease,
            ("storage.k8s.io", "csinodes"): _csi_node, ("resource.k8s.io", "resourceslices"): self._resource_slice,
            ("", "nodes"): _node, ("", "pods"): self._pod,
        }  # fmt: skip

    def authorize(self, attributes: Attributes) -> Decision:
        """See `Authorizer.authorize`."""
        if identities.NODES not in attributes.user.groups or not identities.is_node_username(attributes.user.name):
            return NO_OPINION
        node = attributes.user.name[len(identities.NODE_PREFIX) :]
        if not node:
            return Decision(False, f'unknown node for user "{attributes.user.name}"')
        if attributes.is_resource_request:
            special = self._special.get((attributes.group, attributes.resource))
            if special is not None:
                return special(node, attributes)
        return ALLOWED if any(rule_allows(rule, attributes) for rule in self._rules) else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Reports that the rules of a node cannot be listed."""
        if identities.NODES not in user.groups or not identities.is_node_username(user.name):
            return ResolvedRules()
        return ResolvedRules((), True, "node authorizer does not support user rule resolution")

    # ------------------------------------------------------------ objects that pods use

    def _related(self, node: str, attributes: Attributes) -> Decision:
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
        return self._related(node, attributes)

    def _read_namespaced(self, node: str, attributes: Attributes) -> Decision:
        if attributes.verb not in ("get", "list", "watch"):
            return Decision(False, "can only read resources of this type")
        if attributes.subresource:
            return Decision(False, "cannot read subresource")
        if not attributes.namespace:
            return Decision(False, "can only read namespaced object of this type")
        return self._related(node, attributes)

    def _claim(self, node: str, attributes: Attributes) -> Decision:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return Decision(False, "can only get/update/patch this type")
        return self._related(node, attributes)

    def _service_account(self, node: str, attributes: Attributes) -> Decision:
        if attributes.verb == "get" and not attributes.subresource:
            return self._read_namespaced(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return Decision(False, "can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return Decision(False, "can only create token subresource of serviceaccount")
        return self._related(node, attributes)

    def _resource_slice(self, node: str, attributes: Attributes) -> Decision:
        if attributes.subresource:
            return Decision(False, "cannot authorize ResourceSlice subresources")
        if attributes.verb == "create":
            return ALLOWED
        if attributes.verb in ("get", "update", "patch", "delete"):
            return self._related(node, attributes)
        if attributes.verb in ("watch", "list", "deletecollection"):
            if _selects(attributes, "spec.nodeName", node):
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
                return self._related(node, attributes)
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
    if attributes.namespace != _NODE_LEASES:
        return Decision(False, f'can only access leases in the "{_NODE_LEASES}" system namespace')
    if attributes.verb != "create" and attributes.name != node:
        return Decision(False, "can only access node lease with the same name as the requesting node")
    return ALLOWED


def _csi_node(node: str, attributes: Attributes) -> Decision:
    if attributes.verb not in _OWN_OBJECT:
        return Decision(False, "can only get, create, update, patch, or delete a CSINode")
    if attributes.subresource:
        return Decision(False, "cannot authorize CSINode subresources")
    if attributes.verb != "create" and attributes.name != node:
        return Decision(False, "can only access CSINode with the same name as the requesting node")
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
