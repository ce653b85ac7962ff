"""Reports about the cluster of a failing test: its recorded requests, and the histories of objects that the error names.

Invariant: a report has a bounded length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fakekube.controllers.client import UnknownResource

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.powers.history import Version

__all__ = ["report_of"]

#: The number of latest requests in a report.
REQUESTS = 50
#: The maximum numbers of objects with a history, and of versions of each.
OBJECTS, VERSIONS = 5, 20

_WORD = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")


def report_of(cluster: Cluster, error: str) -> list[tuple[str, str]]:
    """Returns the sections of a report, as titles and texts; `error` is the text of the failure, which may name objects."""
    asked = list(cluster.requests)[-REQUESTS:]
    report = [("requests to fakekube", "\n".join(map(str, asked)))] if asked else []
    return report + _histories(cluster, set(_WORD.findall(error)))


def _histories(cluster: Cluster, words: set[str]) -> list[tuple[str, str]]:
    """Returns the histories of written objects whose names are among these words."""
    writes = cluster.requests.where(verb="create,update,patch,delete", own=True)
    places = {(one.group, one.resource, one.namespace, one.name): None for one in writes if one.name in words}
    found = []
    for group, resource, namespace, name in places:
        try:
            versions = cluster.history(f"{resource}.{group}" if group else resource, name, namespace or None)
        except UnknownResource:
            continue
        lines = map(_line, versions[-VERSIONS:])
        if versions:
            found.append((f"history of {resource} {namespace}/{name}", "\n".join(lines)))
        if len(found) == OBJECTS:
            break
    return found


def _line(version: Version) -> str:
    changed = ", ".join(path for path in version.changed if not path.startswith(("metadata.managedFields", "metadata.resourceV")))
    return f"{version.revision} {version.type} {version.time:%H:%M:%S.%f} {changed}".rstrip()
