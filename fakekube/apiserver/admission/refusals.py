"""The errors by which admission plugins reject requests.

Specified by: k8s.io/apiserver/pkg/admission/errors.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.apimachinery.errors import StatusError, status

if TYPE_CHECKING:
    from fakekube.apiserver.admission.plugin import Attributes


def shown_name(attributes: Attributes) -> str:
    """Returns the name of the object in an error: its name, its generateName, or ""."""
    if attributes.name:
        return attributes.name
    if attributes.object is None:
        return "Unknown"
    meta = attributes.object.get("metadata") or {}
    return meta.get("name") or meta.get("generateName") or "Unknown"


def forbidden(attributes: Attributes, problem: str) -> StatusError:
    """Returns a 403 for the resource of the request."""
    resource = attributes.resource
    return status.forbidden(resource.group, resource.plural, shown_name(attributes), problem)


def not_found(attributes: Attributes) -> StatusError:
    """Returns a 404 for the resource of the request."""
    resource = attributes.resource
    return status.not_found(resource.group, resource.plural, shown_name(attributes))
