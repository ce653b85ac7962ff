"""Rules about what a client sends and understands at all: content, its name, the economy of its requests."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.checker.occasions import LEASES, asked_again, await_long_watches, require_resumption, writes_of
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
        calls = [call for call in spell.trace.since() if call.succeeded]
        warned = len({call.number for call in [*writes_of(calls), *(call for call in calls if call.collection in deprecated)]})
        return Verdict.passed(f"{warned} answers with warnings") if warned else Verdict.not_exercised("no answer had a warning")


class UnknownEvent(Content):
    """A watch tells an event of a type that does not exist yet."""

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
            with spell.faults.on("watch").intercept(answer, label="an event of the future"):
                asked_again(spell, spell.end_watches())
            if told:
                return
        raise NotExercised("the client does not resume a watch from a revision")


#: How often watches are ended until the client resumes one.
_ROUNDS = 3


def _future_event(exchange: Exchange) -> tuple[int, Any] | None:
    revision = exchange.query.get("resourceVersion", "")
    kind = {"kind": "Future", "apiVersion": "v1"}
    return 200, {"type": "FUTURE", "object": {**kind, "metadata": {"resourceVersion": revision}}}


class CompressedLists(Content):
    """A list is so large that it is compressed for who says that it may be."""

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

    #: Products that are HTTP libraries or languages, and do not say which program sent a request.
    HTTP_LIBRARIES = frozenset(
        {
            "python-urllib",
            "python-urllib3",
            "python-requests",
            "python-httpx",
            "python",
            "urllib3",
            "aiohttp",
            "openapi-generator",
            "swagger-codegen",
            "go-http-client",
            "okhttp",
            "java",
            "java-http-client",
            "apache-httpclient",
            "jersey",
            "axios",
            "node-fetch",
            "node",
            "undici",
            "got",
            "curl",
            "libcurl",
            "wget",
            "ruby",
            "faraday",
            "rest-client",
            "php",
            "guzzlehttp",
            "reqwest",
            "hyper",
            "dart",
            "perl",
            "libwww-perl",
        }
    )
    #: Products that are client libraries of Kubernetes.
    LIBRARIES = frozenset(
        {"kr8s", "lightkube", "pykube", "pykube-ng", "fabric8", "kubernetes-client", "kube-rs", "kubernetesclient"}
    )

    def judge(self, spell: Spell) -> Verdict:
        agents = list(dict.fromkeys(call.exchange.agent for call in spell.trace.since()))
        for agent in agents:
            if not agent:
                return Verdict.failed("sends no User-Agent")
            if _product(agent) in self.HTTP_LIBRARIES:
                return Verdict.failed(f"sends the User-Agent of a library: {agent!r}")
        for agent in agents:
            if _product(agent) in self.LIBRARIES:
                return Verdict.warned(f"sends the default User-Agent of a client library: {agent!r}")
        return Verdict.passed(", ".join(agents))


def _product(agent: str) -> str:
    """Returns the name of the first product of a User-Agent, in lower case."""
    return re.split(r"[/ ;(]", agent.strip().lower(), maxsplit=1)[0]


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


RULES = (Warnings, CompressedLists, UnknownEvent, UnknownFields, UserAgent, Economy)
