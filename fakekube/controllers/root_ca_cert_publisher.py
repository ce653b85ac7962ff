"""The root CA certificate publisher: writes the ConfigMap kube-root-ca.crt with the cluster's CA into every namespace.

Specified by: pkg/controller/certificates/rootcacertpublisher/publisher.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.client import ApiError
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key, Reconciler

__all__ = ["RootCertificatePublisher"]

NAME = "kube-root-ca.crt"
_ANNOTATIONS = {
    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across "
    "distributions of Kubernetes clusters."
}


class RootCertificatePublisher(Reconciler):
    """Creates the ConfigMap, and restores it when it is changed or deleted."""

    name = "root-ca-certificate-publisher-controller"
    watches = ("namespaces", "configmaps")

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "namespaces":
            return () if event_type == "DELETED" else (Key("", metadata["name"]),)
        return (Key("", metadata["namespace"]),) if metadata["name"] == NAME else ()

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return resource == "namespaces" or obj["metadata"]["name"] == NAME

    def reconcile(self, key: Key) -> None:
        namespace = self.client.get("namespaces", key.name)
        if namespace["status"].get("phase") == "Terminating":
            return
        config_map = {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": NAME, "namespace": key.name, "annotations": _ANNOTATIONS},
            "data": {"ca.crt": self.context.certificate_authority},
        }
        try:
            found = self.client.get("configmaps", NAME, namespace=key.name)
        except ApiError as error:
            if error.code != 404:
                raise
            self.client.create(config_map)
            return
        metadata = found["metadata"]
        annotations = metadata.get("annotations") or {}
        if found.get("data") != config_map["data"] or not annotations.keys() >= _ANNOTATIONS.keys():
            metadata = {**metadata, "annotations": {**annotations, **_ANNOTATIONS}}
            self.client.update({**found, "metadata": metadata, "data": config_map["data"]})
