"""The application is plain WSGI: werkzeug's test client and server can host it, watches included."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator

import pytest
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.test import Client

from fakekube import Cluster

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(profile="apiserver")
    yield cluster
    cluster.stop()


def test_werkzeug_test_client(cluster: Cluster) -> None:
    client = Client(cluster.application)
    made = client.post(CONFIGMAPS, json={"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert (made.status_code, made.json["data"]) == (201, {"k": "v"})
    assert client.get(f"{CONFIGMAPS}/b").json["reason"] == "NotFound"


def test_watch_with_the_werkzeug_test_client_ends_at_timeout(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    client = Client(cluster.application)
    answer = client.get(CONFIGMAPS, query_string={"watch": "1", "timeoutSeconds": "1"})
    cluster.clock.advance(seconds=1)
    events = [json.loads(line) for line in answer.data.splitlines()]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "a")]


@pytest.fixture
def server(cluster: Cluster) -> Iterator[BaseWSGIServer]:
    server = make_server("127.0.0.1", 0, cluster.application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.005,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_werkzeug_server(server: BaseWSGIServer) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/version") as answer:
        assert json.load(answer)["minor"] == "37"
