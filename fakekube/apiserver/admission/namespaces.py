"""Admission plugins of namespaces: NamespaceLifecycle, NamespaceAutoProvision, NamespaceExists.

NamespaceLifecycle guards missing and terminating namespaces; the two others are off by default. NamespaceLifecycle always allows
deletions, so that a namespace can be emptied, and access reviews, whose result must not reveal whether a namespace exists.

Specified by: k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle; plugin/pkg/admission/namespace/{autoprovision,exists}.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apis.rest.strategy import unusable_name
from fakekube.apis.validation import names, objectmeta
from fakekube.apiserver.admission.chain import CREATE, DELETE, Attributes, Operation, Plugin, forbidden
from fakekube.base.chance import random_uuid

_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
NAMESPACES = ("", "namespaces")
_ACCESS_REVIEWS = ("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(Plugin):
    """Rejects objects in namespaces that are missing or terminating, and deletions of the three that every cluster has."""

    name = "NamespaceLifecycle"
    operations = frozenset({Operation.CREATE, Operation.UPDATE, Operation.DELETE})
    subresources = None

    def admit(self, attributes: Attributes) -> None:
        resource = (attributes.resource.group, attributes.resource.plural)
        if resource == NAMESPACES:
            if attributes.operation is DELETE and attributes.name in _IMMORTAL:
                raise status.forbidden("", "namespaces", attributes.name, "this namespace may not be deleted")
            return
        if not attributes.namespace or attributes.operation is DELETE or resource == _ACCESS_REVIEWS:
            return
        namespace = attributes.context.services.get("", "namespaces", "", attributes.namespace)
        if namespace is None:
            problem = unusable_name(attributes.namespace)
            raise status.internal(problem) if problem else status.not_found("", "namespaces", attributes.namespace)
        if attributes.operation is CREATE and namespace.get("status", {}).get("phase") == "Terminating":
            raise self._refusal(attributes)

    @staticmethod
    def _refusal(attributes: Attributes) -> StatusError:
        namespace = attributes.namespace
        problem = f"unable to create new content in namespace {namespace} because it is being terminated"
        error = forbidden(attributes, problem)
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        error.details = {**(error.details or {}), "causes": [cause]}
        return error


#: The server creates the namespace with its loopback client.
_OWNER = {
    "manager": "kube-apiserver",
    "operation": "Update",
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}},
}


class NamespaceAutoProvision(Plugin):
    """Creates the namespace of an object that is created."""

    name = "NamespaceAutoProvision"
    operations = frozenset({Operation.CREATE})
    subresources = None

    def admit(self, attributes: Attributes) -> None:
        if attributes.context.dry_run or not _is_in_a_namespace(attributes):
            return
        services, name = attributes.context.services, attributes.namespace
        if services.get("", "namespaces", "", name) is not None:
            return
        metadata = {
            "name": name,
            "uid": random_uuid(),
            "creationTimestamp": attributes.context.now(),
            "labels": {"kubernetes.io/metadata.name": name},
            "managedFields": [{**_OWNER, "time": attributes.context.now()}],
        }
        errors = objectmeta.validate_object_meta(metadata, namespaced=False, name_errors=names.dns_label)
        if errors:
            raise forbidden(attributes, status.invalid("", "Namespace", name, errors).message)
        namespace = {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        try:
            services.create("", "namespaces", "", namespace)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise


class NamespaceExists(Plugin):
    """Rejects writes, including deletions, in namespaces that do not exist."""

    name = "NamespaceExists"
    operations = frozenset({Operation.CREATE, Operation.UPDATE, Operation.DELETE})
    subresources = None

    def validate(self, attributes: Attributes) -> None:
        if not _is_in_a_namespace(attributes):
            return
        if attributes.context.services.get("", "namespaces", "", attributes.namespace) is None:
            raise status.not_found("", "namespaces", attributes.namespace)


def _is_in_a_namespace(attributes: Attributes) -> bool:
    return bool(attributes.namespace) and (attributes.resource.group, attributes.resource.plural) != NAMESPACES
