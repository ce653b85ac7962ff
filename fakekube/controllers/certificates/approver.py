"""Approves the requests of kubelets for client certificates, if the authorizer allows them.

A kubelet may request its own certificate (create certificatesigningrequests/selfnodeclient), or that of a node that bootstraps
(…/nodeclient). Requests that are not allowed are checked again when ClusterRoles or their bindings change.

Specified by: pkg/controller/certificates/approver/sarapprove.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.certificates import requests
from fakekube.controllers.certificates.requests import RESOURCE
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key, Reconciler

__all__ = ["CSRApprovingController"]

SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
RBAC = ("clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io")
_SELF = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
_NODE = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


class CSRApprovingController(Reconciler):
    """Approves requests of the signer kube-apiserver-client-kubelet."""

    name = "certificatesigningrequest-approving-controller"
    client_name = "certificate-controller"
    watches = (RESOURCE,)

    def __init__(self) -> None:
        self._denied: set[Key] = set()

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if resource != RESOURCE:
            return tuple(self._denied)
        key = Key("", obj["metadata"]["name"])
        if event_type == "DELETED":
            self._denied.discard(key)
            return ()
        return (key,)

    def reconcile(self, key: Key) -> None:
        self._denied.discard(key)
        obj = self.cache.get(RESOURCE, "", key.name)
        if obj is None or obj["spec"].get("signerName") != SIGNER or (obj.get("status") or {}).get("certificate"):
            return
        if requests.has_condition(obj, "Approved") or requests.has_condition(obj, "Denied"):
            return
        request = requests.parse(obj)
        names = requests.names_of(request) if request is not None else None
        if names is None or requests.validate_kubelet_client(names, set(obj["spec"].get("usages") or ())):
            return
        own = obj["spec"].get("username") == names.common_name
        for subresource, message in (_SELF, _NODE) if own else (_NODE,):
            if self._is_allowed(obj, subresource):
                self._approve(obj, message)
                return
        self._denied.add(key)
        for name in RBAC:
            self.also_watch(name)

    def _is_allowed(self, obj: Object, subresource: str) -> bool:
        spec = obj["spec"]
        user = {"user": spec.get("username", ""), **{name: spec[name] for name in ("uid", "groups", "extra") if name in spec}}
        attributes = {
            "group": "certificates.k8s.io",
            "resource": "certificatesigningrequests",
            "verb": "create",
            "subresource": subresource,
            "version": "*",
        }
        review = self.client.create(
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {**user, "resourceAttributes": attributes},
            }
        )
        return bool(review["status"].get("allowed"))

    def _approve(self, obj: Object, message: str) -> None:
        status = obj.get("status") or {}
        conditions = [*(status.get("conditions") or ()), requests.new_condition("Approved", "AutoApproved", message)]
        self.client.update({**obj, "status": {**status, "conditions": conditions}}, subresource="approval")
