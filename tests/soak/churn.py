"""What comes and goes leaves nothing: `python -m tests.soak.churn [--cycles 500] [NAME …]`.

Each subject (`SUBJECTS`: namespaces, definitions, faults, watches …) is created and deleted in a `fakekube serve` again and again.
After two rounds, which fill what is bounded (histories, caches, records of requests), a third one must not need more memory, threads
or open files.
"""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.soak.clusters import Usage, usage_of
from tests.soak.serving import JsonConnection, ServedCluster

_CONTROL: Final = "/fakekube/v1"
_NAMESPACES: Final = "/api/v1/namespaces"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_RULE: Final = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}

#: MiB by which the memory may grow in a round: the allocator of the process keeps some of what it once had.
_ALLOWANCE_PER_ROUND: Final = 3.0
#: MiB in addition for each cycle: what is known of the causes of the latest 100,000 changes, and of the paths and patterns of
#: requests.
_ALLOWANCE_PER_CYCLE: Final = 0.02


class Client:
    """One connection, whose requests must be accepted."""

    def __init__(self, server: ServedCluster) -> None:
        self.server = server
        self._connection = JsonConnection(server)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Sends a request; fails unless it is accepted."""
        code, answer = self._connection.request(method, path, body, content_type)
        if code >= 300:
            raise SystemExit(f"{method} {path}: {code} {answer}")
        return answer

    def create_and_delete(self, path: str, body: Mapping[str, Any]) -> None:
        self.call("POST", path, body)
        self.call("DELETE", f"{path}/{body['metadata']['name']}")

    def is_found(self, path: str) -> bool:
        return self._connection.request("GET", path)[0] == 200

    def wait_until_gone(self, path: str) -> None:
        end = time.monotonic() + 60
        while self.is_found(path):
            if time.monotonic() > end:
                raise SystemExit(f"{path} stays")
            time.sleep(0.001)


Subject = Callable[[Client, int], None]


def _namespace(client: Client, number: int) -> None:
    name = f"n{number}"
    client.call("POST", _NAMESPACES, {"metadata": {"name": name}})
    client.call("POST", f"{_NAMESPACES}/{name}/configmaps", {"metadata": {"name": "one"}})
    client.call("DELETE", f"{_NAMESPACES}/{name}")
    client.wait_until_gone(f"{_NAMESPACES}/{name}")


def _definition(client: Client, number: int) -> None:
    plural = f"things{number}"
    schema = {
        "type": "object",
        "properties": {f"p{number}": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": f"Thing{number}"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    name = f"{plural}.example.com"
    client.call("POST", _DEFINITIONS, {"metadata": {"name": name}, "spec": spec})
    one = {"apiVersion": "example.com/v1", "kind": names["kind"], "metadata": {"name": "one"}, f"p{number}": 5}
    client.call("POST", f"/apis/example.com/v1/{plural}", one)
    client.call("GET", "/openapi/v3/apis/example.com/v1")
    client.call("DELETE", f"{_DEFINITIONS}/{name}")
    client.wait_until_gone(f"{_DEFINITIONS}/{name}")


def _policy(client: Client, number: int) -> None:
    validation = {"expression": f"object.metadata.name != 'x{number}'"}
    spec = {
        "matchConstraints": {"resourceRules": [{**_RULE, "apiGroups": [""], "resources": ["configmaps"]}]},
        "validations": [validation],
    }
    name = f"p{number}"
    client.call("POST", f"{_ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec})
    binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}
    client.call("POST", f"{_ADMISSION}/validatingadmissionpolicybindings", binding)
    client.create_and_delete(f"{_NAMESPACES}/default/configmaps", {"metadata": {"name": "one"}})
    client.call("DELETE", f"{_ADMISSION}/validatingadmissionpolicybindings/{name}")
    client.call("DELETE", f"{_ADMISSION}/validatingadmissionpolicies/{name}")


def _webhook(client: Client, number: int) -> None:
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:1/{number}"},
        "rules": [{**_RULE, "apiGroups": [""], "resources": ["configmaps"]}],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "a", "expression": f"object.metadata.name != 'x{number}'"}],
    }
    path, name = f"{_ADMISSION}/validatingwebhookconfigurations", f"w{number}"
    client.call("POST", path, {"metadata": {"name": name}, "webhooks": [hook]})
    client.create_and_delete(f"{_NAMESPACES}/default/configmaps", {"metadata": {"name": "one"}})
    client.call("DELETE", f"{path}/{name}")


def _role(client: Client, number: int) -> None:
    name = f"r{number}"
    rules = [{"apiGroups": [""], "resources": [f"pods{number}"], "verbs": ["get"]}]
    client.call("POST", f"{_RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"u{number}"}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    client.call("POST", f"{_RBAC}/clusterrolebindings", {"metadata": {"name": name}, "subjects": subjects, "roleRef": reference})
    attributes = {"user": f"u{number}", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    client.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": attributes})
    client.call("DELETE", f"{_RBAC}/clusterrolebindings/{name}")
    client.call("DELETE", f"{_RBAC}/clusterroles/{name}")


def _fault(client: Client, number: int) -> None:
    fault = {"on": {"verbs": ["create"], "name": f"f{number}"}, "do": {"status": {"code": 503}}}
    made = client.call("POST", f"{_CONTROL}/faults", fault)
    client.call("DELETE", f"{_CONTROL}/faults/{made['id']}")


def _rule(client: Client, number: int) -> None:
    made = client.call(
        "POST", f"{_CONTROL}/pods/rules", {"on": {"name": f"p{number}"}, "do": {"exec": {"a": {"stdout": f"{number}"}}}}
    )
    client.call("DELETE", f"{_CONTROL}/pods/rules/{made['id']}")


def _snapshot(client: Client, number: int) -> None:
    client.call("POST", f"{_CONTROL}/snapshots", {"name": f"s{number}"})
    client.call("POST", f"{_NAMESPACES}/default/configmaps", {"metadata": {"name": f"c{number}"}})
    client.call("POST", f"{_CONTROL}/snapshots/s{number}/restore")
    client.call("DELETE", f"{_CONTROL}/snapshots/s{number}")


def _pooled_cluster(client: Client, number: int) -> None:
    made = client.call("POST", f"{_CONTROL}/clusters", {"name": f"c{number}"})
    client.call("DELETE", f"{_CONTROL}/clusters/{made['name']}")


def _command(client: Client, number: int) -> None:
    client.call("POST", f"{_CONTROL}/pods/default/web/exec", {"command": ["sh", "-c", f"echo {number} > /tmp/a; cat /tmp/a"]})


def _watch(client: Client, number: int) -> None:
    """Opens a watch, and closes the connection when the response has begun."""
    with socket.create_connection((client.server.host, client.server.port)) as connection:
        path = f"{_NAMESPACES}/default/configmaps?watch=true&labelSelector=a%3Db{number}"
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        connection.recv(100)


def _token(client: Client, number: int) -> None:
    path = f"{_NAMESPACES}/default/serviceaccounts"
    client.call("POST", path, {"metadata": {"name": f"a{number}"}})
    client.call("POST", f"{path}/a{number}/token", {"spec": {"expirationSeconds": 600}})
    client.call("DELETE", f"{path}/a{number}")


def _pod(client: Client, number: int) -> None:
    name = f"p{number}"
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0}
    client.call("POST", f"{_NAMESPACES}/default/pods", {"metadata": {"name": name}, "spec": spec})
    client.call("DELETE", f"{_NAMESPACES}/default/pods/{name}")
    client.wait_until_gone(f"{_NAMESPACES}/default/pods/{name}")


def _apply(client: Client, number: int) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {f"k{number}": "v"}}
    path = f"{_NAMESPACES}/default/configmaps/applied?fieldManager=m{number}"
    client.call("PATCH", path, body, "application/apply-patch+yaml")
    client.call("DELETE", f"{_NAMESPACES}/default/configmaps/applied")


def _recording(client: Client, number: int) -> None:
    client.call("POST", f"{_CONTROL}/recording", {})
    client.create_and_delete(f"{_NAMESPACES}/default/configmaps", {"metadata": {"name": "one"}})
    client.call("DELETE", f"{_CONTROL}/recording")


SUBJECTS: Final[Mapping[str, Subject]] = {
    "namespaces": _namespace,
    "definitions": _definition,
    "policies": _policy,
    "webhooks": _webhook,
    "roles": _role,
    "faults": _fault,
    "rules": _rule,
    "snapshots": _snapshot,
    "clusters": _pooled_cluster,
    "commands": _command,
    "watches": _watch,
    "tokens": _token,
    "pods": _pod,
    "managers": _apply,
    "recordings": _recording,
}


@dataclass(frozen=True, slots=True)
class Growth:
    """The usage after each round of a subject."""

    name: str
    rounds: Sequence[Usage]
    cycles: int

    @property
    def is_kept(self) -> bool:
        """Whether the last round has left something."""
        before, after = self.rounds[-2:]
        grown = after.memory - before.memory
        allowed = _ALLOWANCE_PER_ROUND + _ALLOWANCE_PER_CYCLE * self.cycles
        return grown > allowed or after.threads > before.threads + 2 or after.files > before.files + 2

    def __str__(self) -> str:
        shown = "; ".join(f"{one.memory:.1f} MiB, {one.threads} threads, {one.files} files" for one in self.rounds)
        return f"{'KEPT ' if self.is_kept else ''}{self.name}: {shown}"


#: The flags of the server, which keeps short histories.
FLAGS: Final = (
    "--profile=cluster", "--pace=0", "--compaction-interval=1s", "--keep-requests=100", "--keep-changes=false", "--clusters",
)  # fmt: skip


def prepare(client: Client) -> None:
    """Creates the pod of the commands."""
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    client.call("POST", f"{_NAMESPACES}/default/pods", pod)
    client.call("POST", f"{_CONTROL}/settle", {})


def play(name: str, cycles: int, rounds: int = 3) -> Growth:
    """Plays the rounds of one subject in a server of its own."""
    found: list[Usage] = []
    with ServedCluster(*FLAGS) as server, Client(server) as client:
        prepare(client)
        for turn in range(rounds):
            for number in range(turn * cycles, (turn + 1) * cycles):
                SUBJECTS[name](client, number)
            time.sleep(2)  # compactions, and the end of idle threads
            found.append(usage_of(server.pid))
    if server.output:
        raise SystemExit(server.output)
    return Growth(name, found, cycles)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=500)
    parser.add_argument("names", nargs="*", choices=[[], *SUBJECTS], metavar="NAME")
    options = parser.parse_args()
    kept = False
    for name in options.names or SUBJECTS:
        growth = play(name, options.cycles)
        print(growth, flush=True)
        kept |= growth.is_kept
    return kept


if __name__ == "__main__":
    raise SystemExit(main())
