"""The page over HTTP: who may use it, its documents and modules, and the endpoints that it reads and changes things with."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from fakekube import Cluster
from fakekube.page import asset, assets
from tests.unit.seen import columns, config_map

NAVIGATION = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as started:
        yield started


def ask(
    cluster: Cluster, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    connection.request(method, path, None if body is None else json.dumps(body), headers or {})
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return found


def get(cluster: Cluster, path: str) -> Any:
    code, _, text = ask(cluster, "GET", f"/fakekube/v1/{path}")
    assert code == 200, text
    return json.loads(text)


def post(cluster: Cluster, path: str, body: Any) -> tuple[int, Any]:
    code, _, text = ask(cluster, "POST", f"/fakekube/v1/{path}", body)
    return code, json.loads(text)


# ---------------------------------------------------------------- documents and modules


def test_the_document_has_a_policy_with_a_fresh_nonce_and_no_data(cluster: Cluster) -> None:
    cluster.create(config_map("planted-name"))
    answers = [ask(cluster, "GET", "/fakekube/") for _ in range(2)]
    nonces = []
    for code, headers, body in answers:
        assert code == 200
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert b"planted-name" not in body
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self' 'nonce-")
        for part in ("frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"):
            assert part in policy
        assert "unsafe" not in policy
        (nonce,) = set(re.findall(r'nonce="([^"]+)"', body.decode()))
        assert f"'nonce-{nonce}'" in policy
        nonces.append(nonce)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
    assert nonces[0] != nonces[1]


def test_only_the_terminal_may_be_framed_and_have_inline_styles(cluster: Cluster) -> None:
    _, headers, _ = ask(cluster, "GET", "/fakekube/page/terminal")
    policy = headers["content-security-policy"]
    assert "style-src 'self' 'unsafe-inline'" in policy
    assert "frame-ancestors 'self'" in policy
    assert "script-src 'self' 'nonce-" in policy


def test_modules_are_immutable_under_the_hash(cluster: Cluster) -> None:
    for name in list(assets().files)[:3]:
        code, headers, body = ask(cluster, "GET", f"/fakekube/page/{assets().hash}/{name}")
        found = asset(name)
        assert found is not None
        assert (code, body, headers["content-type"]) == (200, found.data, found.media_type)
        assert "immutable" in headers["cache-control"]
        assert headers["x-content-type-options"] == "nosniff"
        assert ask(cluster, "GET", f"/fakekube/page/0000000000000000/{name}")[0] == 404
    for path in ("../document.py", "%2e%2e/document.py", "", "x.js", "index.html"):
        assert ask(cluster, "GET", f"/fakekube/page/{assets().hash}/{path}")[0] == 404


def test_the_page_can_be_switched_off() -> None:
    with Cluster(profile="apiserver", page=False) as cluster:
        assert not cluster.has_page
        assert ask(cluster, "GET", "/fakekube/")[0] == 404
        assert ask(cluster, "GET", "/fakekube/v1/info")[0] == 200
    with Cluster(profile="apiserver", control=False) as cluster:
        assert not cluster.has_page
        assert ask(cluster, "GET", "/fakekube/")[0] != 200


# ---------------------------------------------------------------- who may


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        ("/fakekube/", NAVIGATION, 200),
        ("/fakekube/page/terminal", NAVIGATION, 200),
        ("/fakekube/", {**NAVIGATION, "Sec-Fetch-Dest": "iframe"}, 403),
        ("/fakekube/", {**NAVIGATION, "Sec-Fetch-Mode": "no-cors"}, 403),
        ("/fakekube/", {**NAVIGATION, "Host": "evil.example"}, 403),
        ("/fakekube/v1/info", NAVIGATION, 403),
        ("/fakekube/v1/info", {"Sec-Fetch-Site": "same-site"}, 403),
        ("/fakekube/v1/info", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("/fakekube/v1/info", {"Origin": "http://evil.example"}, 403),
        ("/fakekube/v1/live", {"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_web_pages_of_others_get_nothing_but_documents(cluster: Cluster, path: str, headers: dict[str, str], code: int) -> None:
    assert ask(cluster, "GET", path, headers=headers)[0] == code


def test_a_browser_changes_things_only_with_the_header(cluster: Cluster) -> None:
    origin = f"http://127.0.0.1:{cluster.port}"
    same = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    for headers in (same, {"Origin": origin}, {"Sec-Fetch-Site": "none"}):
        code, _, text = ask(cluster, "POST", "/fakekube/v1/clock/hold", headers=headers)
        assert (code, "X-Fakekube: page" in text.decode()) == (403, True)
    assert not cluster.clock.held
    assert ask(cluster, "POST", "/fakekube/v1/clock/hold", headers={**same, "X-Fakekube": "page"})[0] == 200
    assert cluster.clock.held
    assert ask(cluster, "POST", "/fakekube/v1/clock/release")[0] == 200  # curl needs nothing new


@pytest.fixture
def closed() -> Iterator[Cluster]:
    """A cluster in which nobody is an administrator without credentials."""
    with Cluster(profile="apiserver", host="0.0.0.0", control=True) as started:
        yield started


def test_a_token_opens_the_page_where_credentials_are_needed(closed: Cluster) -> None:
    code, headers, body = ask(closed, "GET", "/fakekube/")
    assert code in (401, 403)
    assert b"needs the rights of an administrator" in body
    assert headers["content-security-policy"].startswith("default-src 'none'")
    path = closed.page_url.removeprefix(closed.url)
    assert path.startswith("/fakekube/?token=")
    code, headers, body = ask(closed, "GET", path)
    assert (code, headers["location"]) == (303, "/fakekube/")
    cookie = headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/fakekube/"):
        assert part in cookie
    held = {"Cookie": cookie.partition(";")[0]}
    assert ask(closed, "GET", "/fakekube/", headers=held)[0] == 200
    assert ask(closed, "GET", "/fakekube/v1/info", headers=held)[0] == 200
    assert ask(closed, "POST", "/fakekube/v1/clock/hold", headers=held)[0] == 403  # without the header
    assert ask(closed, "POST", "/fakekube/v1/clock/hold", headers={**held, "X-Fakekube": "page"})[0] == 200
    assert ask(closed, "GET", "/api/v1/namespaces", headers=held)[0] == 403  # it is none of the Kubernetes API
    assert ask(closed, "GET", "/fakekube/v1/info", headers={**held, "Sec-Fetch-Site": "cross-site"})[0] == 403


def test_servers_of_one_host_do_not_log_each_other_out(closed: Cluster) -> None:
    """A browser has one store of cookies for all ports of a host."""
    with Cluster(profile="apiserver", host="0.0.0.0", control=True) as other:
        store: dict[str, str] = {}
        for cluster in (closed, other):
            _, headers, _ = ask(cluster, "GET", cluster.page_url.removeprefix(cluster.url))
            name, _, value = headers["set-cookie"].partition(";")[0].partition("=")
            store[name] = value
        held = {"Cookie": "; ".join(f"{name}={value}" for name, value in store.items())}
        for cluster in (closed, other):
            assert ask(cluster, "GET", "/fakekube/v1/info", headers=held)[0] == 200
        stolen = {"Cookie": "; ".join(f"{name}={value}" for name, value in zip(store, reversed(store.values()), strict=True))}
        assert ask(closed, "GET", "/fakekube/v1/info", headers=stolen)[0] in (401, 403)


@pytest.mark.parametrize("host", ["x:99999999", "[::1]", "127.0.0.1:é", ":", "127.0.0.1:٣"])
def test_a_host_header_without_a_port_has_a_cookie_too(closed: Cluster, host: str) -> None:
    cookie = {"Cookie": f"fakekube={closed.page_token}", "Host": host.encode().decode("latin-1")}
    assert ask(closed, "GET", "/fakekube/v1/info", headers=cookie)[0] in (200, 400, 401, 403)


@pytest.mark.parametrize("token", ["", "x", "é", "a" * 22])
def test_a_wrong_token_opens_nothing(closed: Cluster, token: str) -> None:
    from urllib.parse import quote

    assert ask(closed, "GET", f"/fakekube/?token={quote(token)}")[0] in (401, 403)
    assert ask(closed, "GET", "/fakekube/v1/info", headers={"Cookie": f"fakekube-{closed.port}={quote(token)}"})[0] in (401, 403)
    assert ask(closed, "GET", "/fakekube/v1/info", headers={"Cookie": ";;=;"})[0] in (401, 403)


@pytest.mark.parametrize("options", [{"tls": True}, {"host": "0.0.0.0"}, {}])
def test_the_port_of_the_page_needs_the_token_and_has_no_kubernetes_api(options: dict[str, Any]) -> None:
    with Cluster(profile="apiserver", **options) as cluster:
        address = urlsplit(cluster.serve_page())
        assert address.hostname == "127.0.0.1"

        def fetch(method: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=60)
            connection.request(method, path, None, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
            connection.close()
            return found

        assert fetch("GET", "/fakekube/")[0] == 401
        assert fetch("GET", "/fakekube/v1/info")[0] == 401
        assert fetch("POST", "/fakekube/v1/clock/hold", X_Fakekube="page")[0] == 401
        assert fetch("GET", "/api/v1/namespaces")[0] == 404
        assert fetch("GET", "/version")[0] == 404
        code, headers, _ = fetch("GET", f"/fakekube/?{address.query}")
        assert code == 303
        assert "Secure" not in headers["set-cookie"]
        cookie = headers["set-cookie"].partition(";")[0]
        assert fetch("GET", "/fakekube/", Cookie=cookie)[0] == 200
        info = json.loads(fetch("GET", "/fakekube/v1/info", Cookie=cookie)[2])
        assert info["url"] == cluster.url
        assert fetch("GET", "/fakekube/v1/info", Cookie=cookie, Host="evil.example")[0] == 403
        assert fetch("GET", "/fakekube/v1/info", Cookie=cookie, Sec_Fetch_Site="same-site")[0] == 403
        assert fetch("POST", "/fakekube/v1/clock/hold", Cookie=cookie)[0] == 403
        assert not cluster.clock.held
        assert fetch("POST", "/fakekube/v1/clock/hold", Cookie=cookie, X_Fakekube="page")[0] == 200
        port = address.port or 0
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=2)


def test_no_token_is_needed_on_loopback(cluster: Cluster) -> None:
    assert cluster.page_url == f"{cluster.url}/fakekube/"


# ---------------------------------------------------------------- data


def test_info(cluster: Cluster) -> None:
    info = get(cluster, "info")
    assert info["url"] == cluster.url
    assert info["revision"] == info["initial"]
    assert info["started"] == get(cluster, "info")["started"]
    assert {"name": "deployments.apps", "kind": "Deployment", "namespaced": True, "apiVersion": "apps/v1"} in info["resources"]
    with Cluster(profile="apiserver") as other:
        assert get(other, "info")["started"] != info["started"]


def test_rows_in_pages(cluster: Cluster) -> None:
    for number in range(7):
        cluster.create(config_map(f"a-{number}"))
    first = get(cluster, "rows/requests?limit=3")
    assert ([row["name"] for row in columns(first)], first["next"], first["more"]) == (["a-0", "a-1", "a-2"], 2, True)
    rest = get(cluster, f"rows/requests?since={first['next']}")
    assert ([row["name"] for row in columns(rest)], rest["more"]) == (["a-3", "a-4", "a-5", "a-6"], False)
    back = get(cluster, "rows/requests?before=5&limit=2")
    assert ([row["name"] for row in columns(back)], back["more"]) == (["a-3", "a-4"], True)
    assert [row["name"] for row in columns(get(cluster, "rows/requests?since=1&until=3"))] == ["a-2", "a-3"]
    assert columns(get(cluster, "rows/requests?own=false")) == []
    changes = get(cluster, "rows/changes?resource=configmaps&namespace=default&name=a-3&paths=true")
    assert [row["name"] for row in columns(changes)] == ["a-3"]
    names: list[str] = []
    place = ""
    while True:
        part = get(cluster, f"rows/objects?kinds=configmaps&namespace=default&limit=3&after={place.replace(' ', '%20')}")
        names += [row["name"] for row in columns(part)]
        place = part["next"]
        if not part["more"]:
            break
    assert names == sorted({*(f"a-{number}" for number in range(7)), *names})
    assert len(names) == len(set(names))


def test_objects_at_every_revision_are_those_of_the_api(cluster: Cluster) -> None:
    start = int(cluster.rows.revision)
    cluster.create(config_map("a", x="1"))
    cluster.create(config_map("b"))
    cluster.patch("configmaps", "a", {"data": {"x": "2"}})
    cluster.delete("configmaps", "b")
    cluster.create(config_map("b"))
    for revision in range(start, int(cluster.rows.revision) + 1):
        rows = columns(get(cluster, f"rows/objects?at={revision}&kinds=configmaps&namespace=default"))
        listed = cluster.at(revision).list("configmaps", namespace="default")
        assert [(row["name"], str(row["revision"])) for row in rows] == [
            (one["metadata"]["name"], one["metadata"]["resourceVersion"]) for one in listed
        ]
        for one in listed:
            assert get(cluster, f"objects/configmaps/default/{one['metadata']['name']}?at={revision}")["object"] == one


def test_a_change(cluster: Cluster) -> None:
    cluster.create(config_map("a", x="1"))
    revision = int(cluster.patch("configmaps", "a", {"data": {"x": None, "y": "2"}})["metadata"]["resourceVersion"])
    found = get(cluster, f"changes/{revision}")
    assert found["before"]["data"] == {"x": "1"}
    assert found["after"]["data"] == {"y": "2"}
    assert [one for one in found["changed"] if one["path"].startswith("data")] == [
        {"path": "data.x", "old": "1"},
        {"path": "data.y", "new": "2"},
    ]
    assert (found["request"], found["actor"], found["type"]) == (1, "fakekube", "MODIFIED")
    assert found["sentence"] == "fakekube changed data.x, data.y of the ConfigMap a"
    assert get(cluster, "requests/1")["wrote"] == [revision]
    items = get(cluster, "history/configmaps/default/a")["items"]
    assert [(item["request"], item["actor"], item["verb"]) for item in items] == [
        (0, "fakekube", "create"),
        (1, "fakekube", "patch"),
    ]


def test_the_owners_of_an_object(cluster: Cluster) -> None:
    cluster.create(config_map("a", x="1"))
    found = get(cluster, "objects/configmaps/default/a")
    assert found["owners"]["data.x"] == [
        {"manager": "fakekube", "operation": "Update", "subresource": "", "time": found["owners"]["data.x"][0]["time"]}
    ]
    cluster.patch("configmaps", "a", {"data": {"x": "2"}})
    written = get(cluster, "objects/configmaps/default/a")["written"]
    assert written["data.x"] == {"revision": int(cluster.rows.revision), "request": 1, "actor": "fakekube"}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("rows/requests?since=x", 400),
        ("rows/requests?limit=-1", 400),
        ("rows/requests?own=perhaps", 400),
        ("rows/requests?nope=1", 400),
        ("rows/changes?paths=1", 400),
        ("rows/objects?limit=0", 400),
        ("rows/objects?at=100000", 404),
        ("changes/100000", 404),
        ("changes/x", 404),
        ("requests/77", 404),
        ("objects/configmaps/default/none", 404),
        ("objects/nothings/default/none", 404),
        ("compare?from=1", 400),
        ("compare?from=1&to=100000", 404),
    ],
)
def test_wrong_questions(cluster: Cluster, path: str, code: int) -> None:
    found, _, text = ask(cluster, "GET", f"/fakekube/v1/{path}")
    assert (found, "error" in json.loads(text)) == (code, True)


def test_live_over_http(cluster: Cluster) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    connection.request("GET", f"/fakekube/v1/live?changes={cluster.rows.revision}")
    answer = connection.getresponse()
    assert answer.getheader("Content-Type") == "application/x-ndjson"
    assert json.loads(answer.readline())["hello"]["url"] == cluster.url
    cluster.create(config_map("a"))
    seen: list[str] = []
    while "a" not in seen:
        line = json.loads(answer.readline())
        seen += [row["name"] for row in columns(line["changes"])] if "changes" in line else []
    connection.close()


# ---------------------------------------------------------------- controls


def test_forms_and_previews_of_faults(cluster: Cluster) -> None:
    forms = {one["name"]: one for one in get(cluster, "faults/actions")["items"]}
    assert forms["status"]["arguments"][0] == {
        "name": "code",
        "type": "integer",
        "default": None,
        "required": True,
        "description": "the status code of the Status",
    }
    assert "intercept" not in forms
    assert all(one["description"] and all(part["description"] for part in one["arguments"]) for one in forms.values())
    cluster.create(config_map("a"))
    cluster.create(config_map("b"))
    fault = {"on": {"verbs": "create", "resource": "configmaps", "name": "a", "own": True}, "do": {"status": {"code": 503}}}
    assert post(cluster, "faults/preview", fault) == (200, {"matches": 1, "of": 2, "requests": [0]})
    assert len(cluster.faults) == 0
    assert post(cluster, "faults/preview", {**fault, "do": {"status": {"code": 7}}})[0] == 400
    assert post(cluster, "faults/preview", {**fault, "do": {"nothing": {}}})[0] == 400


def test_faults_show_what_is_left_and_the_nearest_requests(cluster: Cluster) -> None:
    cluster.clock.hold()
    cluster.faults.on("delete", "configmaps", own=True).status(500, times=2, lasts=60)
    cluster.create(config_map("a"))
    cluster.clock.advance(seconds=10)
    (fault,) = get(cluster, "faults")["items"]
    assert fault["left"] == {"times": 2, "seconds": 50.0}
    assert "nothing was asked" in fault["near"]  # the requests of this process are not shown


def test_the_clock_shows_what_is_due(cluster: Cluster) -> None:
    cluster.clock.hold()
    cluster.clock.call_at(cluster.clock.monotonic() + 12.5, lambda: None, what="the bell")
    clock = get(cluster, "clock")
    assert (clock["held"], clock["scale"], clock["due"]) == (True, 1.0, [{"in": 12.5, "what": "the bell"}])
    assert post(cluster, "clock/scale", {"factor": 60})[1]["scale"] == 60
    for wrong in (0, -1, "fast", True, 1e12):
        assert post(cluster, "clock/scale", {"factor": wrong})[0] == 400


def test_controllers_are_among_what_is_due() -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "busybox"}]}
    spec = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    with Cluster() as cluster:
        cluster.clock.hold()
        cluster.create(
            {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick", "namespace": "default"}, "spec": spec}
        )
        cluster.settle()
        assert "cronjob-controller default/tick" in [one["what"] for one in get(cluster, "clock")["due"]]


def test_edited_objects_are_applied(cluster: Cluster) -> None:
    cluster.create(config_map("a", x="1"))
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {z: '2'}\n"
    assert post(cluster, "objects", {"yaml": text, "dryRun": True})[0] == 200
    assert cluster.get("configmaps", "a")["data"] == {"x": "1"}
    code, found = post(cluster, "objects", {"yaml": text})
    assert (code, found["object"]["data"]) == (200, {"x": "1", "z": "2"})
    assert {one["manager"] for one in found["object"]["metadata"]["managedFields"]} == {"fakekube", "fakekube-page"}
    code, found = post(cluster, "objects", {"yaml": text.replace("z: '2'", "x: '3'")})
    assert (code, [one["path"] for one in found["errors"]]) == (409, [".data.x"])
    assert post(cluster, "objects", {"yaml": text.replace("z: '2'", "x: '3'"), "force": True})[0] == 200
    code, found = post(cluster, "objects", {"yaml": text.replace("z: '2'", "'a b': '2'")})
    assert (code, found["errors"][0]["path"]) == (422, "data[a b]")


@pytest.mark.parametrize(
    "text", ["a: [", "3", "kind: Pod", "kind: Pod\nmetadata: {name: a}", "kind: X\napiVersion: v1\nmetadata: {name: a}"]
)
def test_what_is_no_object_is_not_applied(cluster: Cluster, text: str) -> None:
    assert post(cluster, "objects", {"yaml": text})[0] == 400


def test_marks(cluster: Cluster) -> None:
    assert post(cluster, "marks", {"text": "from afar"})[0] == 201
    assert post(cluster, "marks", {"text": ""})[0] == 400
    assert [mark.text for mark in cluster.marks] == ["from afar"]


def test_a_trace_over_http(cluster: Cluster) -> None:
    code, headers, text = ask(cluster, "POST", "/fakekube/v1/trace", {"redact": True})
    assert (code, headers["content-disposition"]) == (200, 'attachment; filename="trace.html"')
    assert text.startswith(b"<!doctype html>")
    assert ask(cluster, "POST", "/fakekube/v1/trace", {"redact": 1})[0] == 400
