"""What remains of a failing test, for the pytest plugin: trace files, a report with the recorded requests and the histories of
the objects that the error names, and the pause at the first failure.

Invariants: a problem with a trace file never changes the outcome of a test; its text is in the report. A report has a bounded
length.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fakekube.base.objects import group_resource
from fakekube.controllers.client import UnknownResource

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.powers.history import Version


_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME: Final = 80
_MAX_MESSAGE: Final = 10_000


def begin(cluster: Cluster, test_id: str) -> None:
    """Keeps all changes of a cluster from now on, whatever the clock does, and names its test."""
    cluster.test = {"id": test_id, "outcome": "", "message": ""}
    cluster.keep_changes()
    cluster.mark_phase("setup")


def file_name(test_id: str, number: int = 1) -> str:
    """Returns the name of the trace file of a test: `test_rollout-3f2a.html`."""
    name = _UNSAFE.sub("-", test_id.rpartition("::")[2]).strip("-.")[:_MAX_NAME] or "test"
    digest = hashlib.sha256(test_id.encode("utf-8", "surrogatepass")).hexdigest()[:4]
    return f"{name}-{digest}.html" if number == 1 else f"{name}-{digest}-{number}.html"


def write_traces(
    clusters: Sequence[Cluster], folder: Path, test_id: str, outcome: str, message: str
) -> tuple[list[Path], list[str]]:
    """Writes one trace file for each cluster of a test.

    Args:
        clusters: of the test.
        folder: where to write.
        test_id: the id of the test.
        outcome: `passed` or `failed`.
        message: of the failure.

    Returns the paths, and the texts of problems.
    """
    written, problems = [], []
    for number, cluster in enumerate(clusters, 1):
        cluster.test = {"id": test_id, "outcome": outcome, "message": message[:_MAX_MESSAGE]}
        if message:
            cluster.mark_phase(f"{outcome}: {message.splitlines()[-1] if message.splitlines() else ''}")
        try:
            written.append(cluster.trace(folder / file_name(test_id, number)))
        except OSError as problem:
            problems.append(f"the trace cannot be written: {problem}")
    return written, problems


def pause(cluster: Cluster, ask: Any = input) -> None:
    """Holds the clock, prints the address of the page, and waits for Enter."""
    cluster.clock.hold()
    print(f"\nThe test has failed. Its cluster waits, with a held clock, at\n\n    {cluster.page_url}\n")
    try:
        ask("Enter continues: ")
    except (EOFError, OSError):
        print("there is no terminal")
    finally:
        cluster.clock.release()


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
            versions = cluster.history(group_resource(group, resource), name, namespace or None)
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
