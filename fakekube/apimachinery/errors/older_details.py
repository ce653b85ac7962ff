"""The words of errors in older minors, where a rule has changed nothing but its words.

`OLDER` has a row for each: until which minor, the last part of the path, the detail now, and the detail then. A rule that has
changed more than that says so itself (`from_minor`).

Specified by: the validation.go of the minors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fakekube.apimachinery.errors.field import FieldError

_HOST_USERS: Final = (("hostNetwork", "hostPID", "hostIPC"), "when `hostUsers` is false", "when `pod.Spec.HostUsers` is false")
_ROWS: Final[tuple[tuple[int, tuple[str, ...], str, str], ...]] = (
    (34, ("name",), "must be a valid CEL identifier", "name is not a valid CEL identifier"),
    (34, ("message",), "must be non-empty if specified", "message must be non-empty if specified"),
    (34, ("message",), "must not contain line breaks", "message must not contain line breaks"),
    (
        34,
        ("selectableFields",),
        "may only be set when `version.schema.openAPIV3Schema` is not included",
        "selectableFields may only be set when version.schema.openAPIV3Schema is not included",
    ),
    (
        34,
        ("selectableFields",),
        "may only be set when validations.schema is included",
        "selectableFields may only be set when validations.schema is included",
    ),
    (34, ("completionTime",), "must be equal to or after `startTime`", "completionTime cannot be set before startTime"),
    (34, ("completionTime",), "field is immutable", "completionTime cannot be mutated"),
    (
        34,
        ("uncountedTerminatedPods",),
        "must be empty for finished job",
        "uncountedTerminatedPods needs to be empty for finished job",
    ),
    (34, *_HOST_USERS),
    (
        34,
        ("type",),
        "must be 'Exempt' if and only if `name` is 'exempt'",
        "type must be 'Exempt' if and only if name is 'exempt'",
    ),
    (
        36,
        ("resizePolicy",),
        "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
        "must be 'NotRequired' when `restartPolicy` is 'Never'",
    ),
    (
        36,
        ("spec",),
        "only cpu and memory resources for init or sidecar containers are mutable",
        "only cpu and memory resources for sidecar containers are mutable",
    ),
)
OLDER: Final[Mapping[tuple[str, str], tuple[int, str]]] = {
    (name.lower(), now): (until, then) for until, names, now, then in _ROWS for name in names
}
"""(last part of the path in lower case, detail now) → the first minor with it, and the detail before."""
CHANGED_UNTIL: Final = max(until for until, *_ in _ROWS)


def in_older_words(error: FieldError, minor: int) -> FieldError:
    """Returns the error with the detail that the minor has for it."""
    until, then = OLDER.get((error.path.rpartition(".")[2].lower(), error.detail), (0, ""))
    return replace(error, detail=then) if minor < until else error
