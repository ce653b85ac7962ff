"""The service account controller: creates the ServiceAccount `default` in every namespace.

Specified by: pkg/controller/serviceaccount/serviceaccounts_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_namespace_terminating
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key, Reconciler

__all__ = ["ServiceAccountController"]

NAME = "default"


class ServiceAccountController(Reconciler):
    """Creates the account of a new namespace, and creates it again when it is deleted."""

    name = "serviceaccount-controller"
    watches = ("namespaces", "serviceaccounts")

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "namespaces":
            return () if event_type == "DELETED" else (Key("", metadata["name"]),)
        if event_type == "DELETED" and metadata["name"] == NAME:
            return (Key("", metadata["namespace"]),)
        return ()

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return resource == "namespaces" or (obj is old and obj["metadata"]["name"] == NAME)

    def reconcile(self, key: Key) -> None:
        namespace = self.client.get("namespaces", key.name)
        if namespace["status"].get("phase") == "Terminating":
            return
        account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": NAME, "namespace": key.name}}
        try:
            self.client.create(account)
        except ApiError as error:
            if error.reason != "AlreadyExists" and not is_namespace_terminating(error):
                raise
