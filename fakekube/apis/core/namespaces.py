"""Namespaces: their label, their finalizers, and how they end.

A namespace has finalizers of its own in its spec. The first DELETE marks it and sets its phase to
Terminating; whoever emptied it takes `kubernetes` off spec.finalizers through /finalize, and with the last
finalizer of both kinds it goes.

Specified by: pkg/registry/core/namespace (strategy.go, storage/storage.go).
"""

from __future__ import annotations

from collections.abc import Sequence

from fakekube.errors import FieldError
from fakekube.errors.field import invalid
from fakekube.registry.revalidating_strategy import RevalidatingStrategy
from fakekube.registry.strategy import Object, Strategy, WriteContext
from fakekube.validation import names
from fakekube.validation.objectmeta import standard_finalizer_errors, validate_finalizer_name

__all__ = ["FinalizeView", "NamespaceStrategy", "StatusView"]

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"


class NamespaceStrategy(RevalidatingStrategy):
    """The namespace itself; its status and its finalizers have views of their own."""

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
            error
            for name in obj.get("spec", {}).get("finalizers", ())
            for error in _finalizer_errors(name, "spec.finalizers")
        ]

    def releasable(self, obj: Object) -> bool:
        return not obj.get("spec", {}).get("finalizers")

    def terminate(self, obj: Object) -> None:
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("status",)]


class StatusView(Strategy):
    """/status: the phase goes with the deletion mark."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        obj["spec"] = old.get("spec", {})

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        dying = "deletionTimestamp" in obj["metadata"]
        phase, expected = obj.get("status", {}).get("phase", ""), "Terminating" if dying else "Active"
        if phase == expected:
            return []
        text = f"may only be '{expected}' if `deletionTimestamp` is {'not empty' if dying else 'empty'}"
        return [invalid("status.Phase", phase, text)]

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("spec",)]


class FinalizeView(Strategy):
    """/finalize: the spec's finalizers, and nothing of the status."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        obj["status"] = old.get("status", {})

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return [
            error
            for index, name in enumerate(obj.get("spec", {}).get("finalizers", ()))
            for error in _finalizer_errors(name, f"spec.finalizers[{index}]")
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


def _finalizer_errors(name: str, path: str) -> list[FieldError]:
    return validate_finalizer_name(name, path) + standard_finalizer_errors(name, path)
