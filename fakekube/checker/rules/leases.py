"""Rules about leader election with leases (L1)."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from fakekube.base.golang.timestamps import print_micro_time
from fakekube.checker.rule import Rule
from fakekube.checker.trace import LEASES
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.writes import refusable_writes, refuse_writes, writes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakekube.base.objects import Object
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial

#: The name of the other candidate.
OTHER = "check-another-candidate"

#: The fields of which the lease of an election has at least one. A lease that only tells that its holder lives, such as that of a
#: node, has none of them, and nobody else wants it (k8s.io/component-helpers/apimachinery/lease).
_OF_ELECTIONS = frozenset({"acquireTime", "leaseTransitions"})

#: How much too early a takeover may appear because of latency, in seconds.
_TOLERANCE = 0.5
#: How many seconds the clock of a dead holder was ahead.
_AHEAD = 3600.0
#: For how many more seconds than the client's own duration the other candidate holds the lease.
_LONGER = 7
#: How many times its longest pause the next one of a client may take, and the longest that is waited for, in seconds.
_NEXT, _LONGEST_PAUSE = 2.2, 20.0


def _time(ago: float = 0.0) -> str:
    return print_micro_time(datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=ago))


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
    expected_seconds = 25.0

    lease: Object
    """The lease that another candidate has created."""

    def require(self, baseline: Baseline) -> None:
        self.lease_of(baseline)

    @staticmethod
    def lease_of(baseline: Baseline) -> Object:
        """Returns the lease by which the client is elected in the baseline run. Raises NotExercised if there is none."""
        for call in reversed(baseline.trial.trace.since()):
            if call.collection != LEASES or not call.is_write or not call.succeeded or not isinstance(call.answer, dict):
                continue
            spec = call.answer.get("spec") or {}
            if (spec.get("leaseDurationSeconds") or 0) > 1 and not _OF_ELECTIONS.isdisjoint(spec):
                return call.answer
        raise NotExercised("the client acquires no lease of an election")

    @staticmethod
    def holder(trial: Trial, lease: Object) -> str:
        metadata = lease["metadata"]
        found = trial.cluster.get(LEASES, metadata["name"], namespace=metadata["namespace"])
        return str(found["spec"].get("holderIdentity") or "")

    @staticmethod
    def hold(trial: Trial, lease: Object, **spec: Any) -> None:
        """Changes the spec of the lease as another candidate."""
        metadata = lease["metadata"]
        trial.cluster.patch(LEASES, metadata["name"], {"spec": spec}, namespace=metadata["namespace"])

    def create(self, trial: Trial, lease: Object, *, duration: int, renewed_ago: float) -> None:
        """Creates the lease with another candidate as the holder."""
        metadata = {"name": lease["metadata"]["name"], "namespace": lease["metadata"]["namespace"]}
        spec = {"holderIdentity": OTHER, "leaseDurationSeconds": duration, "leaseTransitions": 1}
        times = {"renewTime": _time(renewed_ago), "acquireTime": _time(renewed_ago)}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {**spec, **times}}
        trial.cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": metadata["namespace"]}})
        trial.cluster.create(body)
        self.lease = body


def _takeovers(trial: Trial, name: str) -> list[Call]:
    """Returns the client's successful writes of a lease."""
    return [
        call
        for call in trial.trace.since(trial.provoked_at)
        if call.collection == LEASES and call.is_write and call.succeeded and call.name in (name, "")
    ]


