"""How many replicas which ReplicaSet gets."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.controllers.deployment.rollback import get_rollback_to
from fakekube.controllers.deployment.utils import (
    get_proportion,
    last_revision,
    max_revision,
    max_surge,
    max_unavailable,
    new_replica_set_annotations,
    new_rs_new_replicas,
    resolve_fenceposts,
)

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"


def deployment(replicas: int, surge: int | str = "25%", unavailable: int | str = "25%", **annotations: str) -> dict[str, Any]:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {"metadata": {"annotations": annotations}, "spec": {"replicas": replicas, "strategy": strategy}, "status": {}}


def replica_set(replicas: int, **annotations: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in annotations.items()}
    return {
        "metadata": {"annotations": {f"deployment.kubernetes.io/{key}": value for key, value in named.items()}},
        "spec": {"replicas": replicas},
    }


@pytest.mark.parametrize(
    ("surge", "unavailable", "desired", "found"),
    [
        (1, 0, 3, (1, 0)),
        ("25%", "25%", 10, (3, 2)),
        ("25%", "25%", 1, (1, 0)),
        (0, 0, 5, (0, 1)),
        ("0%", "10%", 5, (0, 1)),
        (None, None, 4, (0, 1)),
        ("100%", "100%", 4, (4, 4)),
        ("150%", 0, 4, (6, 0)),
    ],
)
def test_surge_is_rounded_up_and_unavailable_down_and_not_both_are_zero(
    surge: int | str | None, unavailable: int | str | None, desired: int, found: tuple[int, int]
) -> None:
    assert resolve_fenceposts(surge, unavailable, desired) == found


def test_max_unavailable_is_at_most_the_replicas() -> None:
    assert max_unavailable(deployment(2, 0, 5)) == 2
    assert max_unavailable(deployment(0)) == 0
    assert max_surge({**deployment(3), "spec": {"replicas": 3, "strategy": {"type": "Recreate"}}}) == 0


@pytest.mark.parametrize(("old", "new", "found"), [(10, 0, 3), (0, 0, 10), (13, 0, 0), (5, 5, 8), (0, 12, 10)])
def test_the_new_replica_set_grows_up_to_max_surge(old: int, new: int, found: int) -> None:
    fresh = replica_set(new)
    assert new_rs_new_replicas(deployment(10), [replica_set(old), fresh], fresh) == found


def test_scaling_a_rollout_is_proportional() -> None:
    scaled = deployment(12, 2, 0)
    old, new = replica_set(6, max_replicas="8"), replica_set(2, max_replicas="8")
    first = get_proportion(old, scaled, 6, 0)
    assert (first, get_proportion(new, scaled, 6, first)) == (5, 1)


def test_revisions_are_remembered_in_the_annotations() -> None:
    owner = deployment(1, mine="x")
    made, changed = new_replica_set_annotations(owner, {}, 1)
    assert changed and made == {"mine": "x", REVISION: "1"}
    again, changed = new_replica_set_annotations(owner, made, 3)
    assert changed and (again[REVISION], again[HISTORY]) == ("3", "1")
    assert new_replica_set_annotations(owner, again, 2) == (again, False)
    third, _ = new_replica_set_annotations(owner, again, 5)
    assert third[HISTORY] == "1,3"


def test_a_long_revision_history_drops_the_oldest() -> None:
    past = ",".join(str(number) for number in range(1000, 1400))
    made, _ = new_replica_set_annotations(deployment(1), {REVISION: "1400", HISTORY: past}, 1401)
    assert len(made[HISTORY]) <= 2000
    assert made[HISTORY].endswith("1399,1400") and not made[HISTORY].startswith("1000")


def test_the_last_revision_is_the_second_highest() -> None:
    sets = [replica_set(0, revision=text) for text in ("3", "1", "7", "x")]
    assert (max_revision(sets), last_revision(sets), last_revision(sets[:1])) == (7, 3, 0)


@pytest.mark.parametrize(
    ("text", "revision"), [("3", 3), ("+3", 3), ("0", 0), ("", None), ("x", None), (" 3", None), ("1_0", None), ("٣", None)]
)
def test_the_revision_of_a_rollback_is_a_number_of_go(text: str, revision: int | None) -> None:
    annotated = deployment(1, **{"deprecated.deployment.rollback.to": text})
    assert get_rollback_to(annotated) == revision
