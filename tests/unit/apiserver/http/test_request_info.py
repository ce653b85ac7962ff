"""What paths and methods mean, by the rules of requestinfo.go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apiserver.endpoints.request import Query
from fakekube.apiserver.http.request_info import UnknownTargetError, has_siblings, request_info, sibling_info, split_path

RESOURCES = [
    # method, path, query → verb, group, version, namespace, resource, subresource, name
    ("GET", "/api/v1/namespaces", "", ("list", "", "v1", "", "namespaces", "", "")),
    ("GET", "/api/v1/namespaces/a", "", ("get", "", "v1", "a", "namespaces", "", "a")),
    ("PUT", "/api/v1/namespaces/a/finalize", "", ("update", "", "v1", "a", "namespaces", "finalize", "a")),
    ("GET", "/api/v1/namespaces/a/status", "", ("get", "", "v1", "a", "namespaces", "status", "a")),
    ("GET", "/api/v1/namespaces/a/pods", "", ("list", "", "v1", "a", "pods", "", "")),
    ("GET", "/api/v1/namespaces/a/pods/b/log", "", ("get", "", "v1", "a", "pods", "log", "b")),
    ("HEAD", "/api/v1/pods", "", ("list", "", "v1", "", "pods", "", "")),
    ("POST", "/apis/apps/v1/namespaces/a/deployments", "", ("create", "apps", "v1", "a", "deployments", "", "")),
    ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b", "", ("patch", "apps", "v1", "a", "deployments", "", "b")),
    ("DELETE", "/apis/g/v1/x", "", ("deletecollection", "g", "v1", "", "x", "", "")),
    ("DELETE", "/apis/g/v1/x/y", "", ("delete", "g", "v1", "", "x", "", "y")),
    ("OPTIONS", "/apis/g/v1/x", "", ("", "g", "v1", "", "x", "", "")),
    ("GET", "/api/v1/watch/namespaces/a/pods", "", ("watch", "", "v1", "a", "pods", "", "")),
    ("GET", "/api/v1/proxy/nodes/a/b", "", ("proxy", "", "v1", "", "nodes", "", "a")),
    ("GET", "/api/v1/pods", "watch=true", ("watch", "", "v1", "", "pods", "", "")),
    ("GET", "/api/v1/pods", "watch=maybe", ("watch", "", "v1", "", "pods", "", "")),
    ("GET", "/api/v1/pods", "watch", ("watch", "", "v1", "", "pods", "", "")),
    ("GET", "/api/v1/pods", "watch=FALSE", ("list", "", "v1", "", "pods", "", "")),
    ("GET", "/api/v1/pods", "watch=0&watch=1", ("list", "", "v1", "", "pods", "", "")),
    ("GET", "/api/v1/pods", "fieldSelector=metadata.name%3Dx", ("list", "", "v1", "", "pods", "", "x")),
    ("GET", "/api/v1/pods", "fieldSelector=metadata.name%3D..", ("list", "", "v1", "", "pods", "", "")),
    ("GET", "/api/v1/pods", "fieldSelector=metadata.name%21%3Dx", ("list", "", "v1", "", "pods", "", "")),
    ("GET", "/api/v1/pods", "fieldSelector=metadata.name%3Dx&limit=y", ("list", "", "v1", "", "pods", "", "")),
    ("GET", "/api/v1/pods", "fieldSelector=metadata.name%3Dx&labelSelector=%3D%3D", ("list", "", "v1", "", "pods", "", "")),
    ("GET", "/api/v1/pods/", "", ("list", "", "v1", "", "pods", "", "")),
    ("GET", "/api/v1/namespaces//pods", "", ("list", "", "v1", "", "pods", "", "")),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "query", "expected"), RESOURCES)
def test_resource_requests(method: str, path: str, query: str, expected: tuple[str, ...]) -> None:
    info = request_info(method, path, Query(query))
    assert info.is_resource_request
    seen = (info.verb, info.group, info.version, info.namespace, info.resource, info.subresource, info.name)
    assert seen == expected


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/api/v1/", "/apis", "/apis/apps/v1", "/healthz", "/x/y/z/a"])
def test_non_resource_requests_use_the_method_as_verb(path: str) -> None:
    info = request_info("POST", path, Query())
    assert (info.is_resource_request, info.verb, info.path) == (False, "post", path)


def test_path_ending_after_the_verb_is_rejected() -> None:
    with pytest.raises(UnknownTargetError):
        request_info("GET", "/api/v1/watch", Query())


def test_very_long_limit_is_ignored() -> None:
    info = request_info("GET", "/api/v1/pods", Query(f"fieldSelector=metadata.name%3Dx&limit={'9' * 5000}"))
    assert info.name == ""


@given(st.text(alphabet="/ab.%", max_size=30), st.text(alphabet="watch=&;%01", max_size=30))
def test_arbitrary_paths_are_parsed_or_rejected(path: str, query: str) -> None:
    try:
        info = request_info("GET", f"/api/v1/{path}", Query(query))
    except UnknownTargetError:
        return
    if info.is_resource_request:
        assert split_path(info.path)[-len(info.parts) :] == list(info.parts)


SEGMENTS = st.sampled_from(["", "api", "apis", "v1", "namespaces", "watch", "proxy", "status", "pods", "a", ".", "..", "%2F"])
PATHS = st.lists(SEGMENTS, max_size=7).map("/".join)


@given(
    st.sampled_from(["/api/v1/", "/apis/g/v1/", "/api/v1/namespaces/", "//api/", "/"]), PATHS, st.sampled_from(["", "watch=1"])
)
def test_siblings_are_what_their_whole_paths_say(root: str, rest: str, query: str) -> None:
    collection, asked = root + rest, Query(query)
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        try:
            known = request_info(method, f"{collection}/known", asked)
        except UnknownTargetError:
            continue
        for name in ("other", "known", ".", "..", "status", "namespaces", "watch", " ") if has_siblings(known) else ():
            path = f"{collection}/{name}"
            assert sibling_info(known, path, name) == request_info(method, path, asked)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/nodes/a", True),
        ("/apis/apps/v1/namespaces/a/deployments/b", True),
        ("/api/v1/namespaces/a", False),
        ("/api/v1/namespaces/a/status", False),
        ("/api/v1/pods", False),
        ("/api/v1/namespaces/a/pods/b/log", False),
        ("/api/v1/watch/nodes/a", False),
        ("//api/v1/nodes/a", False),
        ("/version", False),
    ],
)
def test_objects_have_siblings(path: str, expected: bool) -> None:
    assert has_siblings(request_info("GET", path, Query())) is expected
