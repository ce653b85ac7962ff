"""The port 10250 of nodes, which pods reach: the endpoints of a kubelet over TLS, for those whom the API server knows and allows.

Invariant: no endpoint is reached without a token that the API server has reviewed, and a right on the subresource of the node.

Specified by: pkg/kubelet/server/server.go (InstallAuthFilter), pkg/kubelet/server/auth.go (GetRequestAttributes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from fakekube.controllers.client import Client
from fakekube.nodes.runtime.ports import TEXT, Application

_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
#: First part of a path → the subresources of nodes any of which is enough.
_SUBRESOURCES: Final = {
    "stats": ("stats",),
    "metrics": ("metrics",),
    "logs": ("log",),
    "checkpoint": ("checkpoint",),
    "pods": ("pods", "proxy"),
    "runningpods": ("pods", "proxy"),
    "healthz": ("healthz", "proxy"),
    "configz": ("configz", "proxy"),
}
_PROXY: Final = ("proxy",)


class KubeletPort:
    """A WSGI application that reviews requests before the endpoints of a kubelet answer them.

    Args:
        node: the name of the node.
        client: sends reviews to the API server.
        endpoints: of the kubelet.
    """

    def __init__(self, node: str, client: Client, endpoints: Application) -> None:
        self._node, self._client, self._endpoints = node, client, endpoints

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        user = self._authenticate(environ.get("HTTP_AUTHORIZATION", ""))
        if user is None:
            return _refuse("401 Unauthorized", "Unauthorized", start_response)
        verb = _VERBS.get(environ["REQUEST_METHOD"], "")
        subresources = _SUBRESOURCES.get(environ["PATH_INFO"].strip("/").partition("/")[0], _PROXY)
        if not any(self._authorize(user, verb, one) for one in subresources):
            names = " ".join(subresources)
            text = f"Forbidden (user={user.get('username', '')}, verb={verb}, resource=nodes, subresource(s)=[{names}])"
            return _refuse("403 Forbidden", text, start_response)
        return self._endpoints(environ, start_response)

    def _authenticate(self, authorization: str) -> dict[str, Any] | None:
        """Returns the user of a token; None without a valid one: kubelets know no anonymous users."""
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            return None
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token.strip()}}
        status = self._client.call("POST", _REVIEWS, body)["status"]
        user: dict[str, Any] | None = status.get("user") if status.get("authenticated") else None
        return user

    def _authorize(self, user: dict[str, Any], verb: str, subresource: str) -> bool:
        attributes = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": subresource, "name": self._node}
        spec = {"user": user.get("username", ""), "groups": user.get("groups") or [], "resourceAttributes": attributes}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return bool(self._client.call("POST", _ACCESS_REVIEWS, body)["status"].get("allowed"))


def _refuse(status: str, text: str, start_response: Callable[..., Any]) -> Iterable[bytes]:
    data = text.encode()
    start_response(status, [("Content-Type", TEXT), ("Content-Length", str(len(data)))])
    return [data]
