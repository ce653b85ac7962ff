"""Serves /healthz, /livez and /readyz, in all formats of the real server.

The checks are those of the real server, in its order; all of them pass, and each also has its own path.

Specified by: k8s.io/apiserver/pkg/server/healthz/healthz.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Final

from fakekube.apimachinery.features import Emulation
from fakekube.apiserver.endpoints.request import Query, Request, Response
from fakekube.apiserver.http import responses
from fakekube.base.golang.strconv import go_quote

_HOOKS: Final = tuple(
    f"poststarthook/{hook}"
    for hook in (
        "start-apiserver-admission-initializer",
        "generic-apiserver-start-informers",
        "priority-and-fairness-config-consumer",
        "priority-and-fairness-filter",
        "storage-object-count-tracker-hook",
        "start-apiextensions-informers",
        "start-apiextensions-controllers",
        "crd-informer-synced",
        "start-system-namespaces-controller",
        "start-kube-apiserver-coordinated-leader-election-controller",
        "peer-endpoint-reconciler-controller",
        "start-cluster-authentication-info-controller",
        "start-kube-apiserver-identity-lease-controller",
        "start-kube-apiserver-identity-lease-garbage-collector",
        "storage-readiness",
        "start-legacy-token-tracking-controller",
        "start-service-ip-repair-controllers",
        "rbac/bootstrap-roles",
        "scheduling/bootstrap-system-priority-classes",
        "priority-and-fairness-config-producer",
        "bootstrap-controller",
        "start-kubernetes-service-cidr-controller",
        "start-kube-aggregator-informers",
        "apiservice-status-local-available-controller",
        "apiservice-status-remote-available-controller",
        "apiservice-registration-controller",
        "apiservice-discovery-controller",
        "built-in-resources-storage-version-updater",
        "kube-apiserver-autoregistration",
    )
)
_LAST: Final = (
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)

#: The checks of each endpoint in the newest minor, in order.
CHECKS: Final[Mapping[str, Sequence[str]]] = {
    "healthz": ("ping", "log", "loopback-serving-certificate", "etcd", *_HOOKS, *_LAST),
    "livez": ("ping", "log", "loopback-serving-certificate", "etcd", *_HOOKS, *_LAST),
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", *_HOOKS, *_LAST, "shutdown"),
}


#: Check → the number of the minor that has it first.
_SINCE: Final[Mapping[str, int]] = {"loopback-serving-certificate": 36}
_IDENTITY: Final = "APIServerIdentity"
#: Check → the feature gates without which it is not made.
_GATES: Final[Mapping[str, tuple[str, ...]]] = {
    "poststarthook/built-in-resources-storage-version-updater": ("StorageVersionAPI", _IDENTITY),
    "poststarthook/peer-endpoint-reconciler-controller": ("UnknownVersionInteroperabilityProxy",),
    "poststarthook/start-kube-apiserver-coordinated-leader-election-controller": ("CoordinatedLeaderElection",),
    "poststarthook/start-kube-apiserver-identity-lease-controller": (_IDENTITY,),
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector": (_IDENTITY,),
    "poststarthook/storage-readiness": ("WatchCacheInitializationPostStartHook",),
}


def checks_of(name: str, emulation: Emulation) -> Sequence[str]:
    """Returns the checks of an endpoint (`healthz`, `livez`, `readyz`) on a server, in order."""
    checks = [check for check in CHECKS[name] if _SINCE.get(check, 0) <= emulation.minor]
    return tuple(check for check in checks if all(map(emulation.enabled, _GATES.get(check, ()))))


@cache
def health_endpoints(emulation: Emulation) -> Mapping[str, Callable[[Request], Response]]:
    """Returns the endpoints of all checks of a server, by path."""
    found: dict[str, Callable[[Request], Response]] = {}
    for name in CHECKS:
        checks = checks_of(name, emulation)
        found[f"/{name}"] = partial(_all_checks, name, checks)
        found |= {f"/{name}/{check}": _one_check for check in checks}
    return found


def _one_check(_request: Request) -> Response:
    return responses.plain_text("ok")


def _all_checks(name: str, checks: Sequence[str], request: Request) -> Response:
    text = _report(name, checks, request.query) if "verbose" in request.query else "ok"
    return responses.plain_text(text, 200, responses.NO_SNIFFING)


def _report(name: str, checks: Sequence[str], query: Query) -> str:
    excluded = set(query.all("exclude"))
    lines = [f"[+]{check} excluded: ok" if check in excluded else f"[+]{check} ok" for check in checks]
    unknown = sorted(excluded.difference(checks))
    if unknown:
        quoted = ",".join(map(go_quote, unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    return "\n".join([*lines, f"{name} check passed\n"])
