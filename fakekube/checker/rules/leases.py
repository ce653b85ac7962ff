"""Rules about leader election with leases (L1)."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from fakekube.checker.occasions import LEASES, writes_of
from fakekube.checker.rule import NotExercised, Rule, Verdict

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell
    from fakekube.checker.trace import Call

__all__ = ["RULES"]

Object = dict[str, Any]

_OTHER = "check-another-candidate"

#: How much too early a takeover may appear because of latency, in seconds.
_TOLERANCE = 0.5
#: How many seconds the clock of a dead holder was ahead.
_AHEAD = 3600.0
#: For how many more seconds than the client's own duration the other candidate holds the lease.
_LONGER = 7


def _time(ago: float = 0.0) -> str:
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=ago)
    return then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Election(Rule):
    """The base class of the provocations of L1."""

    id = "L1"
    obligation = (
        "a lease expires when this client has seen no change of its record for leaseDurationSeconds of the record; "
        "a leader that cannot renew stops leading"
    )
    advice = (
        "measure from the last observed change with the local clock; update with resourceVersion; stop before the renew deadline"
    )
    source = "client-go tools/leaderelection (package comment)"
    lasts = 25.0

    @staticmethod
    def lease_of(spell: Spell) -> Object:
        """Returns the lease that the client acquires in the calm run. Raises NotExercised if there is none."""
        for call in reversed(spell.calm.spell.trace.since()):
            if call.collection != LEASES or not call.is_write or not call.succeeded or not isinstance(call.answer, dict):
                continue
            if ((call.answer.get("spec") or {}).get("leaseDurationSeconds") or 0) > 1:
                return call.answer
        raise NotExercised("the client acquires no lease")

    @staticmethod
    def holder(spell: Spell, lease: Object) -> str:
        metadata = lease["metadata"]
        found = spell.cluster.get(LEASES, metadata["name"], namespace=metadata["namespace"])
        return str(found["spec"].get("holderIdentity") or "")

    @staticmethod
    def hold(spell: Spell, lease: Object, **spec: Any) -> None:
        """Changes the spec of the lease as another candidate."""
        metadata = lease["metadata"]
        spell.cluster.patch(LEASES, metadata["name"], {"spec": spec}, namespace=metadata["namespace"])

    def create(self, spell: Spell, lease: Object, *, duration: int, renewed_ago: float) -> None:
        """Creates the lease with another candidate as the holder."""
        metadata = {"name": lease["metadata"]["name"], "namespace": lease["metadata"]["namespace"]}
        spec = {"holderIdentity": _OTHER, "leaseDurationSeconds": duration, "leaseTransitions": 1}
        times = {"renewTime": _time(renewed_ago), "acquireTime": _time(renewed_ago)}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {**spec, **times}}
        spell.cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": metadata["namespace"]}})
        spell.cluster.create(body)
        spell.memory["lease"] = body


def _takeovers(spell: Spell, name: str) -> list[Call]:
    """Returns the client's successful writes of a lease."""
    return [
        call
        for call in spell.trace.since(spell.provoked_at)
        if call.collection == LEASES and call.is_write and call.succeeded and call.name in (name, "")
    ]


class SkewedClock(Election):
    """Another candidate holds the lease and renews it; its clock is an hour behind."""

    provocation = "the holder's clock is an hour behind"
    at_start = True

    def prepare(self, spell: Spell) -> None:
        lease = self.lease_of(spell)
        self.create(spell, lease, duration=int(lease["spec"]["leaseDurationSeconds"]), renewed_ago=3600.0)

    def provoke(self, spell: Spell) -> None:
        lease = spell.memory["lease"]
        seen = spell.await_until(lambda: any(call.collection == LEASES for call in spell.trace.since()), spell.patience)
        if not seen:
            raise NotExercised("the client did not ask for its lease")
        end = spell.now + lease["spec"]["leaseDurationSeconds"] + 2.0
        while spell.now < end and not self.broken(spell):
            self.hold(spell, lease, renewTime=_time(3600.0))
            spell.wait(0.5)
        spell.memory["held"] = False
        self.hold(spell, lease, holderIdentity="", leaseDurationSeconds=1)

    def broken(self, spell: Spell) -> Verdict | None:
        if spell.memory.get("taken"):
            return self._failure(spell)
        if spell.memory.get("held", True) and self.holder(spell, spell.memory["lease"]) != _OTHER:
            spell.memory["taken"] = True
            return self._failure(spell)
        return None

    @staticmethod
    def _failure(spell: Spell) -> Verdict:
        name = spell.memory["lease"]["metadata"]["name"]
        return Verdict.failed(
            f"took the lease {name}, which its holder renewed every 0.5 s: it trusts renewTime",
            *spell.excerpt(_takeovers(spell, name)),
        )


