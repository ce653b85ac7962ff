"""What comes from a cluster is text; other origins get nothing; trace files work from the file system without a network."""

from __future__ import annotations

import http.server
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.client import ApiError
from tests.page.rows import table, wait, wait_until_rendered
from tests.unit.seen import columns, config_map

Open = Callable[..., Any]

HOSTILE = "<img src=x onerror=globalThis.hacked=1></script><script>globalThis.hacked=1</script>\u202e\u200b\x1b[31m'\"`${1}"

#: As far as headers, user names and field managers may go: ASCII.
MARKUP = "<img/src=x/onerror=globalThis.hacked=1><script>globalThis.hacked=1</script>'\"&"


def plant(cluster: Cluster) -> None:
    """Puts hostile strings wherever the page shows text."""
    cluster.create(
        {**config_map("a", x=HOSTILE), "metadata": {"name": "a", "namespace": "default", "annotations": {"note": HOSTILE}}}
    )
    agent = "<script>globalThis.hacked=1</script><img/src=x/onerror=globalThis.hacked=1>"
    client = cluster.client_of(agent)
    client.call(
        "PATCH",
        "/api/v1/namespaces/default/configmaps/a",
        {"data": {"x": HOSTILE + "2"}},
        content_type="application/merge-patch+json",
    )
    for path in ("/api/v1/namespaces/default/configmaps/<img src=x>", "/<script>globalThis.hacked=1</script>"):
        with pytest.raises(ApiError):
            client.call("GET", path)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {
            "kind": "ConfigMap",
            "namespace": "default",
            "name": "a",
            "uid": cluster.get("configmaps", "a")["metadata"]["uid"],
        },
        "message": HOSTILE,
        "reason": "Hostile",
    }
    cluster.create(event)
    cluster.mark(HOSTILE)
    cluster.test = {"id": HOSTILE, "outcome": "failed", "message": HOSTILE}


def plant_more(cluster: Cluster) -> None:
    """Puts hostile strings into what only some requests have: members, managers, headers, users, patches, faults, snapshots, logs."""
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "evils.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "evils", "kind": "Evil"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    cluster.create(definition)
    members = {HOSTILE: HOSTILE, "__proto__": {"hacked": HOSTILE}, "constructor": {"prototype": 1}, "toString": "x"}
    obj = {"apiVersion": "example.com/v1", "kind": "Evil", "metadata": {"name": "e", "namespace": "default"}, "spec": members}
    path = "/apis/example.com/v1/namespaces/default/evils"
    headers = {"Content-Type": "application/json", "X-Evil": MARKUP, "User-Agent": MARKUP, "Impersonate-User": MARKUP}
    headers["Impersonate-Group"] = "system:masters"
    manager = urllib.parse.quote(MARKUP)
    cluster.request("POST", f"{path}?fieldManager={manager}&pretty={manager}", obj, headers=headers)
    changed = [
        {"op": "replace", "path": "/spec/toString", "value": HOSTILE},
        {"op": "add", "path": f"/spec/{MARKUP.replace('/', '~1')}", "value": []},
    ]
    headers["Content-Type"] = "application/json-patch+json"
    for body in (changed, [{"op": "test", "path": f"/{HOSTILE}", "value": HOSTILE}], HOSTILE):
        cluster.request("PATCH", f"{path}/e?fieldManager={manager}", body, headers=headers)
    cluster.faults.on("get", "evils").status(418, message=HOSTILE, reason=MARKUP, times=1)
    cluster.request("GET", f"{path}/e", headers=headers)
    cluster.faults.on("list", "pods").status(503, message=HOSTILE, label=HOSTILE)
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "x"}]},
            "status": {
                "phase": "Pending",
                "conditions": [{"type": "Ready", "status": "False", "reason": MARKUP, "message": HOSTILE}],
            },
        }
    )
    status = {
        "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": HOSTILE}]}
    }
    cluster.request(
        "PATCH", "/api/v1/namespaces/default/pods/p/status", status, headers={"Content-Type": "application/merge-patch+json"}
    )


MORE_VIEWS = (
    "#/timeline?q=resource:evils.example.com",
    "#/timeline?q=%3Cimg%20src=x%3E&range=1..999&axis=clock",
    "#/timeline?q=&sel=c%d",
    "#/requests?q=code:4xx",
    "#/objects/evils.example.com/default/e?tab=fields",
    "#/objects/evils.example.com/default/e?tab=history&path=spec.toString",
    "#/objects/evils.example.com/default/e?tab=requests",
    "#/objects/pods/default/p?tab=fields",
    "#/compare?from=1&to=%d&path=<img src=x>",
    "#/controls?fault=<img src=x>",
    "#/<img src=x onerror=globalThis.hacked=1>?q=<script>",
)
EXPOSED = r"""() => {
  const bad = /[\u202e\u200b\u0000-\u0008\u001b]/;
  const found = [];
  for (const one of document.querySelectorAll('#app *')) {
    for (const {name, value} of one.attributes) if (/^on/.test(name) || bad.test(value) || (/^(href|src|action)$/.test(name) && !/^(#|page\/terminal)/.test(value))) found.push(`${one.tagName} ${name}=${value}`);
    if (/^(SCRIPT|IMG|OBJECT|EMBED|BASE|LINK|STYLE|META|SVG)$/i.test(one.tagName)) found.push(one.outerHTML);
  }
  if (bad.test(document.title) || bad.test(document.body.innerText)) found.push(document.title + document.body.innerText);
  if (globalThis.hacked !== undefined || ({}).hacked !== undefined) found.push('hacked');
  return found;
}"""


