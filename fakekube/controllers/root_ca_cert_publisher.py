"""The root CA certificate publisher writes the cluster's CA into the ConfigMap kube-root-ca.crt of each namespace.

Specified by: pkg/controller/certificates/rootcacertpublisher/publisher.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fakekube.apis.well_known import ROOT_CA_CERT_CONFIG_MAP_NAME
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_namespace_terminating
from fakekube.controllers.reconciler import Key, Reconciler

_ANNOTATIONS: Final = {
    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across "
    "distributions of Kubernetes clusters."
}


class RootCertificatePublisher(Reconciler):
    """Creates the ConfigMap, and restores it when it is changed or deleted."""

    name = "root-ca-certificate-publisher-controller"
    watches = ("namespaces", "configmaps")

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "namespaces":
            return () if event_type == "DELETED" else (Key("", metadata["name"]),)
        return (Key("", metadata["namespace"]),) if metadata["name"] == ROOT_CA_CERT_CONFIG_MAP_NAME else ()

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return resource == "namespaces" or obj["metadata"]["name"] == ROOT_CA_CERT_CONFIG_MAP_NAME

    def reconcile(self, key: Key) -> None:
        namespace = self.client.get("namespaces", key.name)
        if namespace["status"].get("phase") == "Terminating":
            return
        config_map: Object = {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": ROOT_CA_CERT_CONFIG_MAP_NAME, "namespace": key.name, "annotations": _ANNOTATIONS},
            "data": {"ca.crt": self.context.certificate_authority},
        }
        try:
            found = self.client.get("configmaps", ROOT_CA_CERT_CONFIG_MAP_NAME, namespace=key.name)
        except ApiError as error:
            if error.code != 404:
                raise
            self._create(config_map)
            return
        metadata = found["metadata"]
        annotations = metadata.get("annotations") or {}
        if found.get("data") != config_map["data"] or not annotations.keys() >= _ANNOTATIONS.keys():
            metadata = {**metadata, "annotations": {**annotations, **_ANNOTATIONS}}
            self.client.update({**found, "metadata": metadata, "data": config_map["data"]})

    def _create(self, config_map: Object) -> None:
        """Creates the ConfigMap, unless its namespace has begun to terminate. Raises ApiError."""
        try:
            self.client.create(config_map)
        except ApiError as error:
            if not is_namespace_terminating(error):
                raise
