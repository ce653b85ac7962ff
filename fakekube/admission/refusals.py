"""How plugins refuse.

Specified by: k8s.io/apiserver/pkg/admission/errors.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.errors import StatusError, status

if TYPE_CHECKING:
    from fakekube.admission.plugin import Attributes

__all__ = ["forbidden", "not_found", "shown_name"]


def shown_name(attributes: Attributes) -> str:
    """The name by which a refusal speaks of the object: its own, what it is generated from, or none at
    all."""
    if attributes.name:
        return attributes.name
    if attributes.object is None:
        return "Unknown"
    meta = attributes.object.get("metadata") or {}
    return meta.get("name") or meta.get("generateName") or "Unknown"


def forbidden(attributes: Attributes, problem: str) -> StatusError:
    """403 in the name of the resource that is written."""
    resource = attributes.resource
    return status.forbidden(resource.group, resource.plural, shown_name(attributes), problem)


def not_found(attributes: Attributes) -> StatusError:
    """404 in the name of the resource that is written."""
    resource = attributes.resource
    return status.not_found(resource.group, resource.plural, shown_name(attributes))