class SkewedClock(Election):
    """Another candidate holds the lease and renews it; its clock is an hour behind."""

    name = "behind"
    provocation = "the holder's clock is an hour behind"
    at_start = True

    held: bool = True
    taken: bool = False
    copy: Copy | None = None
    """A copy that is made while the other candidate leads."""

    def prepare(self, trial: Trial) -> None:
        lease = self.lease_of(trial.baseline)
        self.create(trial, lease, duration=int(lease["spec"]["leaseDurationSeconds"]), renewed_ago=3600.0)

    def provoke(self, trial: Trial) -> None:
        lease = self.lease
        seen = trial.await_until(lambda: any(call.collection == LEASES for call in trial.trace.since()), trial.reaction_timeout)
        if not seen:
            raise NotExercised("the client did not ask for its lease")
        self.copy = trial.stimulate()
        end = trial.now + lease["spec"]["leaseDurationSeconds"] + 2.0
        while trial.now < end and not self.find_failure(trial):
            self.hold(trial, lease, renewTime=_time(3600.0))
            trial.wait(0.5)
        self.held = False
        self.hold(trial, lease, holderIdentity="", leaseDurationSeconds=1, renewTime=None, acquireTime=None)

    def find_failure(self, trial: Trial) -> Verdict | None:
        if self.taken:
            return self._failure(trial)
        if self.held and self.holder(trial, self.lease) != OTHER:
            self.taken = True
            return self._failure(trial)
        return self._judge_work(trial) if self.held else None

    def _judge_work(self, trial: Trial) -> Verdict | None:
        """Judges whether the client reacts to a copy while another candidate leads."""
        copy = self.copy
        written = _writes_for(trial, copy, copy.mark) if copy else []
        if not written:
            return None
        return Verdict.failure(
            f"two leaders: the client writes while {OTHER} has the lease {self.lease['metadata']['name']}",
            *trial.excerpt(written),
        )

    def _failure(self, trial: Trial) -> Verdict:
        name = self.lease["metadata"]["name"]
        return Verdict.failure(
            f"took the lease {name}, which its holder renewed every 0.5 s: it trusts renewTime",
            *trial.excerpt(_takeovers(trial, name)),
        )


class LongerDuration(Election):
    """A dead candidate holds the lease with a longer duration than the client's own; its clock was an hour ahead."""

    name = "ahead"
    provocation = "the record of a dead holder says a longer duration than the client's own, and its clock was an hour ahead"
    at_start = True
    expected_seconds = 35.0

    def prepare(self, trial: Trial) -> None:
        lease = self.lease_of(trial.baseline)
        self.create(trial, lease, duration=int(lease["spec"]["leaseDurationSeconds"]) + _LONGER, renewed_ago=-_AHEAD)

    def provoke(self, trial: Trial) -> None:
        lease = self.lease
        name, duration = lease["metadata"]["name"], lease["spec"]["leaseDurationSeconds"]
        trial.await_until(lambda: bool(_takeovers(trial, name)), lambda since: duration * 2.5 + trial.reaction_timeout(since))

    def find_failure(self, trial: Trial) -> Verdict | None:
        lease = self.lease
        name, duration = lease["metadata"]["name"], lease["spec"]["leaseDurationSeconds"]
        taken = _takeovers(trial, name)
        seen = [call for call in trial.trace.since() if call.collection == LEASES and call.status == 200 and not call.is_write]
        if not taken or not seen:
            return None
        after = taken[0].at - seen[0].at
        if after >= duration - _TOLERANCE:
            return None
        return Verdict.failure(
            f"took the lease {name} {after:.1f} s after it first read it, though leaseDurationSeconds is {duration}",
            *trial.excerpt([seen[0], *taken[:2]]),
        )


class LostLease(Election):
    """The lease cannot be renewed, and another candidate takes it when it has expired. Meanwhile writes for a copy fail."""

    name = "errors"
    provocation = "renewing fails until another candidate has the lease"
    converges = False

    #: After how many durations of the lease the other candidate takes it.
    DURATIONS = 1.0

    mark: int = -1
    copies: Sequence[Copy] = ()
    """What was created before the other candidate took the lease, and after that."""

    def provoke(self, trial: Trial) -> None:
        lease = self.lease_of(trial.baseline)
        duration = lease["spec"]["leaseDurationSeconds"]
        with refuse_writes(trial, refusable_writes(trial.baseline)):
            begun = trial.stimulate()  # whoever repeats its writes has to look at the lease before each attempt
            self.disturb(trial)
            trial.wait(self.DURATIONS * duration + 1.0)
            self.hold(trial, lease, holderIdentity=OTHER, renewTime=_time(), leaseDurationSeconds=3600)
            self.mark = trial.trace.mark()
            repeated = trial.trace.refused_writes(begun.mark)
        self.copies = (begun, trial.stimulate())
        longest = max((pause for one in repeated for pause in one.pauses()), default=0.0)
        trial.wait(max(trial.baseline.seconds_to_react(4.0), min(_NEXT * longest, _LONGEST_PAUSE)))

    def disturb(self, trial: Trial) -> None:
        """Makes the client's renewals of its lease fail from now on."""
        trial.faults.on("get,list,update,patch,create", LEASES).status(
            500, message="etcdserver: request timed out", label="not renewed"
        )

    def judge(self, trial: Trial) -> Verdict:
        for copy in self.copies:
            written = _writes_for(trial, copy, self.mark)
            if written:
                return Verdict.failure(
                    "two leaders: the client still writes after another candidate has taken its lease", *trial.excerpt(written)
                )
        if trial.loop:
            return Verdict.failure(f"hot loop: {trial.loop}", *trial.excerpt())
        return Verdict.success(trial.ended or "it stopped writing")


