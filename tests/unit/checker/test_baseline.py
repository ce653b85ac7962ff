"""What the baseline run learns."""

from __future__ import annotations

from fakekube.checker.baseline import _without_repairs
from fakekube.checker.reaction import Effect, EffectKind, Reaction

DELETE = Effect(EffectKind.REQUEST, "configmaps", "{}-label", ("delete",))
TELL = Effect(EffectKind.REQUEST, "services", "{}", ("patch",))
REPAIR = Effect(EffectKind.REQUEST, "configmaps", "{}-label", ("patch",))
STATUS = Effect(EffectKind.REQUEST, "configmaps/status", "{}-label", ("patch",))
CHILD = Effect(EffectKind.CHILD, "configmaps", "{}-label")


def test_a_child_that_is_made_again_before_it_is_gone_is_no_reaction_to_a_deletion() -> None:
    sent = Reaction(dict.fromkeys([DELETE, TELL, REPAIR, STATUS, CHILD], 1))
    assert list(_without_repairs(sent, {"configmaps": 1}).effects) == [DELETE, TELL]
    assert list(_without_repairs(sent, {}).effects) == list(sent.effects)
