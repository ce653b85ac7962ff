"""What comes from a cluster is text; other origins get nothing; trace files work from the file system without a network."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.client import ApiError
from tests.page.rows import table, wait
from tests.unit.seen import columns, config_map

Open = Callable[..., Any]

HOSTILE = "<img src=x onerror=globalThis.hacked=1></script><script>globalThis.hacked=1</script>\u202e\u200b\x1b[31m'\"`${1}"


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
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
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
    threading.Thread(target=server.serve_forever, daemon=True).start()
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
