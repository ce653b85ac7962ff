"""The actor of a request: who sent it, by User-Agent and user.

    kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/0000000/deployment-controller   → deployment-controller
    kubectl/v1.36.1 (linux/amd64) kubernetes/abc                                             → kubectl
    my-operator/0.1 (…)                                                                      → my-operator

If several users send the same agent, the first one has the name of the agent, and others are `agent · user`.

Specified by: k8s.io/client-go/rest/config.go (DefaultKubernetesUserAgent, AddUserAgent).
"""

from __future__ import annotations

import re
from typing import Final

from fakekube.powers.exchange import FAULTS_USER_AGENT, WEBHOOKS_USER_AGENT

CLIENT, CLUSTER, FAULT = "client", "cluster", "fault"

#: The part of a User-Agent that names the component, after that with the commit.
_COMPONENT: Final = re.compile(r" kubernetes/[^/ ]+/(?:.*/)?([^/ ]+)\s*$")
#: What the agents of the cluster's own controllers, nodes and API servers contain, and those of a test's clients in the same
#: process do not.
_OF_KUBERNETES: Final = " kubernetes/"
_MAX_NAMES: Final = 10_000
_MAX_LENGTH: Final = 200


class Actors:
    """The names of the actors of one cluster."""

    def __init__(self) -> None:
        self._users: dict[str, str] = {}
        """Name of an agent → its first user."""
        self._names: dict[tuple[str, str, bool, str], tuple[str, str]] = {}

    def name_actor(self, agent: str, user: str, own: bool, fault: str = "") -> tuple[str, str]:
        """Returns the name of an actor, and its side: `client`, `cluster` or `fault`.

        Args:
            agent, user: of the request.
            own: whether it came from this process.
            fault: the label or id of the fault that sent it.
        """
        known = self._names.get((agent, user, own, fault))
        if known is None:
            known = self._name(agent, user, own, fault)
            if len(self._names) < _MAX_NAMES:
                self._names[agent, user, own, fault] = known
        return known

    def list_actors(self) -> list[dict[str, str]]:
        """Returns the actors so far, with their sides."""
        return [{"name": name, "side": side} for name, side in dict.fromkeys(list(self._names.values()))]

    def _name(self, agent: str, user: str, own: bool, fault: str) -> tuple[str, str]:
        if own and agent == FAULTS_USER_AGENT:
            return f"fault {fault}".strip(), FAULT
        name = agent_name(agent)
        first = self._users.setdefault(name, user) if len(self._users) < _MAX_NAMES else user
        shown = name if not user or user == first else f"{name} · {user[:_MAX_LENGTH]}"
        return shown, CLUSTER if own and (_OF_KUBERNETES in agent or agent == WEBHOOKS_USER_AGENT) else CLIENT


def agent_name(agent: str) -> str:
    """Returns the short name of a User-Agent."""
    component = _COMPONENT.search(agent)
    if component is not None:
        return component[1][:_MAX_LENGTH]
    first = agent.split(" ", 1)[0].partition("/")[0]
    return first[:_MAX_LENGTH] or "no agent"
