"""Privilege escalation checks: users cannot grant permissions that they do not have.

Every granted rule is broken down into its smallest parts (one group, resource, verb and name each), and a single rule
of the user must cover each part. The check does not apply to users with the verb `escalate` on the role, or `bind` on
the role of a binding, nor to members of system:masters.

Specified by: pkg/registry/rbac (escalation_check.go, */policybased, validation/rule.go, validation/policy_compact.go) and
k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apis.rest.strategy import Object, WriteContext
from fakekube.apis.validation.semantic_equality import same
from fakekube.base.golang.strconv import go_quote

__all__ = ["FULL_AUTHORITY", "check_binding", "check_rules", "covers", "may_escalate", "only_garbage_collection"]

GROUP: Final = "rbac.authorization.k8s.io"
MASTERS: Final = "system:masters"
_ALL: Final = "*"
_named_kind: Final = re.compile(rf"\b(cluster)?role\.{re.escape(GROUP)}")

Rule = Mapping[str, Any]

#: The permissions that writing an aggregation rule requires, as it can select any rule.
FULL_AUTHORITY: Final[Sequence[Rule]] = (
    {"verbs": [_ALL], "apiGroups": [_ALL], "resources": [_ALL]},
    {"verbs": [_ALL], "nonResourceURLs": [_ALL]},
)

#: Fields that the garbage collector writes; an update of only these fields is not checked.
_GARBAGE_COLLECTION: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields")

_PARTS: Final = (
    ("apiGroups", "APIGroups"),
    ("resources", "Resources"),
    ("nonResourceURLs", "NonResourceURLs"),
    ("resourceNames", "ResourceNames"),
    ("verbs", "Verbs"),
)


# ---------------------------------------------------------------- checks of a write


def check_rules(context: WriteContext, obj: Object, rules: Sequence[Rule], problem: str = "") -> None:
    """Checks that the user may write an object that grants these rules. Raises StatusError 403.

    `problem` replaces the list of missing permissions in the message.
    """
    missing = _missing_rights(context, rules)
    if missing:
        raise _forbidden(context, obj, problem or missing)


def may_escalate(context: WriteContext) -> bool:
    """Reports whether the user has the verb `escalate` on the role of this request, or is not checked at all."""
    return MASTERS in context.groups or _may(context, "escalate", context.resource.plural, context.name)


def check_binding(context: WriteContext, obj: Object, old: Object | None) -> None:
    """Checks that the user may bind the role of a binding. Raises StatusError 403, or 404 if the role does not exist."""
    if MASTERS in context.groups or (old is not None and only_garbage_collection(obj, old)):
        return
    role = obj.get("roleRef") or {}
    kind, name = role.get("kind", ""), role.get("name", "")
    plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
    if plural is None:
        raise status.generic(500, "", f"unsupported role reference kind: {go_quote(kind)}")
    if _may(context, "bind", plural, name, group=role.get("apiGroup", "")):
        return
    found = context.services.get(GROUP, plural, context.namespace if kind == "Role" else "", name)
    if found is None:
        raise status.not_found(GROUP, context.resource.plural, name)
    check_rules(context, obj, found.get("rules") or ())


def only_garbage_collection(obj: Object, old: Object) -> bool:
    """Reports whether a write changes only the fields that the garbage collector changes."""
    meta, old_meta = dict(obj["metadata"]), dict(old["metadata"])
    for field in _GARBAGE_COLLECTION:
        meta.pop(field, None)
        old_meta.pop(field, None)
    return same({**obj, "metadata": meta}, {**old, "metadata": old_meta})


def _may(context: WriteContext, verb: str, plural: str, name: str, group: str = GROUP) -> bool:
    attributes = {"verb": verb, "group": group, "version": _ALL, "resource": plural, "name": name, "namespace": context.namespace}
    question = {"uid": context.uid, "extra": context.extra, "resourceAttributes": attributes}
    return context.services.authorize(context.user, context.groups, question)[0]


def _forbidden(context: WriteContext, obj: Object, problem: str) -> StatusError:
    return status.forbidden(GROUP, context.resource.plural, obj["metadata"].get("name", ""), problem)


# ---------------------------------------------------------------- rules


def _missing_rights(context: WriteContext, rules: Sequence[Rule]) -> str:
    """Returns the permissions that the user lacks, as the message of the 403 has them; "" if there are none."""
    owned, problem = context.services.rbac_rules(context.user, context.groups, context.namespace)
    missing = [part for rule in rules for part in _broken_down(rule) if not any(covers(own, part) for own in owned)]
    if not missing:
        return ""
    groups = " ".join(map(go_quote, context.groups))
    descriptions = "\n".join(sorted({_described(rule) for rule in _compacted(missing)}))
    text = (
        f"user {go_quote(context.user)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n"
        f"{descriptions}"
    )
    if not problem:
        return text
    # These roles are looked up in the storage, which calls what it does not find by the resource of the request.
    return f"{text}; resolution errors: [{_named_kind.sub(f'{context.resource.plural}.{GROUP}', problem)}]"


def _broken_down(rule: Rule) -> Iterator[Rule]:
    verbs = rule.get("verbs") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames")
                yield from ({**part, "resourceNames": [name]} for name in names) if names else (part,)
    for url in rule.get("nonResourceURLs") or ():
        yield from ({"nonResourceURLs": [url], "verbs": [verb]} for verb in verbs)


def covers(owned: Rule, part: Rule) -> bool:
    """Reports whether a rule grants everything that a broken-down rule grants."""
    return (
        _has_all(owned, part, "verbs")
        and _has_all(owned, part, "apiGroups")
        and all(_covers_resource(owned.get("resources") or (), resource) for resource in part.get("resources") or ())
        and _covers_names(owned.get("resourceNames") or (), part.get("resourceNames") or ())
        and all(_covers_url(owned.get("nonResourceURLs") or (), url) for url in part.get("nonResourceURLs") or ())
    )


def _has_all(owned: Rule, part: Rule, field: str) -> bool:
    values = owned.get(field) or ()
    return _ALL in values or all(value in values for value in part.get(field) or ())


def _covers_resource(owned: Sequence[str], resource: str) -> bool:
    if _ALL in owned or resource in owned:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in owned


def _covers_names(owned: Sequence[str], names: Sequence[str]) -> bool:
    return not owned or (bool(names) and all(name in owned for name in names))


def _covers_url(owned: Sequence[str], url: str) -> bool:
    return any(own == url or (own.endswith(_ALL) and url.startswith(own.rstrip(_ALL))) for own in owned)


def _compacted(parts: Sequence[Rule]) -> list[Rule]:
    """Merges rules about the same resource (and name); verbs keep their order."""
    simple: dict[tuple[str, ...], dict[str, Any]] = {}
    others = []
    for part in parts:
        if part.get("nonResourceURLs"):
            others.append(part)
            continue
        key = (part["apiGroups"][0], part["resources"][0], *part.get("resourceNames", ()))
        known = simple.setdefault(key, {**part, "verbs": []})
        known["verbs"] += part["verbs"]
    return [*others, *simple.values()]


def _described(rule: Rule) -> str:
    parts = (f"{shown}:[{' '.join(map(go_quote, rule[field]))}]" for field, shown in _PARTS if rule.get(field))
    return f"{{{', '.join(parts)}}}"