@pytest.mark.parametrize("from_file", [False, True])
def test_hostile_members_headers_patches_and_faults_stay_text(
    cluster: Cluster, open_page: Open, trace: Callable[[], str], from_file: bool
) -> None:
    plant(cluster)
    plant_more(cluster)
    page = open_page(trace() if from_file else cluster.page_url)
    refused = [
        row["number"] for row in columns(cluster.rows.requests()) if row["code"] >= 400 or row["resource"].startswith("evils")
    ]
    newest = str(cluster.rows.revision)
    absent = (
        ["#/objects/<img src=x onerror=globalThis.hacked=1>/\u202e/<script>"] if from_file else []
    )  # a 404 is an error in the console
    for view in (
        *absent,
        *(view.replace("%d", newest) for view in MORE_VIEWS),
        *(f"#/requests/{number}?q=" for number in refused),
    ):
        page.evaluate("(hash) => { location.hash = hash; }", view)
        wait_until_rendered(page)
        wait(page, "!/Reading|Comparing/.test(document.querySelector('#app').innerText)")
        assert page.evaluate(EXPOSED) == [], view
        for tab in page.query_selector_all(".panel [role=tab]"):
            tab.click()
            assert page.evaluate(EXPOSED) == [], view
            break
    assert MARKUP in page.evaluate("fakekube.store.strings.list.join(' ')")


def test_hostile_strings_of_a_report_stay_text(cluster: Cluster, open_page: Open, tmp_path: Path) -> None:
    from fakekube.checker.report import ProvocationReport, Report, RuleReport

    plant(cluster)
    provocation = ProvocationReport(f"W1/{MARKUP}", HOSTILE, "A", "fail", [HOSTILE], 1.0)
    rule = RuleReport("W1", "fail", "A", [HOSTILE, MARKUP], HOSTILE, HOSTILE, HOSTILE, [provocation])
    parts = cluster.trace_parts()
    report = Report(HOSTILE, [rule], traces={provocation.key: parts, "baseline": parts})
    report.write_html(tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri())
    assert page.evaluate(EXPOSED) == []
    page.click(".verdict .primary")
    wait(page, "fakekube.route.view === 'timeline' && fakekube.store.requests.count > 0")
    assert page.evaluate(EXPOSED) == []


def test_hostile_strings_of_a_scenario_stay_text(cluster: Cluster, open_page: Open) -> None:
    task = {
        "title": HOSTILE,
        "text": HOSTILE,
        "hints": [HOSTILE],
        "budget": {"seconds": None, "requests": None},
        "passed": False,
        "failed": [HOSTILE],
    }
    cluster.describe_scenario = lambda: {
        "name": "s",
        "title": HOSTILE,
        "text": f"{HOSTILE}\n\n`{MARKUP}`",
        "passed": False,
        "tasks": [task],
    }
    page = open_page(cluster.page_url)
    page.wait_for_selector(".scenario .missing")
    assert page.evaluate(EXPOSED) == []


VIEWS = (
    "#/timeline?q=",
    "#/requests?q=",
    "#/requests/1?q=",
    "#/requests/2?q=",
    "#/objects?by=flat&q=name:a",
    "#/objects/configmaps/default/a?tab=fields",
    "#/objects/configmaps/default/a?tab=history",
    "#/objects/configmaps/default/a?tab=events",
    "#/compare?from=1&to=%d",
    "#/controls",
)


@pytest.mark.parametrize("from_file", [False, True])
def test_hostile_strings_stay_text_in_every_view(
    cluster: Cluster, open_page: Open, trace: Callable[[], str], from_file: bool
) -> None:
    plant(cluster)
    address = trace() if from_file else cluster.page_url
    page = open_page(address)
    for view in VIEWS:
        page.evaluate("(hash) => { location.hash = hash; }", view.replace("%d", str(cluster.rows.revision)))
        wait_until_rendered(page)
        wait(
            page,
            "!document.querySelector('main')?.innerText.includes('Reading') && !document.querySelector('aside')?.innerText.includes('Reading')",
        )
        assert page.evaluate("globalThis.hacked") is None
        assert page.evaluate("document.querySelectorAll('#app img, #app script').length") == 0, view
        text = page.evaluate("document.body.innerText")
        assert not {"\u202e", "\u200b", "\x1b"} & set(text), view


