"""Tables that show rules: a base object of a kind, and small edits of it, each of which one rule (or a few) answers.

A table is data. `tell` makes a scenario of it: the base object with each edit of `create` is sent as a dry run; for each
state an object is made, its status written, and each edit of it sent as a dry run. An edit is a mapping of paths to values:

    {"spec.template.spec.containers[0].image": "", "metadata.annotations[a.b/c]": "x", "spec.selector": None}

A value None removes the field; an index that is the length of the list appends. In all texts `{ns}` is the namespace of
the scenario and `{name}` the name of the object.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.registry import scenario

Edit = Mapping[str, Any]
Object = dict[str, Any]

DRY = {"dryRun": "All"}
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class State:
    """An object as it is before the edits of it."""

    base: Edit = field(default_factory=dict)
    """The edits with which it is created."""
    status: Edit = field(default_factory=dict)
    """The edits that are then written to its status."""
    update: Sequence[Edit] = ()
    """Edits of the object."""
    status_update: Sequence[Edit] = ()
    """Edits of the object, sent to its status."""
    calls: Sequence[tuple[str, str, Any]] = ()
    """Requests to subresources: method, subresource (with a query if it has one), and the edits of what GET answers (PUT), a merge patch (PATCH) or the body."""
    then: Sequence[Edit] = ()
    """Edits that are stored before the others are sent."""


def each(path: str, *values: Any, **more: Any) -> list[dict[str, Any]]:
    """An edit for each of the values: that of the path, and `more` besides."""
    return [{path: value, **more} for value in values]


def edited(obj: Object, edit: Edit) -> Object:
    """A copy of an object with an edit."""
    out = copy.deepcopy(obj)
    for path, value in edit.items():
        _set(out, [brackets or name for brackets, name in _STEP.findall(path)], copy.deepcopy(value))
    return out


def _set(place: Any, steps: list[str], value: Any) -> None:
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        key: Any = int(step) if isinstance(place, list) else step
        if following is None:
            if isinstance(place, list) and key == len(place):
                place.append(value)
            elif value is None:
                place.pop(key, None) if isinstance(place, dict) else place.pop(key)
            else:
                place[key] = value
            return
        if isinstance(place, list) and key == len(place):
            place.append({})
        if isinstance(place, dict) and place.get(key) is None:
            place[key] = [] if following == "0" else {}
        place = place[key]


def tell(
    title: str,
    place: str,
    base: Object,
    *,
    create: Sequence[Edit] = (),
    states: Sequence[State] = (),
    before: Callable[[Client], None] | None = None,
    after: Callable[[Client], None] | None = None,
    headers: dict[str, str] | None = None,
    module: str,
) -> None:
    """Register a scenario, `title` of the module.

    Args:
        place: "group/version/plural"; '*' before the plural says that the kind has no namespace.
        base: an object that is valid as it is; its name is set here, unless it has one.
        before: makes what the objects need. `after` ends it.
        headers: of the dry runs, such as the user who sends them.
    """
    version, _, plural = place.rpartition("/")
    wide, plural = plural.startswith("*"), plural.removeprefix("*")
    root = ("/api/" if version == "v1" else "/apis/") + version

    def play(client: Client) -> None:
        collection = f"{root}/{plural}" if wide else f"{root}/namespaces/{client.ns}/{plural}"
        made: list[str] = []

        def filled(value: Any, name: str) -> Any:
            return json.loads(json.dumps(value).replace("{ns}", client.ns).replace("{name}", name))

        def body(edit: Edit, suffix: str) -> Object:
            own = edited(base, edit)
            given = own.get("metadata", {}).get("name")
            name = given or (client.name(suffix) if wide else suffix)
            own = {**own, "metadata": {**own.get("metadata", {}), "name": name}}
            if edit.get("metadata.name", name) == "":
                own["metadata"].pop("name")
            return filled(own, name)  # type: ignore[no-any-return]

        if before:
            before(client)
        try:
            for edit in create:
                client.post(collection, body(edit, "a"), DRY, headers=headers)
            for number, state in enumerate(states):
                first = body(state.base, f"s{number}")
                path = f"{collection}/{first['metadata']['name']}"
                reply = client.post(collection, first)
                if reply.status != 201:
                    continue
                made.append(path)
                _play_state(client, path, state, lambda value, name=first["metadata"]["name"]: filled(value, name), headers)
        finally:
            for path in made:  # also what the namespace holds: a server without controllers keeps it, and its ports and addresses
                client.patch(path, {"metadata": {"finalizers": None}}, MERGE, silent=True)
                client.delete(path, {"gracePeriodSeconds": 0}, silent=True)
            if after:
                after(client)

    play.__name__ = play.__qualname__ = title
    play.__module__ = module
    play.__doc__ = f"What is refused, and what is warned of, of {plural} ({version})."
    scenario(play)


def _play_state(client: Client, path: str, state: State, filled: Callable[[Any], Any], headers: dict[str, str] | None) -> None:
    for edit in state.then:
        client.put(path, filled(edited(client.get(path, silent=True).json, edit)))
    if state.status:
        client.put(f"{path}/status", filled(edited(client.get(path, silent=True).json, state.status)))
    for edits, target in ((state.update, path), (state.status_update, f"{path}/status")):
        for edit in edits:  # of what is stored now: the server's own controllers write to some kinds
            client.put(target, filled(edited(client.get(path, silent=True).json, edit)), DRY, headers=headers)
    for method, subresource, change in state.calls:
        subresource, _, query = subresource.partition("?")
        target = f"{path}/{subresource}" if subresource else path
        sent = change
        if method == "PUT":
            sent = edited(client.get(target, silent=True).json, change)
        ctype = MERGE if method == "PATCH" else None
        client.request(method, target, None if sent is None else filled(sent), query or DRY, ctype=ctype, headers=headers)
