"""A rule about maps and lists: what an entry of an object has brought goes with the entry (S3).

Invariant: only what the client has made of an added entry is judged when that is removed. Labels and annotations are not removed:
a client cannot tell its own ones in a child from those of others. Whole objects that stay are only suspicious: a client may keep
them on purpose, as volumes are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.checker.alterations import path_text
from fakekube.checker.comparison import GENERATED, Compared
from fakekube.checker.contents import MoreEntries, apply_step, make_two
from fakekube.checker.rule import Rule
from fakekube.checker.rules.history import KeptInStep
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import await_quiet, await_reactions
from fakekube.checker.writes import require_prompt_writes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.alterations import Path
    from fakekube.checker.comparison import Place
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Baseline, Trial

#: The parts of an object from which something goes with an entry.
_GOES_WITH_ENTRY = frozenset({"data", "binaryData", "spec", "status"})


class RemovedEntries(Rule):
    """Each map and each list of a copy gets another entry, which is removed again: its effects are then those of a copy that
    never had it."""

    id = "S3"
    name = "removed"
    fast = True
    provocation = "entries are added to the maps and lists of an object, and removed again"
    obligation = KeptInStep.obligation
    advice = "delete what is not wanted any more: replace maps and lists that belong to the client, instead of adding to them"
    source = KeptInStep.source
    expected_seconds = 6.0

    def __init__(self) -> None:
        self.name_of_copy = ""
        self.followed: set[tuple[Place, Path]] = set()
        """What has followed the added entries: values, and objects with an empty path."""
        self.left: tuple[Place, Path] | None = None
        """What has not followed their removal."""

    def require(self, baseline: Baseline) -> None:
        require_prompt_writes(baseline)

    def provoke(self, trial: Trial) -> None:
        entries = MoreEntries(trial)
        if not entries:
            raise NotExercised("the sample has no map or list to which the API accepts another entry")
        plain = [trial.copies[0], trial.stimulate(), trial.stimulate()]
        await_reactions(trial, plain)
        full = make_two(trial, entries, "more entries in a map or a list")
        *others, changed = plain
        self.name_of_copy = changed.names()[0]

        def compare_added() -> Compared:
            return Compared(trial, others[0], full, changed, _GOES_WITH_ENTRY)

        def is_added() -> bool:
            return not compare_added().stale()

        if is_added():
            raise NotExercised("nothing that the client writes follows another entry of a map or a list")
        self._change(trial, changed, entries.all(), is_added)
        added = compare_added()
        self.followed = {*added.find_followed(), *((place, ()) for place in added.find_made())}
        if not self.followed:
            raise NotExercised("what the client writes follows another entry only if the object has it from the beginning")

        def find_left() -> list[tuple[Place, Path]]:
            compared = Compared(trial, full[0], others, changed, _GOES_WITH_ENTRY)
            left = {*compared.stale(), *((place, ()) for place in compared.find_leftovers())}
            found = sorted(left & self.followed, key=lambda one: (_is_whole(*one), str(one)))
            return [one for one in found if compared.can_change(trial, *one)]

        self._change(trial, changed, entries.removals(), lambda: not find_left())
        self.left = next(iter(find_left()), None)

    @staticmethod
    def _change(trial: Trial, copy: Copy, changes: Sequence[Object], is_done: Callable[[], bool]) -> None:
        """Changes a copy, and waits until the client has done what follows, or has had the time for it."""
        mark = trial.trace.mark()
        apply_step(trial, copy, changes)
        trial.await_until(is_done, trial.reaction_timeout)
        await_quiet(trial, mark, [copy.token])

    def judge_trace(self, trial: Trial) -> Verdict:
        if self.left is None:
            return Verdict.success()
        (resource, name), path = self.left
        whole = _is_whole((resource, name), path)
        what = resource if whole else f"{path_text(path)} of {resource}"
        verdict = Verdict.failure(
            f"{what} for {self.name_of_copy} is as it was while the object had more entries in its maps and lists, although "
            "these have been removed",
            *trial.excerpt(),
            by_time=True,
        )
        return verdict.as_warning() if whole else verdict


def _is_whole(place: Place, path: Path) -> bool:
    """Reports whether what is left is a whole object, as far as it can be told from others."""
    return not path or place[1] == GENERATED


RULES: tuple[type[Rule], ...] = (RemovedEntries,)