def test_a_trace_file_works_offline_with_the_same_rows(cluster: Cluster, open_page: Open, trace: Callable[[], str]) -> None:
    cluster.create(config_map("a", x="1"))
    cluster.patch("configmaps", "a", {"data": {"x": "2"}})
    page = open_page(trace(), offline=True)
    names = ["number", "verb", "name", "code", "rev", "actor"]
    assert table(page, "requests", names) == [{name: row[name] for name in names} for row in columns(cluster.rows.requests())]
    asked: list[str] = []
    page.on(
        "request", lambda request: asked.append(request.url) if not request.url.startswith(("data:", "blob:", "file:")) else None
    )
    page.evaluate("location.hash = '#/requests/1'")
    wait(page, "document.querySelector('.panel')?.innerText.includes('ConfigMap')")
    page.evaluate("location.hash = '#/objects/configmaps/default/a?tab=history'")
    wait(page, "document.querySelector('table.versions')?.innerText.includes('data.x')")
    assert page.is_visible("text=file")
    assert page.locator(".why").count() == 0  # nothing was dropped
    assert asked == []


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A web page of another origin."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title>")

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


ATTACK = """async (url) => {
  const found = {};
  const tried = async (name, act) => { try { found[name] = await act(); } catch (error) { found[name] = 'refused'; } };
  await tried('read', async () => (await fetch(url + '/fakekube/v1/info')).text());
  await tried('write', async () => (await fetch(url + '/fakekube/v1/clock/hold', {method: 'POST', body: '{}'})).text());
  await tried('blind write', async () => { await fetch(url + '/fakekube/v1/clock/hold', {method: 'POST', mode: 'no-cors', body: '{}'}); return 'refused'; });
  await tried('header', async () => (await fetch(url + '/fakekube/v1/clock/hold', {method: 'POST', headers: {'X-Fakekube': 'page'}, body: '{}'})).text());
  await tried('api', async () => (await fetch(url + '/api/v1/namespaces')).text());
  await tried('script', () => new Promise((done) => { const one = document.createElement('script'); one.src = url + '/fakekube/v1/info'; one.onerror = () => done('refused'); one.onload = () => done('loaded'); document.head.append(one); }));
  await tried('socket', () => new Promise((done) => { const one = new WebSocket(url.replace('http', 'ws') + '/api/v1/namespaces?watch=true'); one.onopen = () => done('open'); one.onerror = () => done('refused'); }));
  await tried('beacon', async () => { navigator.sendBeacon(url + '/fakekube/v1/clock/hold', new Blob(['{}'], {type: 'text/plain'})); return 'refused'; });
  await tried('terminal', () => new Promise((done) => { const one = new WebSocket(url.replace('http', 'ws') + '/fakekube/v1/pods/default/a/terminal', 'v5.channel.k8s.io'); one.onopen = () => done('open'); one.onerror = () => done('refused'); }));
  await tried('events', () => new Promise((done) => { const one = new EventSource(url + '/fakekube/v1/live'); one.onopen = () => done('open'); one.onerror = () => { one.close(); done('refused'); }; }));
  await tried('module', async () => { await import(url + '/fakekube/v1/info'); return 'loaded'; });
  await tried('image', () => new Promise((done) => { const one = new Image(); one.onload = () => done('loaded'); one.onerror = () => done('refused'); one.src = url + '/fakekube/v1/info'; }));
  await tried('style', () => new Promise((done) => { const one = document.createElement('link'); one.rel = 'stylesheet'; one.href = url + '/fakekube/v1/info'; one.onload = () => done('loaded'); one.onerror = () => done('refused'); document.head.append(one); }));
  await tried('form', () => new Promise((done) => {
    const target = document.createElement('iframe'); target.name = 'target'; document.body.append(target);
    const form = document.createElement('form'); form.action = url + '/fakekube/v1/clock/hold'; form.method = 'post'; form.enctype = 'text/plain'; form.target = 'target';
    const field = document.createElement('input'); field.name = '{"a":"'; field.value = '"}'; form.append(field); document.body.append(form);
    target.onload = () => { try { done(target.contentDocument?.body?.innerText ? 'readable' : 'refused'); } catch { done('refused'); } };
    form.submit(); setTimeout(() => done('refused'), 1000);
  }));
  const frame = document.createElement('iframe');
  frame.src = url + '/fakekube/';
  await new Promise((done) => { frame.onload = done; setTimeout(done, 1500); document.body.append(frame); });
  let inside = 'refused';
  try { inside = frame.contentDocument?.body ? 'readable' : 'refused'; } catch { inside = 'refused'; }
  found.frame = inside;
  return found;
}"""


def test_another_origin_cannot_read_write_frame_or_connect(cluster: Cluster, browser: Any, elsewhere: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(elsewhere)
    found = page.evaluate(ATTACK, cluster.url)
    context.close()
    assert set(found.values()) == {"refused"}, found
    assert not cluster.clock.held


def test_copied_commands_are_safe_in_a_shell(cluster: Cluster, open_page: Open) -> None:
    import subprocess

    page = open_page(cluster.page_url)
    for value in ("a b", "$(touch /tmp/x)", "`id`", "'; rm x; '", "a\nb", "é\x1b", "-n", "", '"', "\\"):
        quoted = page.evaluate("async (value) => (await import('fk/escape')).shellQuote(value)", value)
        printed = subprocess.run(["bash", "-c", f"printf %s {quoted}"], capture_output=True, check=True).stdout.decode()
        assert printed == value
