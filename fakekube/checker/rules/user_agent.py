"""The rule about the User-Agent of a client (N2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fakekube.checker.rule import Rule, Verdict

if TYPE_CHECKING:
    from fakekube.checker.trial import Trial

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
    """Reads the client's User-Agents in the baseline run."""

    id = "N2"
    name = "agent"
    provocation = "nothing: its User-Agent is read"
    fast = True
    obligation = "a User-Agent of its own identifies the client in audit logs, flow schemas and managedFields"
    advice = "set User-Agent to program/version"
    source = "API Priority and Fairness; managedFields (the default manager is the User-Agent's first part)"
    on_baseline = True

    def judge(self, trial: Trial) -> Verdict:
        agents = list(dict.fromkeys(call.exchange.agent for call in trial.trace.since()))
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


RULES = (UserAgent,)
