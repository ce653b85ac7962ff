"""Which paths have routes, which methods those take, and who answers for the rest."""

from __future__ import annotations

import pytest

from fakekube.apimachinery.errors import StatusError
from fakekube.apis.rest.resource import GVK, Registry, Resource
from fakekube.apis.rest.strategy import Subresource
from fakekube.apiserver.endpoints.request import Query, Request, User
from fakekube.apiserver.http.request_info import request_info
from fakekube.apiserver.http.routing import ResourceRouter
from fakekube.apiserver.registry import builtin

GROUP = "example.com"


def _custom(plural: str, *, namespaced: bool) -> Resource:
    return Resource(
        group=GROUP, version="v1", plural=plural, singular=plural[:-1], kind=plural.title(), namespaced=namespaced,
        verbs=frozenset(), bucket=f"{plural}.{GROUP}", strategy_factory=lambda: None,  # type: ignore[arg-type, return-value]
        type_factory=lambda: None,  # type: ignore[arg-type, return-value]
        custom=True,
        subresources={"status": Subresource("status", GVK(GROUP, "v1", plural.title()), frozenset(), None, None)},  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture(scope="module")
def router() -> ResourceRouter:
    registry = Registry(builtin.resources())
    router = ResourceRouter(registry)
    registry.replace((), [_custom("widgets", namespaced=True)])
    registry.replace((), [_custom("planets", namespaced=False)])
    return router


def _judge(router: ResourceRouter, method: str, path: str, accept: str = "", content_type: str = "") -> object:
    """ "served", "text" (no route), or the code of a Status."""
    query = Query()
    request = Request(method, path, query, {}, request_info(method, path, query), User("admin"), accept, content_type)
    try:
        return "served" if router.admit(request) else "text"
    except StatusError as error:
        return error.code


CASES = [
    ("GET", "/api/v1/pods", "served"),
    ("POST", "/api/v1/pods", 405),
    ("HEAD", "/api/v1/pods", 405),
    ("DELETE", "/api/v1/pods", 405),
    ("GET", "/api/v1/pods/x", 404),
    ("GET", "/api/v1/namespaces/a/pods", "served"),
    ("POST", "/api/v1/namespaces/a/pods/", "served"),
    ("PUT", "/api/v1/namespaces/a/pods", 405),
    ("GET", "/api/v1/namespaces//pods/x", "served"),
    ("POST", "/api/v1/namespaces/a/pods/x", 405),
    ("GET", "/api/v1/namespaces/a/pods/x/status", "served"),
    ("POST", "/api/v1/namespaces/a/pods/x/status", 405),
    ("GET", "/api/v1/namespaces/a/pods/x/status/y", 404),
    ("GET", "/api/v1/namespaces/a/pods/x/nope", 404),
    ("PROPFIND", "/api/v1/namespaces/a/pods/x/proxy", 405),
    ("OPTIONS", "/api/v1/namespaces/a/pods/x/proxy/y/z", "served"),
    ("POST", "/api/v1/namespaces/a/pods/x/exec", "served"),
    ("GET", "/api/v1/namespaces/a/pods/x/exec/y", 404),
    ("GET", "/api/v1/namespaces/a/nodes", 404),
    ("GET", "/api/v1/nodes/x", "served"),
    ("DELETE", "/api/v1/namespaces", 405),
    ("PUT", "/api/v1/namespaces/a/finalize", "served"),
    ("GET", "/api/v1/namespaces/a/finalize", 405),
    ("GET", "/api/v1/bindings", 404),
    ("GET", "/api/v1/namespaces/a/bindings", 405),
    ("POST", "/api/v1/namespaces/a/bindings", "served"),
    ("GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405),
    ("GET", "/apis/authentication.k8s.io/v1/tokenreviews/x", 404),
    ("GET", "/api/v1/watch/pods", "served"),
    ("POST", "/api/v1/watch/pods", 405),
    ("GET", "/api/v1/watch/namespaces/a/pods/x", "served"),
    ("GET", "/api/v1/watch/namespaces/a/status", 404),
    ("GET", "/api/v1/watch/nope", 404),
    ("GET", "/api/v1/proxy/nodes/x", 404),
    ("GET", "/api/v2/pods", 404),
    ("GET", "/apis/apps/v1beta1/deployments", 404),
    ("GET", "/apis/apps/v1/nope", 404),
    ("GET", "//api/v1/pods", "text"),
    ("GET", "/apis//v1/pods", "text"),
    ("GET", "/apis/nope.example.com/v1/x", "text"),
    ("GET", f"/apis/{GROUP}/v1/widgets", "served"),
    ("GET", f"/apis/{GROUP}/v1/widgets/x", "text"),
    ("GET", f"/apis/{GROUP}/v1/namespaces/a/widgets/x", "served"),
    ("HEAD", f"/apis/{GROUP}/v1/namespaces/a/widgets/x", "served"),
    ("OPTIONS", f"/apis/{GROUP}/v1/namespaces/a/widgets/x", 405),
    ("OPTIONS", f"/apis/{GROUP}/v1/widgets/x", "text"),
    ("POST", f"/apis/{GROUP}/v1/namespaces/a/widgets/x", "served"),
    ("GET", f"/apis/{GROUP}/v1/namespaces/a/planets", "text"),
    ("GET", f"/apis/{GROUP}/v2/planets", "text"),
    ("GET", f"/apis/{GROUP}/v1/planets/x/status/more", "served"),
    ("DELETE", f"/apis/{GROUP}/v1/planets/x/status", 405),
    ("GET", f"/apis/{GROUP}/v1/planets/x/scale", 404),
]


@pytest.mark.parametrize(("method", "path", "expected"), CASES)
def test_route_decisions(router: ResourceRouter, method: str, path: str, expected: object) -> None:
    assert _judge(router, method, path) == expected


def test_method_is_checked_before_media_types(router: ResourceRouter) -> None:
    path = "/api/v1/namespaces/a/pods/x"
    assert _judge(router, "FOO", path, "text/plain", "text/plain") == 405
    assert _judge(router, "PATCH", path, "text/plain", "text/plain") == 415
    assert _judge(router, "PATCH", path, "text/plain", "application/merge-patch+json") == 406
    assert _judge(router, "GET", path, "text/plain") == 406


def test_log_is_served_as_text(router: ResourceRouter) -> None:
    assert _judge(router, "GET", "/api/v1/namespaces/a/pods/x/log", "text/plain") == "served"


def test_kubelet_responses_skip_content_negotiation(router: ResourceRouter) -> None:
    assert _judge(router, "GET", "/api/v1/namespaces/a/pods/x/exec", "text/plain") == "served"
