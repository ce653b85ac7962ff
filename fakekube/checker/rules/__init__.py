"""The table of rules, by families."""

from __future__ import annotations

from collections.abc import Sequence

from fakekube.checker.rule import Rule
from fakekube.checker.rules import (
    apply,
    conflicts,
    content,
    credentials,
    deletions,
    discovery,
    identity,
    initial_events,
    leases,
    lists,
    manners,
    retries,
    revisions,
    sieve,
    watch_ends,
    watch_errors,
    watch_events,
)

__all__ = ["UnknownRule", "all_rules", "chosen", "in_order"]

_FAMILIES = (
    watch_errors.RULES,
    watch_ends.RULES,
    watch_events.RULES,
    deletions.RULES,
    initial_events.RULES,
    lists.RULES,
    retries.RULES,
    conflicts.RULES,
    apply.RULES,
    identity.RULES,
    revisions.RULES,
    discovery.RULES,
    credentials.RULES,
    leases.RULES,
    content.RULES,
    manners.RULES,
    sieve.RULES,
)

#: Families of rows in their order in the catalogue.
_ORDER = "WPRCVDALNS"


class UnknownRule(ValueError):
    """There is no rule with that id, or no such class of legality."""


def all_rules() -> list[Rule]:
    """Returns all rules in the order of the catalogue."""
    return in_order([made() for family in _FAMILIES for made in family])


def in_order(rules: Sequence[Rule]) -> list[Rule]:
    """Returns rules in the order of the catalogue."""
    return sorted(rules, key=lambda rule: (_ORDER.index(rule.id[0]), int(rule.id[1:])))


def chosen(ids: Sequence[str] | None, legality: Sequence[str]) -> list[Rule]:
    """Returns the rules with some ids, with all their provocations; without ids, all provocations of some classes.

    Raises UnknownRule.
    """
    known = all_rules()
    if ids is not None:
        wanted = {one.upper() for one in ids}
        unknown = wanted - {rule.id for rule in known}
        if unknown or not wanted:
            raise UnknownRule(f"there is no rule {', '.join(sorted(unknown))}; there are {', '.join(_ids(known))}")
        return [rule for rule in known if rule.id in wanted]
    classes = {one.upper() for one in legality}
    if not classes or not classes <= {"A", "B", "C"}:
        raise UnknownRule("the classes of legality are A, B and C")
    return [rule for rule in known if rule.legality in classes]


def _ids(rules: Sequence[Rule]) -> list[str]:
    return list(dict.fromkeys(rule.id for rule in rules))
