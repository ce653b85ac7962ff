"""DefaultIngressClass: sets the default class of Ingresses without a class.

Specified by: plugin/pkg/admission/network/defaultingressclass.
"""

from __future__ import annotations

from fakekube.apis.well_known import ANNOTATION_INGRESS_CLASS
from fakekube.apiserver.admission.defaults import newest_default
from fakekube.apiserver.admission.plugin import Attributes, Operation, Plugin

GROUP = "networking.k8s.io"
DEFAULT_MARKS = ("ingressclass.kubernetes.io/is-default-class",)


class DefaultIngressClass(Plugin):
    """See the module."""

    name = "DefaultIngressClass"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({(GROUP, "ingresses")})

    def admit(self, attributes: Attributes) -> None:
        ingress = attributes.object
        assert ingress is not None
        spec = ingress.setdefault("spec", {})
        annotations = ingress.get("metadata", {}).get("annotations") or {}
        if spec.get("ingressClassName") is not None or ANNOTATION_INGRESS_CLASS in annotations:
            return
        found = newest_default(attributes.context.services.list(GROUP, "ingressclasses"), DEFAULT_MARKS)
        if found is not None:
            spec["ingressClassName"] = found["metadata"]["name"]
