"""The roles and bindings of a fresh server as its feature gates make them.

The bootstrap objects of a minor are those of a server with default gates. `policy.json` has what gates change: each role and
binding that depends on a gate as it is with all gates, with the gates of the object and of its rules.

Specified by: plugin/pkg/auth/authorizer/rbac/bootstrappolicy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery.data import Row
from fakekube.apimachinery.features import Emulation

_ROOT: Final = "/apis/rbac.authorization.k8s.io/v1/"
_OWN_FIELDS: Final = ("gates", "urlGates")


def bootstrap_objects(emulation: Emulation) -> Mapping[str, Sequence[Row]]:
    """Returns the objects of a fresh server, by the path of their collection."""
    facts = emulation.facts
    if emulation.gates.are_default:
        return facts.bootstrap
    found = {path: list(objects) for path, objects in facts.bootstrap.items()}
    for key, conditional in facts.policy.items():
        resource, namespace, name = key.split(" ")
        objects = found.setdefault(_ROOT + resource, [])
        place = (namespace if namespace != "-" else None, name)
        places = [(one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
        index = places.index(place) if place in places else len(objects)
        is_on = _are_on(conditional, emulation)
        metadata = _with_managed_fields(conditional) if index == len(objects) else objects[index]["metadata"]
        objects[index : index + 1] = [{**_with_rules(conditional, emulation), "metadata": metadata}] if is_on else []
    return found


def _are_on(conditional: Mapping[str, Any], emulation: Emulation) -> bool:
    return all(map(emulation.enabled, conditional.get("gates") or ()))


def _with_rules(conditional: Row, emulation: Emulation) -> Row:
    """Returns the object without gates, and with those of its rules whose gates are on."""
    made = {name: value for name, value in conditional.items() if name not in _OWN_FIELDS}
    if made.get("rules"):
        made["rules"] = [_rule(rule, emulation) for rule in made["rules"] if _are_on(rule, emulation)]
    return made


def _rule(rule: Row, emulation: Emulation) -> Row:
    made = {name: value for name, value in rule.items() if name not in _OWN_FIELDS}
    gates: Mapping[str, str] = rule.get("urlGates") or {}
    if gates:
        made["nonResourceURLs"] = [url for url in rule["nonResourceURLs"] if url not in gates or emulation.enabled(gates[url])]
    return made


def _with_managed_fields(conditional: Row) -> Row:
    """Returns the metadata of an object that the server creates."""
    metadata, fields = conditional["metadata"], [name for name in ("roleRef", "rules", "subjects") if name in conditional]
    of_metadata: dict[str, Any] = {
        f"f:{part}": {".": {}, **{f"f:{name}": {} for name in sorted(metadata[part])}}
        for part in ("annotations", "labels")
        if metadata.get(part)
    }
    entry = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": of_metadata, **{f"f:{name}": {} for name in fields}},
    }
    return {**metadata, "managedFields": [entry]}