class LongerDuration(Election):
    """A dead candidate holds the lease with a longer duration than the client's own; its clock was an hour ahead."""

    provocation = "the record of a dead holder says a longer duration than the client's own, and its clock was an hour ahead"
    at_start = True
    lasts = 35.0

    def prepare(self, spell: Spell) -> None:
        lease = self.lease_of(spell)
        self.create(spell, lease, duration=int(lease["spec"]["leaseDurationSeconds"]) + _LONGER, renewed_ago=-_AHEAD)

    def provoke(self, spell: Spell) -> None:
        lease = spell.memory["lease"]
        name, duration = lease["metadata"]["name"], lease["spec"]["leaseDurationSeconds"]
        spell.await_until(lambda: bool(_takeovers(spell, name)), lambda since: duration * 2.5 + spell.patience(since))

    def broken(self, spell: Spell) -> Verdict | None:
        lease = spell.memory["lease"]
        name, duration = lease["metadata"]["name"], lease["spec"]["leaseDurationSeconds"]
        taken = _takeovers(spell, name)
        seen = [call for call in spell.trace.since() if call.collection == LEASES and call.status == 200 and not call.is_write]
        if not taken or not seen:
            return None
        after = taken[0].at - seen[0].at
        if after >= duration - _TOLERANCE:
            return None
        return Verdict.failed(
            f"took the lease {name} {after:.1f} s after it first read it, though leaseDurationSeconds is {duration}",
            *spell.excerpt([seen[0], *taken[:2]]),
        )


class LostLease(Election):
    """The lease cannot be renewed, and another candidate takes it when it has expired."""

    provocation = "renewing fails until another candidate has the lease"
    converges = False

    def provoke(self, spell: Spell) -> None:
        lease = self.lease_of(spell)
        duration = lease["spec"]["leaseDurationSeconds"]
        self.disturb(spell)
        spell.wait(duration + 1.0)
        self.hold(spell, lease, holderIdentity=_OTHER, renewTime=_time(), leaseDurationSeconds=3600)
        spell.memory["mark"] = spell.trace.mark()
        spell.memory["copy"] = spell.stimulate()
        spell.wait(4.0 + 2 * spell.calm.reaction_seconds)

    def disturb(self, spell: Spell) -> None:
        """Makes the client's renewals of its lease fail from now on."""
        spell.faults.on("get,list,update,patch,create", LEASES).status(
            500, message="etcdserver: request timed out", label="not renewed"
        )

    def judge(self, spell: Spell) -> Verdict:
        if "copy" in spell.memory:
            token = spell.memory["copy"].token
            written = [call for call in writes_of(spell.trace.since(spell.memory["mark"])) if call.mentions(token)]
            if written:
                return Verdict.failed(
                    "two leaders: the client still writes after another candidate has taken its lease", *spell.excerpt(written)
                )
        if spell.loop:
            return Verdict.failed(f"hot loop: {spell.loop}", *spell.excerpt())
        return Verdict.passed(spell.ended or "it stopped writing")


class HangingRenewal(LostLease):
    """The requests that renew the lease are never answered."""

    provocation = "renewing hangs until another candidate has the lease"

    def disturb(self, spell: Spell) -> None:
        spell.faults.on("get,list,update,patch,create", LEASES).hang(label="not answered")


class GuardedUpdate(Election):
    """Another candidate writes the lease just before the client renews it."""

    provocation = "another candidate takes the lease just before it is renewed"
    converges = False

    def provoke(self, spell: Spell) -> None:
        lease = self.lease_of(spell)
        duration = int(lease["spec"]["leaseDurationSeconds"])

        def take(obj: Object) -> Object:
            obj["spec"] |= {
                "holderIdentity": _OTHER,
                "renewTime": _time(),
                "acquireTime": _time(),
                "leaseDurationSeconds": duration,
            }
            spell.memory.setdefault("taken_at", spell.now)
            return obj

        name = lease["metadata"]["name"]
        fault = spell.faults.on("update,patch", LEASES, name=name).conflict(take, times=1, label="another candidate")
        if not spell.await_until(lambda: fault.hits > 0, duration * 2.0):
            spell.memory["idle"] = (
                f"leads, but has not renewed the lease {name} for {duration * 2.0:.0f} s; leaseDurationSeconds is {duration}"
            )
            return
        spell.memory["duration"] = duration
        spell.memory["mark"] = spell.trace.mark()
        spell.wait(min(duration - 2 * _TOLERANCE, 5.0))

    def judge(self, spell: Spell) -> Verdict:
        if "idle" in spell.memory:
            return Verdict.failed(spell.memory["idle"], *spell.excerpt(), by_time=True)
        if "taken_at" not in spell.memory:
            return super().judge(spell)
        taken_at, duration = spell.memory["taken_at"], spell.memory.get("duration", 1)
        for call in spell.trace.since(spell.provoked_at):
            end = call.end
            if call.collection != LEASES or not call.is_write or not call.succeeded or end is None:
                continue
            if taken_at < end < taken_at + duration - _TOLERANCE:
                return Verdict.failed("overwrote the lease that another candidate had just taken", *spell.excerpt([call]))
        return Verdict.passed(spell.ended or "")


RULES = (SkewedClock, LongerDuration, LostLease, HangingRenewal, GuardedUpdate)
