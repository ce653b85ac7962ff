"""Rules about what a client sends and understands at all: content, its name, the economy of its requests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.checker.occasions import LEASES, require_resumption, writes_of
from fakekube.checker.rule import Rule, Verdict, Word

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell
    from fakekube.checker.trace import Call
    from fakekube.powers.exchange import Exchange

__all__ = ["RULES"]

_NEGOTIATION = "API conventions, compatibility"


def suspected(verdict: Verdict) -> Verdict:
    """Returns a warning in place of a failure."""
    return Verdict.warned(*verdict.evidence) if verdict.word is Word.FAIL else verdict


class Content(Rule):
    """Shared by the provocations of N1."""

    id = "N1"
    obligation = "what a client does not know must not disturb it: headers, fields and types of events"
    advice = "ignore unknown fields and events of unknown types; log warnings"
    source = _NEGOTIATION
    lasts = 6.0

    def judge(self, spell: Spell) -> Verdict:
        """Returns a failure for a client that ends or loops; one that is late may still be in its backoff."""
        return suspected(super().judge(spell)) if not (spell.ended or spell.loop) else super().judge(spell)


class Warnings(Content):
    """Answers carry Warning headers: a policy warns of each write, and a version is deprecated."""

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
        warned = [
            call for call in spell.trace.since() if call.collection in deprecated or (call.is_write and call.status is not None)
        ]
        return (
            Verdict.passed(f"{len(warned)} answers with warnings") if warned else Verdict.not_exercised("no answer had a warning")
        )


class UnknownEvent(Content):
    """A watch tells an event of a type that does not exist yet."""

    provocation = "an event of an unknown type"
    legality = "B"

    def provoke(self, spell: Spell) -> None:
        require_resumption(spell)
        watches = {call.collection: call for call in spell.require_watch()}
        for resource in watches:
            spell.faults.on("watch", resource).intercept(_future_event, times=1, label="an event of the future")
        spell.faults.on("watch").end(label="ended").remove()
        spell.await_until(lambda: any(call.exchange.fault for call in spell.trace.since(spell.provoked_at)), spell.patience)


def _future_event(exchange: Exchange) -> tuple[int, Any] | None:
    revision = exchange.query.get("resourceVersion", "")
    kind = {"kind": "Future", "apiVersion": "v1"}
    return 200, {"type": "FUTURE", "object": {**kind, "metadata": {"resourceVersion": revision}}}


class UnknownFields(Content):
    """A Status has fields that do not exist yet."""

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
        spell.faults.on("list,watch").intercept(lambda exchange: (503, self.STATUS), times=2, label="a Status of the future")
        spell.faults.on("watch").end(label="ended").remove()


class UserAgent(Rule):
    """The name of the client is looked at."""

    id = "N2"
    provocation = "nothing: its User-Agent is read"
    obligation = "a User-Agent of its own, so that audit logs, fairness and managedFields tell who it is"
    advice = "set User-Agent to program/version"
    source = "API Priority and Fairness; managedFields (the default manager is the User-Agent's first part)"
    on_calm = True

    #: First parts that say which library sent a request, not which program.
    HTTP_LIBRARIES = (
        "python-urllib",
        "python-requests",
        "python-httpx",
        "python/",
        "aiohttp",
        "openapi-generator",
        "go-http-client",
        "okhttp",
        "java",
        "apache-httpclient",
        "axios",
        "node-fetch",
        "node",
        "undici",
        "curl",
        "wget",
        "swagger-codegen",
    )
    LIBRARIES = ("kr8s", "lightkube", "pykube", "fabric8", "kubernetes-client", "kube-rs", "kubernetesclient")

    def judge(self, spell: Spell) -> Verdict:
        agents = list(dict.fromkeys(call.exchange.agent for call in spell.trace.since()))
        for agent in agents:
            if not agent:
                return Verdict.failed("sends no User-Agent")
            if agent.lower().startswith(self.HTTP_LIBRARIES):
                return Verdict.failed(f"sends the User-Agent of a library: {agent!r}")
        for agent in agents:
            if agent.lower().startswith(self.LIBRARIES):
                return Verdict.warned(f"sends the default User-Agent of a client library: {agent!r}")
        return Verdict.passed(", ".join(agents))


class Economy(Rule):
    """The client of the calm run is left alone with a copy to which it has reacted."""

    id = "N3"
    provocation = "idleness"
    obligation = "no request without a cause: watch instead of asking again, no writes that change nothing"
    advice = "watch what is of interest; compare before each write; give lists a limit or resourceVersion=0"
    source = "API conventions; API Priority and Fairness"
    on_calm = True

    #: How long the client is looked at, at least; how often it may ask the same in this time.
    SECONDS, TIMES = 6.0, 3

    def judge(self, spell: Spell) -> Verdict:
        if spell.bench.ends_by_itself:
            return Verdict.not_exercised("the client ends by itself")
        spell.await_reaction(spell.stimulate())
        spell.wait(1.0 + 3 * spell.calm.reaction_seconds)
        since = spell.now
        spell.wait(self.SECONDS)
        length = spell.now - since
        calls = [call for call in spell.trace.since() if call.at >= since and call.collection != LEASES]
        idle = [call for call in calls if not call.is_write or call.succeeded]  # a refused write is tried again for a cause
        counts: Counter[tuple[str, str]] = Counter((call.verb, call.path) for call in idle if not call.is_watch)
        limit = max(self.TIMES, length / 5)
        for (verb, path), count in counts.most_common(1):
            if count > limit:
                same = [call for call in idle if call.path == path]
                return Verdict.failed(f"{verb} {path} {count} times within {length:.0f} idle seconds", *spell.excerpt(same))
        watches = Counter(call.stream for call in idle if call.is_watch)
        for key, count in watches.most_common(1):
            if count > max(3, length / 10):
                same = [call for call in idle if call.stream == key]
                return Verdict.warned(f"opens {key} {count} times within {length:.0f} idle seconds", *spell.excerpt(same))
        return (
            self._judge_writes(spell, writes_of(idle)) or self._judge_lists(spell) or Verdict.passed(f"{length:.0f} idle seconds")
        )

    @staticmethod
    def _judge_writes(spell: Spell, writes: list[Call]) -> Verdict | None:
        counts = Counter((call.verb, call.path) for call in writes)
        for (verb, path), count in counts.most_common(1):
            if count > 2:
                return Verdict.warned(f"{verb} {path} {count} times without a cause", *spell.excerpt(writes))
        return None

    @staticmethod
    def _judge_lists(spell: Spell) -> Verdict | None:
        for stream in spell.trace.streams().values():
            for call in stream.lists if stream.watches else ():
                if "limit" not in call.query and not call.asked_revision and "continue" not in call.query:
                    return Verdict.warned(f"lists {stream.key} whole from storage: neither limit nor resourceVersion", str(call))
        return None


RULES = (Warnings, UnknownEvent, UnknownFields, UserAgent, Economy)
