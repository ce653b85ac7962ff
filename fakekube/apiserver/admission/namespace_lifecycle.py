"""NamespaceLifecycle: rejects objects in missing namespaces, new objects in terminating ones, and the deletion of
three system namespaces.

Deletions are always allowed, so that a namespace can be emptied. Access reviews are allowed, too: their result must
not reveal whether a namespace exists.

Specified by: k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import status
from fakekube.apiserver.admission.plugin import CREATE, DELETE, Attributes, Operation, Plugin
from fakekube.apiserver.admission.refusals import forbidden

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
NAMESPACES = ("", "namespaces")
ACCESS_REVIEWS = ("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(Plugin):
    """See the module."""

    name = "NamespaceLifecycle"
    operations = frozenset({Operation.CREATE, Operation.UPDATE, Operation.DELETE})
    subresources = None

    def admit(self, attributes: Attributes) -> None:
        resource = (attributes.resource.group, attributes.resource.plural)
        if resource == NAMESPACES:
            if attributes.operation is DELETE and attributes.name in IMMORTAL:
                raise status.forbidden("", "namespaces", attributes.name, "this namespace may not be deleted")
            return
        if not attributes.namespace or attributes.operation is DELETE or resource == ACCESS_REVIEWS:
            return
        namespace = attributes.context.services.get("", "namespaces", "", attributes.namespace)
        if namespace is None:
            raise status.not_found("", "namespaces", attributes.namespace)
        if attributes.operation is CREATE and namespace.get("status", {}).get("phase") == "Terminating":
            self._refuse(attributes)

    @staticmethod
    def _refuse(attributes: Attributes) -> None:
        namespace = attributes.namespace
        problem = f"unable to create new content in namespace {namespace} because it is being terminated"
        error = forbidden(attributes, problem)
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        error.details = {**(error.details or {}), "causes": [cause]}
        raise error
