"""The table of rules: one module for each family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.checker.rules import (
    answers,
    apply,
    beginnings,
    changes,
    children,
    conflicts,
    content,
    credentials,
    deletions,
    denials,
    discovery,
    economy,
    entries,
    history,
    identity,
    leases,
    lifecycles,
    lists,
    namespaces,
    outages,
    retries,
    revisions,
    sieve,
    single_changes,
    stale_caches,
    switches,
    terminations,
    unprovoked,
    watch_ends,
    watch_errors,
    watch_events,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakekube.checker.rule import Rule

__all__ = ["UnknownRule", "all_rules", "choose_rules", "find_provocation", "group_by_life", "in_order", "known_ids", "step_rule"]

_FAMILIES: tuple[Sequence[type[Rule]], ...] = (
    watch_errors.RULES,
    watch_ends.RULES,
    watch_events.RULES,
    revisions.RULES,
    deletions.RULES,
    lists.RULES,
    retries.RULES,
    answers.RULES,
    conflicts.RULES,
    apply.RULES,
    identity.RULES,
    stale_caches.RULES,
    discovery.RULES,
    credentials.RULES,
    leases.RULES,
    content.RULES,
    economy.RULES,
    unprovoked.RULES,
    sieve.RULES,
    lifecycles.RULES,
    outages.RULES,
    changes.RULES,
    children.RULES,
    history.RULES,
    entries.RULES,
    single_changes.RULES,
    switches.RULES,
    denials.RULES,
    namespaces.RULES,
    terminations.RULES,
    beginnings.RULES,
)

#: The provocations that one client can undergo one after the other, in this order: none makes the next one another one.
LIVES: tuple[Sequence[str], ...] = (
    ("W1/reconnect", "W13/relist", "W8/together", "W10/none", "W10/often"),
    ("S3/deletion", "W12/offline", "W12/expiry", "W12/end", "S3/deletion-end", "C5/again"),
    ("S3/child", "W12/child-end", "W12/children", "S3/unseen", "C6/terminating"),
    ("S3/change", "S3/under-fault", "C1/changed", "C2/changed", "C7/changed", "S3/meanwhile", "R2/forgets", "S3/set-back"),
    ("C1/conflict", "C2/update", "C3/children", "C3/status", "N3/needless", "C6/there", "R3/lost", "R3/timeout"),
    ("C6/gone", "C6/vanished", "C5/child", "S3/deletion-fault", "C5/foreign", "C5/unowned"),
    ("S3/switches", "S3/unset", "C5/switched", "C5/forbidden"),
    ("C4/added", "C4/removed", "C4/deleting", "C4/kept"),
    ("R7/object", "R2/writes-once", "R2/writes-apart", "S3/fault-apart", "R6/denied", "R1/write"),
)

#: The first letters of ids, in the order of docs/client-rules.md.
_ORDER = "WPRCVDALNS"


class UnknownRule(ValueError):
    """An unknown id of a rule, or an unknown class of legality."""


def all_rules() -> list[Rule]:
    """Returns all rules in the order of docs/client-rules.md."""
    return in_order([made() for family in _FAMILIES for made in family])


def in_order(rules: Sequence[Rule]) -> list[Rule]:
    """Returns rules in the order of docs/client-rules.md."""
    return sorted(rules, key=lambda rule: (_ORDER.index(rule.id[0]), int(rule.id[1:])))


def group_by_life(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Returns rules in groups that one client can undergo, one after the other."""
    lives = [[rule for key in keys for rule in rules if rule.key == key] for keys in LIVES]
    shared = {rule.key for life in lives for rule in life}
    return [*filter(None, lives), *([rule] for rule in rules if rule.key not in shared)]


def known_ids(ids: Sequence[str]) -> list[str]:
    """Returns ids in capital letters. Raises UnknownRule for one that no rule has."""
    known, wanted = _ids(all_rules()), [one.upper() for one in ids]
    unknown = sorted({one for one in wanted if one not in known})
    if unknown:
        raise UnknownRule(f"there is no rule {', '.join(unknown)}; there are {', '.join(known)}")
    return wanted


def step_rule(step: str) -> Rule:
    """Returns the rule that tells whether a client survives the step with this id. Raises LookupError."""
    return next(made() for family in _FAMILIES for made in family if made.is_step and made.id == step)


def find_provocation(key: str) -> Rule:
    """Returns the rule for a key such as W8/slices; the id alone is enough if it has one provocation. Raises UnknownRule."""
    id_, _, name = key.partition("/")
    rules = [rule for rule in all_rules() if rule.id == known_ids([id_])[0]]
    found = [rule for rule in rules if rule.name == name.lower()] if name else rules
    if len(found) != 1:
        raise UnknownRule(f"{key} is not a provocation; there are {', '.join(rule.key for rule in rules)}")
    return found[0]


def choose_rules(ids: Sequence[str] | None, legality: Sequence[str]) -> list[Rule]:
    """Returns the rules with the given ids; without ids, the rules of the given classes. Raises UnknownRule."""
    known = all_rules()
    if ids is not None:
        wanted = known_ids(ids)
        if not wanted:
            raise UnknownRule(f"no rule is named; there are {', '.join(_ids(known))}")
        return [rule for rule in known if rule.id in wanted]
    classes = {one.upper() for one in legality}
    if not classes or not classes <= {"A", "B", "C"}:
        raise UnknownRule("the classes of legality are A, B and C")
    return [rule for rule in known if rule.legality in classes]


def _ids(rules: Sequence[Rule]) -> list[str]:
    return list(dict.fromkeys(rule.id for rule in rules))
