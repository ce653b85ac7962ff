"""Calls admission for the handlers: builds the attributes of a write and the checks that run inside the write path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.patch.apply import managed_fields
from fakekube.apis.rest.strategy import WriteContext
from fakekube.apiserver.admission.chain import CONNECT, CREATE, DELETE, UPDATE, Attributes, Operation
from fakekube.apiserver.registry.generic import writes
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.objects import Object
from fakekube.store import Record

_INVALID_MANAGED_FIELDS = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests"
)


def _attributes(
    scope: Scope, operation: Operation, obj: Object | None, old: Object | None, name: str, *, context: WriteContext | None = None
) -> Attributes:
    resource, subresource = scope.resource, scope.subresource.name if scope.subresource else ""
    # by position: names double the cost, which each write has
    return Attributes(resource, subresource, scope.namespace, name, operation, obj, old, context or scope.context)


def admit(scope: Scope, operation: Operation, obj: Object, old: Object | None) -> writes.Check:
    """Runs mutating admission, which changes the new object in place; managedFields that it leaves invalid are restored.

    Returns the validating admission of the write. Raises StatusError.
    """
    attributes = _attributes(scope, operation, obj, old, scope.name)
    before = (obj.get("metadata") or {}).get("managedFields")
    scope.backend.admission.admit(attributes)
    after = (obj.get("metadata") or {}).get("managedFields")
    if after is not before and after:
        _restore_managed_fields(scope, obj, before)
    return partial(_validate, scope, attributes)


def _validate(scope: Scope, attributes: Attributes, obj: Object, old: Object | None) -> None:
    """Runs validating admission of a write with the attributes of its mutating admission. Raises StatusError."""
    attributes.object, attributes.old = obj, old
    attributes.name = scope.name or obj["metadata"].get("name", "")
    scope.backend.admission.validate(attributes)


def admit_update(scope: Scope, record: Record[Document] | None, obj: Object, live: Object | None) -> writes.Check:
    """Runs mutating admission of a PUT or a patch of a stored object, or of an absent one, which it creates; then removes owners
    that admission has doubled.

    Custom resources are admitted in the version of the request, which is that of `live`. Returns the validating admission:
    to create an absent object the user needs permission to create, too. Raises StatusError.
    """
    old = None if record is None else record.value.object
    check = admit(scope, CREATE if record is None else UPDATE, obj, live if scope.resource.custom else old)
    if record is None:
        check = partial(_check_created, scope, check)
    writes.deduplicate_owners(obj["metadata"], scope.request.warnings, after_admission=True)
    return check


def _check_created(scope: Scope, check: writes.Check, obj: Object, old: Object | None) -> None:
    scope.backend.authorize_creation(scope.request)
    check(obj, old)


def _restore_managed_fields(scope: Scope, obj: Object, before: Any) -> None:
    try:
        managed_fields.decode(obj["metadata"]["managedFields"])
    except managed_fields.EntryError as error:
        scope.request.warnings.append(f"{_INVALID_MANAGED_FIELDS}: {error}")
        obj["metadata"]["managedFields"] = before
        if before is None:
            del obj["metadata"]["managedFields"]


def connect(scope: Scope, options: Object) -> None:
    """Runs mutating and validating admission of a connection with these options. Raises StatusError."""
    attributes = _attributes(scope, CONNECT, options, None, scope.name)
    scope.backend.admission.admit(attributes)
    scope.backend.admission.validate(attributes)


def deletion_checker(scope: Scope, name: str) -> Callable[[Object], None]:
    """Returns the mutating and validating admission of a deletion."""

    def check(old: Object) -> None:
        context = scope.context
        if scope.resource.strategy.terminates:  # the registries of these kinds delete only the object that admission has seen
            preconditions = {"uid": old["metadata"]["uid"], **(scope.options.get("preconditions") or {})}
            context = replace(context, options={**scope.options, "preconditions": preconditions})
        attributes = _attributes(scope, DELETE, None, old, name, context=context)
        scope.backend.admission.admit(attributes)
        scope.backend.admission.validate(attributes)

    return check
