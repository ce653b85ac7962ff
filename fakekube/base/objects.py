"""API objects as trees of plain JSON, and how their group, version and resource are written together.

Invariant: what comes out of the store is a `StoredObject`. It is shared with the store, its history and all readers, and is
never changed; who wants to change one copies it first.

Specified by: k8s.io/apimachinery/pkg/runtime/schema/group_version.go (GroupVersion.String, GroupResource.String).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: An object that belongs to the caller, which may change it.
Object = dict[str, Any]
#: An object of the store or of a cache, which nobody changes.
StoredObject = Mapping[str, Any]
#: A member of an object that is an object itself, such as a spec or a container, for readers that do not change it.
Part = Mapping[str, Any]


def group_version(group: str, version: str) -> str:
    """Returns a group and a version as apiVersion has them: `apps/v1`, and `v1` of the core group, whose name is empty."""
    return f"{group}/{version}" if group else version


def group_version_path(group: str, version: str) -> str:
    """Returns the path of a group version: `/apis/apps/v1`, and `/api/v1` of the core group."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def group_resource(group: str, resource: str) -> str:
    """Returns a resource (or a kind) and its group as messages have them: `deployments.apps`, and `pods` of the core group."""
    return f"{resource}.{group}" if group else resource