class HangingRenewal(LostLease):
    """The requests that renew the lease are never answered.

    A leader may try to release its lease before it stops: client-go allows this another renew deadline, which is shorter than the
    duration of the lease.
    """

    name = "hangs"
    provocation = "renewing hangs until another candidate has the lease"
    expected_seconds = 40.0
    DURATIONS = 2.0

    def disturb(self, trial: Trial) -> None:
        trial.faults.on("get,list,update,patch,create", LEASES).hang(label="not answered")


class DeletedLease(Election):
    """The lease is deleted while the client leads."""

    name = "deleted"
    provocation = "the lease is deleted while the client leads"
    obligation = "a leader whose lease is deleted creates it again, or stops leading"
    advice = "treat 404 for the lease as a lease that nobody has: create it, and lead when that has succeeded"
    converges = False
    expected_seconds = 15.0

    #: How many durations of the lease the client may take to create it again.
    CREATED_WITHIN = 2.0

    copy: Copy | None = None
    mark: int = -1

    def provoke(self, trial: Trial) -> None:
        lease = self.lease_of(trial.baseline)
        name, namespace = lease["metadata"]["name"], lease["metadata"]["namespace"]
        trial.cluster.delete(LEASES, name, namespace=namespace)

        def is_there() -> bool:
            return any(one["metadata"]["name"] == name for one in trial.cluster.list(LEASES, namespace=namespace))

        if trial.await_until(is_there, self.CREATED_WITHIN * lease["spec"]["leaseDurationSeconds"] + _LONGER):
            return
        self.mark = trial.trace.mark()
        self.copy = trial.stimulate()
        trial.wait(trial.baseline.seconds_to_react(2.0))

    def judge(self, trial: Trial) -> Verdict:
        copy = self.copy
        written = _writes_for(trial, copy, self.mark) if copy else []
        if written:
            return Verdict.failure("leads without a lease, which was deleted and not created again", *trial.excerpt(written))
        return Verdict.success(trial.ended) if trial.ended or copy is not None else super().judge(trial)


class GuardedUpdate(Election):
    """Another candidate writes the lease just before the client renews it."""

    name = "taken"
    provocation = "another candidate takes the lease just before it is renewed"
    converges = False

    taken_at: float | None = None
    duration: int = 1
    mark: int = -1
    idle: str = ""

    def provoke(self, trial: Trial) -> None:
        lease = self.lease_of(trial.baseline)
        duration = int(lease["spec"]["leaseDurationSeconds"])

        def take(obj: Object) -> Object:
            obj["spec"] |= {
                "holderIdentity": OTHER,
                "renewTime": _time(),
                "acquireTime": _time(),
                "leaseDurationSeconds": duration,
            }
            if self.taken_at is None:
                self.taken_at = trial.now
            return obj

        name = lease["metadata"]["name"]
        fault = trial.faults.on("update,patch", LEASES, name=name).conflict(take, times=1, label="another candidate")
        if not trial.await_until(lambda: fault.hits > 0, duration * 2.0):
            self.idle = (
                f"leads, but has not renewed the lease {name} for {duration * 2.0:.0f} s; leaseDurationSeconds is {duration}"
            )
            return
        self.duration = duration
        self.mark = trial.trace.mark()
        trial.wait(min(duration - 2 * _TOLERANCE, 5.0))

    def judge(self, trial: Trial) -> Verdict:
        if self.idle:
            return Verdict.failure(self.idle, *trial.excerpt(), by_time=True)
        if self.taken_at is None:
            return super().judge(trial)
        taken_at, duration = self.taken_at, self.duration
        for call in trial.trace.since(trial.provoked_at):
            end = call.end
            if call.collection != LEASES or not call.is_write or not call.succeeded or end is None:
                continue
            if taken_at < end < taken_at + duration - _TOLERANCE:
                return Verdict.failure("overwrote the lease that another candidate had just taken", *trial.excerpt([call]))
        return Verdict.success(trial.ended or "")


def _writes_for(trial: Trial, copy: Copy, mark: int) -> list[Call]:
    """Returns the writes for a copy that began after a mark."""
    return [call for call in writes_of(trial.trace.since(mark)) if call.mentions(copy.token)]


RULES = (SkewedClock, LongerDuration, LostLease, HangingRenewal, DeletedLease, GuardedUpdate)
