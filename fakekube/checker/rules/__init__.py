"""The table of rules: one module for each family."""

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
    idle,
    initial_events,
    leases,
    lists,
    retries,
    revisions,
    sieve,
    user_agent,
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
    user_agent.RULES,
    idle.RULES,
    sieve.RULES,
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


def chosen(ids: Sequence[str] | None, legality: Sequence[str]) -> list[Rule]:
    """Returns the rules with the given ids; without ids, the rules of the given classes. Raises UnknownRule."""
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
