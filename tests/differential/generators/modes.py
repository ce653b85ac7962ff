"""The modes in which random stories are drawn. `MODE:SEED:COUNT` names so many stories of one mode; each has a seed of its own.

Stories of objects take the kinds in turn, or those named by a further part, `edits:7:100:Pod,Job`. The same name gives each
server the same stories, as far as their answers agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.differential.client import Client
from tests.differential.generators import access, admission, binaries, crossings, custom, forms, gated, nodes, objects, workloads
from tests.differential.generators.edits import Editor
from tests.differential.generators.samples import samples_of
from tests.differential.generators.schemas import Kind, api_of
from tests.differential.random_stories import Steady

OF_OBJECTS: Mapping[str, Callable[[objects.Story], None]] = {
    "edits": objects.tell_edits,
    "tables": objects.tell_tables,
    "merges": objects.tell_merges,
    "jsonpatches": objects.tell_jsonpatches,
    "applies": objects.tell_applies,
    "reads": objects.tell_reads,
    "deletes": objects.tell_deletes,
    "fields": objects.tell_fields,
    "selectors": objects.tell_selectors,
    "subresources": objects.tell_subresources,
    "crossings": crossings.tell_crossings,
    "gated": gated.tell_gated,
    "protobuf": binaries.tell_protobuf,
    "cbor": binaries.tell_cbor,
}
OF_AREAS: Mapping[str, Callable[[Client, Steady], None]] = {
    "rules": custom.tell_rules,
    "versions": custom.tell_versions,
    "validating": admission.tell_validating,
    "mutating": admission.tell_mutating,
    "bindings": admission.tell_bindings,
    "webhooks": admission.tell_webhooks,
    "roles": access.tell_roles,
    "impersonation": access.tell_impersonation,
    "tokens": access.tell_tokens,
    "nodes": nodes.tell_nodes,
    "pods": workloads.tell_pods,
    "quotas": workloads.tell_quotas,
    "scales": workloads.tell_scales,
    "forms": forms.tell_forms,
    "cborforms": forms.tell_forms,
}
#: What fakekube's Cluster needs for a mode, as the module of its stories says of the reference.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "nodes": {"authorization_mode": ("Node", "RBAC"), "enable_admission_plugins": "NodeRestriction"}
}
#: The gates that the servers of a mode need.
GATES: Mapping[str, Mapping[str, bool]] = {mode: {"CBORServingAndStorage": True} for mode in ("cbor", "cborforms")}
#: Modes whose stories also edit the kinds that all stories share: in dry runs.
_ALSO_SHARED = ("edits", "fields", "gated", "selectors")


def _plays(mode: str, kind: Kind) -> bool:
    return (kind.namespaced or mode != "deletes") and (kind.name not in objects.SHARED or mode in _ALSO_SHARED)


def stories(name: str, minor: str, everything: bool = False) -> dict[str, Callable[[Client], None]]:
    """The stories that a name means, by their own names. Raises SystemExit for a mode that there is not.

    Args:
        minor: of the servers: its kinds and their schemas are played with.
        everything: the servers have all gates and APIs.
    """
    mode, seed, count, *of = name.split(":")
    if mode in OF_AREAS:
        return {f"{mode}.{seed}.{number:04d}": _of_area(mode, f"{seed}.{mode}.{number}") for number in range(int(count))}
    if mode not in OF_OBJECTS:
        raise SystemExit(f"no mode is called {mode}; there are {', '.join([*OF_OBJECTS, *OF_AREAS, 'random'])}")
    api = api_of(minor, everything)
    known = samples_of(minor, everything).objects
    only = of[0].split(",") if of else []
    kinds = [kind for kind in api.kinds if known.get(kind) and (kind.name in only if only else _plays(mode, kind))]
    drawn = [(kinds[number % len(kinds)], number) for number in range(int(count))]
    return {
        f"{mode}.{kind.name}.{kind.version}.{number}": _of_kind(mode, kind, f"{seed}.{mode}.{number}", minor, everything)
        for kind, number in drawn
    }


def _of_kind(mode: str, kind: Kind, seed: str, minor: str, everything: bool) -> Callable[[Client], None]:
    def random_story(client: Client) -> None:
        editor = Editor(Steady(seed), api_of(minor, everything), samples_of(minor, everything))
        OF_OBJECTS[mode](objects.Story(client, editor, kind))

    return random_story


def _of_area(mode: str, seed: str) -> Callable[[Client], None]:
    def random_story(client: Client) -> None:
        OF_AREAS[mode](client, Steady(seed))

    return random_story
