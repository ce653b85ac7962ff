"""Namespaces: the name label, finalizers and deletion.

A namespace has finalizers in its spec. The first DELETE sets deletionTimestamp and the phase Terminating. The
namespace controller deletes the contents and then removes `kubernetes` from spec.finalizers through /finalize. The
namespace is removed when spec.finalizers and metadata.finalizers are both empty.

Specified by: pkg/registry/core/namespace (strategy.go, storage/storage.go).
"""

from __future__ import annotations

from collections.abc import Sequence

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import Typed, invalid
from fakekube.apis.rest.strategy import RevalidatingStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.objectmeta import standard_finalizer_errors, validate_finalizer_name
from fakekube.base.objects import Object

NAME_LABEL = "kubernetes.io/metadata.name"
#: v1.FinalizerKubernetes.
FINALIZER = "kubernetes"


class NamespaceStrategy(RevalidatingStrategy):
    """The strategy of namespaces; /status and /finalize have strategies of their own."""

    delete_returns_object = True
    has_status = True
    terminates = True

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return names.dns_label(name, prefix)

    def default(self, obj: Object) -> None:
        if obj.get("metadata", {}).get("name"):
            self.canonicalize(obj)

    def canonicalize(self, obj: Object) -> None:
        meta = obj["metadata"]
        meta.setdefault("labels", {})[NAME_LABEL] = meta["name"]

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj["status"] = {"phase": "Active"}
        spec = obj.setdefault("spec", {})
        if FINALIZER not in spec.get("finalizers", ()):
            spec["finalizers"] = [*spec.get("finalizers", ()), FINALIZER]

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        _keep_finalizers(obj, old)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return [
            error for name in obj.get("spec", {}).get("finalizers", ()) for error in _validate_finalizer(name, "spec.finalizers")
        ]

    def releasable(self, obj: Object) -> bool:
        return not obj.get("spec", {}).get("finalizers")

    def terminate(self, obj: Object) -> None:
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}


class NamespaceStatusStrategy(Strategy):
    """The strategy of /status; the phase follows the deletionTimestamp."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        obj["spec"] = old.get("spec", {})

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        dying = "deletionTimestamp" in obj["metadata"]
        phase, expected = obj.get("status", {}).get("phase", ""), "Terminating" if dying else "Active"
        if phase == expected:
            return []
        text = f"may only be '{expected}' if `deletionTimestamp` is {'not empty' if dying else 'empty'}"
        return [invalid("status.Phase", Typed(phase), text)]

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("spec",)]


class NamespaceFinalizeStrategy(Strategy):
    """The strategy of /finalize, which changes spec.finalizers and keeps the status."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        obj["status"] = old.get("status", {})

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return [
            error
            for index, name in enumerate(obj.get("spec", {}).get("finalizers", ()))
            for error in _validate_finalizer(name, f"spec.finalizers[{index}]")
        ]

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


def _keep_finalizers(obj: Object, old: Object) -> None:
    finalizers = old.get("spec", {}).get("finalizers")
    spec = obj.setdefault("spec", {})
    if finalizers is None:
        spec.pop("finalizers", None)
    else:
        spec["finalizers"] = finalizers


def _validate_finalizer(name: str, path: str) -> list[FieldError]:
    return validate_finalizer_name(name, path) + standard_finalizer_errors(name, path)
