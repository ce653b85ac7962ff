"""Rules about answers with unfamiliar content: warnings, compression, unknown fields and types of events (N1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.checker.provocations import AddWarning, arm, asked_revision
from fakekube.checker.rule import Rule
from fakekube.checker.rules.lists import require_lists
from fakekube.checker.rules.watch_errors import expire
from fakekube.checker.verdict import NotExercised, Outcome, Verdict
from fakekube.checker.waits import await_long_watches, await_requests, require_resumption
from fakekube.checker.writes import writes_of

if TYPE_CHECKING:
    from fakekube.checker.trace import Call
    from fakekube.checker.trial import Baseline, Trial
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault

_NEGOTIATION = "API conventions, compatibility"


class Content(Rule):
    """The base class of the provocations of N1."""

    id = "N1"
    obligation = "a client tolerates unknown headers, fields and types of events"
    advice = "ignore unknown fields and events of unknown types; log warnings"
    source = _NEGOTIATION
    expected_seconds = 6.0

    def judge(self, trial: Trial) -> Verdict:
        """Returns a failure only for a client that ends or loops; a slow one may still be in its backoff."""
        verdict = super().judge(trial)
        return verdict if trial.ended or trial.loop else verdict.as_warning()


class Warnings(Content):
    """Answers have Warning headers: a policy warns about each write, and versions are deprecated."""

    name = "warnings"
    provocation = "Warning headers"
    fast = True
    at_start = True

    reads: Fault
    """The fault that adds warnings to the answers of reads."""

    def prepare(self, trial: Trial) -> None:
        for definition in trial.sample.definitions:
            found = trial.cluster.get("customresourcedefinitions", definition["metadata"]["name"])
            for version in found["spec"]["versions"]:
                version["deprecated"] = True
            patch = {"spec": {"versions": found["spec"]["versions"]}}
            trial.cluster.patch("customresourcedefinitions", found["metadata"]["name"], patch)
        everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
        spec = {
            "matchConstraints": {"resourceRules": [everything]},
            "validations": [{"expression": "false", "message": "checked"}],
        }
        policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
        trial.cluster.create({**policy, "metadata": {"name": "check-warns"}, "spec": spec})
        binding = {"policyName": "check-warns", "validationActions": ["Warn"]}
        trial.cluster.create(
            {**policy, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "check-warns"}, "spec": binding}
        )
        self.reads = arm(trial.faults.on("get,list"), AddWarning("deprecated, checked"), label="warning")

    def judge_trace(self, trial: Trial) -> Verdict:
        warned = self.reads.hits + sum(call.succeeded for call in writes_of(trial.trace.since()))
        return Verdict.success(f"{warned} answers with warnings") if warned else Verdict.not_exercised("no answer had a warning")


class UnknownEvent(Content):
    """A watch delivers an event of an unknown type."""

    name = "event"
    provocation = "an event of an unknown type"
    distorts = True
    watches = True
    steps = ("W5",)
    legality = "B"

    def provoke(self, trial: Trial) -> None:
        answered: set[str] = set()

        def answer(exchange: Exchange) -> tuple[int, Any] | None:
            if asked_revision(exchange) == 0 or "sendInitialEvents" in exchange.query or exchange.path in answered:
                return None
            answered.add(exchange.path)
            return _future_event(exchange)

        for _ in range(_ROUNDS):
            require_resumption(trial)
            trial.stimulate()
            trial.await_all()
            await_long_watches(trial)
            with trial.faults.on("watch").intercept(answer, label="unknown event type"):
                await_requests(trial, trial.end_watches())
            if answered:
                return
        raise NotExercised("the client does not resume a watch from a revision")


#: How many times the watches are ended until the client resumes one.
_ROUNDS = 3


def _future_event(exchange: Exchange) -> tuple[int, Any] | None:
    revision = exchange.query.get("resourceVersion", "")
    kind = {"kind": "Future", "apiVersion": "v1"}
    return 200, {"type": "FUTURE", "object": {**kind, "metadata": {"resourceVersion": revision}}}


class CompressedLists(Content):
    """A list is so large that the server compresses it for clients that accept gzip."""

    name = "gzip"
    provocation = "a list beyond 128 KiB is compressed"
    watches = True
    steps = ("W14", "W1")

    def require(self, baseline: Baseline) -> None:
        reads = [call for call in baseline.trial.trace if call.is_list or call.is_watch]
        if not any("gzip" in call.headers.get("accept-encoding", "") for call in reads):
            raise NotExercised("the client does not accept compressed answers")

    def provoke(self, trial: Trial) -> None:
        for _ in range(_LARGE_COPIES):
            trial.stimulate(_enlarge)
        trial.await_all()
        require_lists(trial)
        trial.require_watch()
        expire(trial)

    def judge(self, trial: Trial) -> Verdict:
        """Returns a failure also for a client that reads the compressed list again and again, and never watches after it."""
        verdict = super().judge(trial)
        calls = [call for call in trial.trace.since(trial.provoked_at) if call.stream in trial.baseline.streams]
        lists = [call for call in calls if call.is_list and call.status == 200 and _is_compressed(call)]
        watched = any(call.is_watch and lists and call.number > lists[0].number for call in calls)
        if verdict.outcome is Outcome.WARN and len(lists) >= _READ_AGAIN and not watched:
            return Verdict.failure(f"lists {len(lists)} times and does not use the compressed answers", *trial.excerpt(lists))
        return verdict

    def judge_trace(self, trial: Trial) -> Verdict:
        compressed = [call for call in trial.trace.since(trial.provoked_at) if call.is_list and _is_compressed(call)]
        return Verdict.success() if compressed else Verdict.not_exercised("no list was compressed")


def _enlarge(obj: dict[str, Any]) -> None:
    obj["metadata"].setdefault("annotations", {})["check.fakekube.dev/large"] = "large " * 9_000


#: How many compressed lists a client reads that can use none of them.
_READ_AGAIN = 3
#: How many copies make a list larger than 128 KiB. Each is so small that a client may keep it in another annotation.
_LARGE_COPIES = 3


def _is_compressed(call: Call) -> bool:
    return dict(call.exchange.answer_headers).get("Content-Encoding") == "gzip"


class UnknownFields(Content):
    """A Status has unknown fields."""

    name = "status"
    provocation = "a Status with unknown fields"
    watches = True
    steps = ("W5",)
    legality = "B"

    STATUS: ClassVar[dict[str, Any]] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"shardInfo": {"selector": "none"}},
        "status": "Failure",
        "message": "a Status of the future",
        "reason": "ServiceUnavailable",
        "details": {"hints": ["a field of the future"]},
        "code": 503,
        "hints": {"retry": True},
    }

    def provoke(self, trial: Trial) -> None:
        with trial.faults.on("list,watch").status(503, times=2, label="unavailable"):
            require_resumption(trial)
        trial.faults.on("list,watch").intercept(lambda exchange: (503, self.STATUS), times=2, label="unknown fields")
        trial.faults.on("watch").end(label="ended").remove()


class BareStatus(UnknownFields):
    """The Status of an ERROR event has only the fields that it must have."""

    name = "bare"
    provocation = "an ERROR event whose Status has neither a code nor a reason"
    advice = "read code, reason and details of a Status as fields that may be missing"

    STATUS: ClassVar[dict[str, Any]] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the backend went away",
    }

    def provoke(self, trial: Trial) -> None:
        require_resumption(trial)
        await_long_watches(trial)
        bare = trial.faults.on("watch").intercept(lambda exchange: (200, {"type": "ERROR", "object": self.STATUS}), label="bare")
        with bare:
            await_requests(trial, trial.end_watches())


class MarkedVersion(Content):
    """The minor of the server has a plus sign, as those of providers that build their own servers have."""

    name = "version"
    provocation = "the minor of the server's version is not a number: 37+"
    advice = "read the digits at the beginning of the minor, or ask discovery for what is needed"
    source = "Kubernetes docs, version.Info; k8s.io/apimachinery/pkg/version (minor of a build with changes)"
    at_start = True
    legality = "B"

    def require(self, baseline: Baseline) -> None:
        if not any(_asks_version(call.path) for call in baseline.trial.trace):
            raise NotExercised("the client does not ask for the version")

    def prepare(self, trial: Trial) -> None:
        known = trial.cluster.call("GET", "/version")
        marked = {**known, "minor": f"{known['minor']}+", "gitVersion": f"{known['gitVersion']}-provider.1"}

        def answer(exchange: Exchange) -> tuple[int, Any] | None:
            return (200, marked) if _asks_version(exchange.path) else None

        trial.faults.on("*", path="*").intercept(answer, label="marked version")


def _asks_version(path: str) -> bool:
    return path.rstrip("/") == "/version"


RULES = (Warnings, CompressedLists, UnknownEvent, UnknownFields, BareStatus, MarkedVersion)
