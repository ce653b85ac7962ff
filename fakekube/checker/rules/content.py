"""Rules about answers with unfamiliar content: warnings, compression, unknown fields and types of events (N1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.checker.occasions import asked_again, await_long_watches, require_resumption, writes_of
from fakekube.checker.provocations import asked_revision
from fakekube.checker.rule import NotExercised, Rule, Verdict, Word
from fakekube.checker.rules.initial_events import require_lists
from fakekube.checker.rules.watch_errors import expire

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell
    from fakekube.checker.trace import Call
    from fakekube.powers.exchange import Exchange

__all__ = ["RULES"]

_NEGOTIATION = "API conventions, compatibility"


def suspected(verdict: Verdict) -> Verdict:
    """Returns a warning instead of a failure."""
    return Verdict.warned(*verdict.evidence) if verdict.word is Word.FAIL else verdict


class Content(Rule):
    """The base class of the provocations of N1."""

    id = "N1"
    obligation = "a client tolerates unknown headers, fields and types of events"
    advice = "ignore unknown fields and events of unknown types; log warnings"
    source = _NEGOTIATION
    lasts = 6.0

    def judge(self, spell: Spell) -> Verdict:
        """Returns a failure only for a client that ends or loops; a slow one may still be in its backoff."""
        return suspected(super().judge(spell)) if not (spell.ended or spell.loop) else super().judge(spell)


class Warnings(Content):
    """Answers have Warning headers: a policy warns about each write, and versions are deprecated."""

    provocation = "Warning headers"
    at_start = True

    def prepare(self, spell: Spell) -> None:
        for definition in spell.sample.definitions:
            found = spell.cluster.get("customresourcedefinitions", definition["metadata"]["name"])
            for version in found["spec"]["versions"]:
                version["deprecated"] = True
            patch = {"spec": {"versions": found["spec"]["versions"]}}
            spell.cluster.patch("customresourcedefinitions", found["metadata"]["name"], patch)
        everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
        spec = {
            "matchConstraints": {"resourceRules": [everything]},
            "validations": [{"expression": "false", "message": "checked"}],
        }
        policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
        spell.cluster.create({**policy, "metadata": {"name": "check-warns"}, "spec": spec})
        binding = {"policyName": "check-warns", "validationActions": ["Warn"]}
        spell.cluster.create(
            {**policy, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "check-warns"}, "spec": binding}
        )

    def judge_trace(self, spell: Spell) -> Verdict:
        deprecated = {definition["metadata"]["name"] for definition in spell.sample.definitions}
        calls = [call for call in spell.trace.since() if call.succeeded]
        warned = len({call.number for call in [*writes_of(calls), *(call for call in calls if call.collection in deprecated)]})
        return Verdict.passed(f"{warned} answers with warnings") if warned else Verdict.not_exercised("no answer had a warning")


class UnknownEvent(Content):
    """A watch delivers an event of an unknown type."""

    provocation = "an event of an unknown type"
    legality = "B"

    def provoke(self, spell: Spell) -> None:
        told: set[str] = set()

        def answer(exchange: Exchange) -> tuple[int, Any] | None:
            if asked_revision(exchange) == 0 or "sendInitialEvents" in exchange.query or exchange.path in told:
                return None
            told.add(exchange.path)
            return _future_event(exchange)

        for _ in range(_ROUNDS):
            require_resumption(spell)
            spell.stimulate()
            spell.await_all()
            await_long_watches(spell)
            with spell.faults.on("watch").intercept(answer, label="unknown event type"):
                asked_again(spell, spell.end_watches())
            if told:
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

    provocation = "a list beyond 128 KiB is compressed"

    def provoke(self, spell: Spell) -> None:
        if not any("gzip" in call.headers.get("accept-encoding", "") for call in spell.trace if call.is_list):
            raise NotExercised("the client does not accept compressed lists")
        spell.stimulate(_enlarged)
        spell.await_all()
        expire(spell)
        require_lists(spell)

    def judge_trace(self, spell: Spell) -> Verdict:
        compressed = [call for call in spell.trace.since(spell.provoked_at) if call.is_list and _is_compressed(call)]
        return Verdict.passed() if compressed else Verdict.not_exercised("no list was compressed")


def _enlarged(obj: dict[str, Any]) -> None:
    obj["metadata"].setdefault("annotations", {})["check.fakekube.dev/large"] = "large " * 40_000


def _is_compressed(call: Call) -> bool:
    return dict(call.exchange.answer_headers).get("Content-Encoding") == "gzip"


class UnknownFields(Content):
    """A Status has unknown fields."""

    provocation = "a Status with unknown fields"
    legality = "B"

    STATUS: ClassVar[dict[str, Any]] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"shardInfo": {"selector": "none"}},
        "status": "Failure",
        "message": "the server is currently unable to handle the request",
        "reason": "ServiceUnavailable",
        "details": {"hints": ["a field of the future"]},
        "code": 503,
        "hints": {"retry": True},
    }

    def provoke(self, spell: Spell) -> None:
        with spell.faults.on("list,watch").status(503, times=2, label="unavailable"):
            require_resumption(spell)
        spell.faults.on("list,watch").intercept(lambda exchange: (503, self.STATUS), times=2, label="unknown fields")
        spell.faults.on("watch").end(label="ended").remove()


RULES = (Warnings, CompressedLists, UnknownEvent, UnknownFields)
