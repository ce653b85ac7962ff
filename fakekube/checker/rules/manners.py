"""Rules about the User-Agent and about unnecessary requests (N2, N3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fakekube.checker.occasions import LEASES, writes_of
from fakekube.checker.rule import Rule, Verdict

if TYPE_CHECKING:
    from fakekube.checker.spell import Spell
    from fakekube.checker.trace import Call

__all__ = ["RULES"]

#: User-Agent products of HTTP libraries and languages, which do not identify the client.
_HTTP_LIBRARIES = frozenset(
    {
        "python-urllib",
        "python-urllib3",
        "python-requests",
        "python-httpx",
        "python-httpx2",
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

#: User-Agent products of client libraries for Kubernetes.
_LIBRARIES = frozenset(
    {"kr8s", "lightkube", "pykube", "pykube-ng", "fabric8-kubernetes-client", "kubernetes-client", "kube-rs", "kubernetesclient"}
)


class UserAgent(Rule):
    """Reads the client's User-Agents in the calm run."""

    id = "N2"
    provocation = "nothing: its User-Agent is read"
    obligation = "a User-Agent of its own identifies the client in audit logs, flow schemas and managedFields"
    advice = "set User-Agent to program/version"
    source = "API Priority and Fairness; managedFields (the default manager is the User-Agent's first part)"
    on_calm = True

    def judge(self, spell: Spell) -> Verdict:
        agents = list(dict.fromkeys(call.exchange.agent for call in spell.trace.since()))
        for agent in agents:
            if not agent:
                return Verdict.failed("sends no User-Agent")
            if _product(agent) in _HTTP_LIBRARIES:
                return Verdict.failed(f"sends the default User-Agent of an HTTP library: {agent!r}")
        for agent in agents:
            if _product(agent) in _LIBRARIES:
                return Verdict.warned(f"sends the default User-Agent of a client library: {agent!r}")
        return Verdict.passed(", ".join(agents))


def _product(agent: str) -> str:
    """Returns the name of the first product of a User-Agent, in lower case."""
    return re.split(r"[/ ;(]", agent.strip().lower(), maxsplit=1)[0]


class Economy(Rule):
    """Observes the client of the calm run while nothing changes, and after it has reacted to one more copy."""

    id = "N3"
    provocation = "idleness"
    obligation = "no unnecessary requests: watch instead of polling, and no writes without a change"
    advice = "watch instead of polling; compare before each write; list with a limit or resourceVersion=0"
    source = "API conventions; API Priority and Fairness"
    on_calm = True

    #: How many seconds the client is observed in total, and how many equal requests it may send in this time.
    SECONDS, TIMES = 16.0, 3
    #: The least number of seconds to observe after the last copy.
    AFTERWARDS = 5.0
    #: The average seconds between two equal requests: a client with shorter intervals than the first polls, than the second is
    #: suspected.
    POLLS, SUSPECTED = 5.0, 12.0

    def judge(self, spell: Spell) -> Verdict:
        if spell.bench.ends_by_itself:
            return Verdict.not_exercised("the client ends by itself")
        before = [call for call in spell.trace.since() if call.at >= spell.calm.idle_from]
        length_before = max(spell.now - spell.calm.idle_from, 0.0)
        spell.await_reaction(spell.stimulate())
        spell.wait(1.0 + 3 * spell.calm.reaction_seconds)
        since = spell.now
        spell.wait(max(self.SECONDS - length_before, self.AFTERWARDS))
        length = spell.now - since
        after = [call for call in spell.trace.since() if call.at >= since]
        return (
            self._judge_repetitions(spell, after, length)
            or self._judge_repetitions(spell, [*before, *after], length_before + length)
            or self._judge_ageing(spell)
            or self._judge_streams(spell)
            or self._judge_connections(spell)
            or Verdict.passed(f"{length_before + length:.0f} idle seconds")
        )

    def _judge_repetitions(self, spell: Spell, calls: Sequence[Call], length: float) -> Verdict | None:
        """Judges the requests that the client repeats within `length` idle seconds."""
        # repeating a refused write is necessary
        idle = [call for call in calls if call.collection != LEASES and (not call.is_write or call.succeeded)]
        told = spell.bench.idle  # the client may list each time it closes a silent watch
        renewed = 0 if told is None else length / told + 2
        asked = Counter((call.verb, call.path) for call in idle if not call.is_watch)
        for (verb, path), count in asked.most_common(1):
            shown = f"{verb} {path} {count} times within {length:.0f} idle seconds"
            same = spell.excerpt([call for call in idle if (call.verb, call.path) == (verb, path)])
            if count > max(self.TIMES, length / self.POLLS, renewed):
                return Verdict.failed(shown, *same)
            if count >= max(self.TIMES, length / self.SUSPECTED, renewed):
                return Verdict.warned(shown, *same)
        watches = Counter(call.stream for call in idle if call.is_watch)
        for key, count in watches.most_common(1):
            if count > max(3, length / 10, renewed):
                same = spell.excerpt([call for call in idle if call.stream == key])
                return Verdict.warned(f"opens {key} {count} times within {length:.0f} idle seconds", *same)
        written = Counter((call.verb, call.path) for call in writes_of(idle))
        for (verb, path), count in written.most_common(1):
            if count > 2:
                return Verdict.warned(f"{verb} {path} {count} times without a change", *spell.excerpt(writes_of(idle)))
        return None

    @staticmethod
    def _judge_ageing(spell: Spell) -> Verdict | None:
        """Judges whether the client closes silent watches and resumes them from the same revision, without bookmarks."""
        for key, stream in spell.trace.streams().items():
            quiet = [
                call
                for call in stream.watches
                if call.resumes and not call.wants_bookmarks and not call.events and call.ended == "closed by the client"
            ]
            if len(quiet) > 1:
                return Verdict.warned(
                    f"ends quiet watches of {key} after {(quiet[-1].end or 0.0) - quiet[-1].at:.0f} s and asks for no bookmarks: "
                    "the revision that it resumes from will expire",
                    *spell.excerpt(quiet),
                )
        return None

    @staticmethod
    def _judge_streams(spell: Spell) -> Verdict | None:
        """Judges whether the client lists without limit and resourceVersion, or has equal watches open."""
        for stream in spell.trace.streams().values():
            for call in stream.lists if stream.watches else ():
                if "limit" not in call.query and not call.asked_revision and "continue" not in call.query:
                    return Verdict.warned(f"lists all of {stream.key} from storage: neither limit nor resourceVersion", str(call))
        opened = Counter(call.stream for call in spell.trace.open_watches())
        for key, count in opened.most_common(1):
            if count > 1:
                same = [call for call in spell.trace.open_watches() if call.stream == key]
                return Verdict.warned(f"keeps {count} equal watches of {key} open", *spell.excerpt(same))
        return None

    #: A client that leaves at least so many connections open, and this part of its requests, does not reuse connections.
    CONNECTIONS, PART = 8, 0.8

    def _judge_connections(self, spell: Spell) -> Verdict | None:
        """Judges whether the client leaves the connections of finished requests open."""
        calls = spell.trace.since()
        idle = spell.cluster.connections - len(spell.trace.open_watches())
        done = sum(not call.is_open for call in calls)
        if idle < self.CONNECTIONS or idle < self.PART * done:
            return None
        return Verdict.warned(f"{idle} idle connections are open after {done} requests")


RULES = (UserAgent, Economy)
