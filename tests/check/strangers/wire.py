"""What the programs of this folder share: the connection to the API server, a reflector, and a queue with growing pauses.

The programs are written as a stranger would write them: with the standard library, threads and little else. `bad(NAME)` is true if
the option `--defect NAME` was given; without it the code follows all rules.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import ssl
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Object = dict[str, Any]
_active: set[str] = set()
_asked: set[str] = set()
#: Seconds after which a request without an answer, and a silent watch, is given up.
TIMEOUT = 12.0


def activate(name: str) -> None:
    if name:
        _active.add(name)


def bad(name: str) -> bool:
    return name in _active


class Failed(Exception):
    """The server has refused a request."""

    def __init__(self, code: int, text: str, retry_after: float) -> None:
        super().__init__(f"{code}: {text[:200]}")
        self.code, self.text, self.retry_after = code, text, retry_after


class Api:
    """Sends requests as the user of the kubeconfig."""

    def __init__(self, agent: str) -> None:
        config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url = urlsplit(cluster["server"])
        self._agent = agent
        self._file, self._token = user.get("tokenFile"), user.get("token", "")
        self._read_at = 0.0
        self._tls = None
        if self._url.scheme == "https":
            self._tls = ssl.create_default_context(cadata=_pem(cluster))

    def token(self) -> str:
        if self._file and (not self._token or time.monotonic() - self._read_at > 30.0) and not (self._token and bad("a1-once")):
            self._token, self._read_at = Path(self._file).read_text().strip(), time.monotonic()
        return self._token

    def forget_token(self) -> None:
        self._read_at = -1000.0

    def open(self, method: str, path: str, body: Any = None, kind: str = "application/json", timeout: float = TIMEOUT):
        """Returns the connection and the response. Raises OSError, HTTPException and Failed."""
        if self._tls is not None:
            connection: Any = http.client.HTTPSConnection(self._url.netloc, timeout=timeout, context=self._tls)
        else:
            connection = http.client.HTTPConnection(self._url.netloc, timeout=timeout)
        headers = {"User-Agent": self._agent, "Accept": "application/json"}
        if self.token():
            headers["Authorization"] = f"Bearer {self._token}"
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), kind
        if bad("n1-gzip"):
            headers["Accept-Encoding"] = "gzip"
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        if bad("n1-warning-on-read") and method == "GET" and response.getheader("Warning"):
            os._exit(3)
        if response.status >= 400:
            text = response.read().decode(errors="replace")
            connection.close()
            if response.status == 401:
                if bad("a1-unchanged"):
                    print("fatal: unauthorized", flush=True)
                    os._exit(4)
                self.forget_token()
            raise Failed(response.status, text, float(response.getheader("Retry-After") or 0))
        return connection, response

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Object:
        """Sends a request; one that is told to come later is sent again, but only then."""
        for attempt in range(6):
            try:
                connection, response = self.open(method, path, body, kind)
                with connection:
                    return json.loads(response.read())
            except Failed as problem:
                late = problem.retry_after
                if bad("r1-write-soon") and method != "GET":
                    late = min(late, 0.3)
                if bad("r1-capped"):
                    late = min(late, 1.0)
                if problem.code not in (429, 503) or not late or attempt == 5:
                    raise
                time.sleep(late + random.random() * 0.2)
        raise AssertionError


def _pem(cluster: Object) -> str:
    if "certificate-authority-data" in cluster:
        import base64

        return base64.b64decode(cluster["certificate-authority-data"]).decode()
    return Path(cluster["certificate-authority"]).read_text()


for _one in (http.client.HTTPConnection, http.client.HTTPSConnection):
    _one.__enter__ = lambda self: self  # type: ignore[attr-defined]
    _one.__exit__ = lambda self, *_: self.close()  # type: ignore[attr-defined]


class Backoff:
    """Pauses that grow from 0.8 s to 30 s, with a random part."""

    def __init__(self) -> None:
        self._next = 0.8

    def reset(self) -> None:
        self._next = 0.8

    def wait(self, least: float = 0.0) -> None:
        pause = self._next * (1 + random.random())
        self._next = min(self._next * 2, 30.0)
        if bad("w6-flat-second") or bad("r4-fixed"):
            pause = 1.0
        if bad("w6-small-cap"):
            pause = 0.15
        time.sleep(max(pause, least))


def key_of(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


class Reflector(threading.Thread):
    """Keeps a cache of a collection, and calls `changed(key, object or None, last object)`.

    Args:
        api: the API server.
        path: the collection.
        changed: called for each change.
        limit: the size of pages; 0 for none.
        streaming: ask for initial events instead of a list.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        changed: Callable[[str, Object | None, Object | None], None],
        *,
        limit: int = 0,
        streaming: bool = False,
        main: bool = True,
    ) -> None:
        super().__init__(daemon=True)
        self.cache: dict[str, Object] = {}
        self.synced = threading.Event()
        self._api, self._path, self._changed, self._limit, self._streaming = api, path, changed, limit, streaming
        self._revision = ""
        self._main = main
        self._last_seen = ""
        self._version = ""

    def run(self) -> None:
        backoff = Backoff()
        failures = 0
        while True:
            begun = time.monotonic()
            late = 0.0
            try:
                if bad("d3-version"):
                    version = self._api.call("GET", "/version")["minor"]
                    if version != self._version and self._version:
                        print("fatal: the server has another version", flush=True)
                        os._exit(11)
                    self._version = version
                if not self._revision and not self._streaming:
                    self._revision = self._list()
                    self.synced.set()
                ended = self._watch()
                failures = 0
                if bad("w4-hot") and not self._revision:
                    continue
                if ended and not self._main and bad("w5-child-stream"):
                    return
                if bad("w5-no-revision"):
                    self._revision = "0"
                if time.monotonic() - begun < 1.0 and not ended:  # nothing came: the revision may have expired
                    self._revision = ""
                    if not bad("w6-hot"):
                        backoff.wait()
                    continue
            except Failed as problem:
                failures += 1
                late = problem.retry_after
                if bad("r5-start-hot") and not self.synced.is_set():
                    continue
                if problem.code in (400, 403, 422) and self._streaming and not bad("w14-insists"):
                    self._streaming = False
                    continue
                if problem.code == 410 and not bad("w2-keeps"):
                    self._revision = ""
                if problem.code == 504 and not bad("w15-same"):
                    self._revision = ""
                    self._last_seen = ""
                if bad("r2-three") and failures >= 3:
                    print("fatal: too many failures", flush=True)
                    os._exit(5)
                if bad("r1-second-dies") and problem.code == 429 and failures >= 2:
                    os._exit(6)
                if bad("r2-html") and problem.text.startswith("<"):
                    json.loads(problem.text)
                if bad("r2-hot"):
                    continue
            except (OSError, http.client.HTTPException, ValueError):
                failures += 1
                if bad("r2-dropped-hot"):
                    continue
            if time.monotonic() - begun > 30.0:
                backoff.reset()
            if late or failures or time.monotonic() - begun < 1.0:
                backoff.wait(late)
            else:
                backoff.reset()

    # ------------------------------------------------------------ lists

    def _list(self) -> str:
        found: dict[str, Object] = {}
        token, revision = "", ""
        first = {"resourceVersion": "0"} if not self._limit and not self._last_seen else {}
        if bad("w15-same") and self._last_seen:
            first = {"resourceVersion": self._last_seen}
        while True:
            query = dict(first) if not token else {}
            if self._limit:
                query["limit"] = str(self._limit)
            if token:
                query["continue"] = token
            try:
                page = self._api.call("GET", f"{self._path}?{urlencode(query)}")
            except Failed as problem:
                if problem.code == 410 and token and not bad("p1-gives-up"):
                    found, token = {}, ""
                    self._limit = 0
                    first = {}
                    continue
                raise
            found |= {key_of(obj): obj for obj in page.get("items") or ()}
            revision = page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue") or ""
            if not token or bad("p2-first-page"):
                break
            if bad("p2-empty") and not page["items"]:
                break
        if bad("w11-item") and found:
            revision = max((obj["metadata"]["resourceVersion"] for obj in found.values()), key=int)
        self._replace(found)
        if bad("v1-float"):
            revision = str(int(float(revision)))
        return revision

    def _replace(self, found: dict[str, Object]) -> None:
        gone = [key for key in self.cache if key not in found]
        for key, obj in found.items():
            self._set(key, obj)
        if bad("w12-ghosts"):
            return
        for key in gone:
            self._set(key, None)

    def _set(self, key: str, obj: Object | None) -> None:
        old = self.cache.get(key)
        if obj is None:
            self.cache.pop(key, None)
        else:
            self.cache[key] = obj
        if old is not None and obj is not None and old["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]:
            return
        self._changed(key, obj, old)

    # ------------------------------------------------------------ watches

    def _watch(self) -> bool:
        """Watches until the server ends the watch; returns whether an event or a bookmark came."""
        query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(random.randrange(290, 590))}
        initial: dict[str, Object] | None = None
        if self._streaming and not self._revision:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            initial = {}
        elif self._revision and not (bad("w5-no-revision") and self._revision == "0"):
            query["resourceVersion"] = self._revision
        connection, response = self._api.open("GET", f"{self._path}?{urlencode(query)}", timeout=TIMEOUT)
        came = False
        with connection:
            for line in _lines(response):
                event = json.loads(line)
                kind, obj = event["type"], event["object"]
                if kind == "ERROR":
                    self._failed(obj)
                    return True
                if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                    if bad("n1-type"):
                        raise SystemExit(os._exit(7))
                    continue
                came = True
                revision = obj["metadata"]["resourceVersion"]
                if kind == "BOOKMARK":
                    if bad("w10-spec") and self._main:
                        key_of(obj)
                    if initial is not None and "k8s.io/initial-events-end" in (obj["metadata"].get("annotations") or {}):
                        self._replace(initial)
                        initial = None
                        self.synced.set()
                    if initial is None and not bad("w10-ignores"):
                        self._revision = revision
                    continue
                if initial is not None:
                    initial[key_of(obj)] = obj
                    continue
                if not (bad("w5-added-only") and kind != "ADDED"):
                    self._revision = revision
                if bad("v1-float"):
                    self._revision = str(int(float(revision)))
                self._last_seen = revision
                self._set(key_of(obj), None if kind == "DELETED" else obj)
        return came

    def _failed(self, status: Object) -> None:
        code = status.get("code")
        if bad("w4-any-is-fatal"):
            print("fatal: error event", code, flush=True)
            os._exit(8)
        if bad("w4-hot") and code != 410:
            self._revision = ""
            return
        if code == 410:
            if bad("w1-nowhere"):
                self._list()
                self._revision = "0"
                return
            if bad("w1-old-revision"):
                self._list()
                time.sleep(0.3)
                return
            self._revision = ""
            return
        raise Failed(int(code or 500), str(status.get("message")), 0.0)


def _lines(response: Any) -> Iterator[bytes]:
    if bad("w8-splitlines"):
        rest = ""
        while piece := response.read1(65536):
            rest += piece.decode(errors="replace")
            *whole, rest = rest.splitlines(keepends=True) if not rest.endswith("\n") else [*rest.splitlines(), ""]
            yield from (line.encode() for line in whole if line.strip())
        return
    if bad("w8-pieces"):
        while piece := response.read1(65536):
            yield from (line for line in piece.split(b"\n") if line.strip())
        return
    while True:
        line = response.readline() if not bad("w9-limit") else response.readline(1 << 20)
        if not line:
            return
        if not line.endswith(b"\n"):
            raise ValueError("the line is not complete")
        yield line


class Queue:
    """Keys to work on, each in one thread at a time, with growing pauses after failures."""

    def __init__(self, work: Callable[[str], None], workers: int = 1) -> None:
        self._work = work
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._busy: set[str] = set()
        self._change = threading.Condition()
        for _ in range(workers):
            threading.Thread(target=self._run, daemon=True).start()

    def add(self, key: str, after: float = 0.0) -> None:
        with self._change:
            at = time.monotonic() + after
            self._due[key] = min(at, self._due.get(key, at))
            self._change.notify()

    def _take(self) -> str:
        with self._change:
            while True:
                now = time.monotonic()
                ready = [key for key, at in self._due.items() if at <= now and key not in self._busy]
                if ready:
                    key = min(ready, key=self._due.__getitem__)
                    del self._due[key]
                    self._busy.add(key)
                    return key
                waiting = [at for key, at in self._due.items() if key not in self._busy]
                self._change.wait(max(min(waiting) - now, 0.01) if waiting else None)

    def _run(self) -> None:
        while True:
            key = self._take()
            try:
                self._work(key)
            except Failed as problem:
                self._retry(key, problem.code, problem.retry_after)
            except (OSError, http.client.HTTPException):
                self._retry(key, 0, 0.0)
            except KeyError as problem:
                print("fatal:", repr(problem), flush=True)
                os._exit(9)
            else:
                self._failures.pop(key, None)
            finally:
                with self._change:
                    self._busy.discard(key)
                    self._change.notify()

    def _retry(self, key: str, code: int, late: float) -> None:
        if bad("c1-drops") and code == 409:
            return
        if bad("r2-write-drops") and (code >= 500 or not code):
            return
        if bad("c6-exits") and code == 404:
            print("fatal: not found", flush=True)
            os._exit(10)
        count = self._failures[key] = self._failures.get(key, 0) + 1
        if bad("c1-gives-up") and count > 4:
            return
        if bad("r2-write-hot"):
            self.add(key)
            return
        if bad("r2-write-flat"):
            self.add(key, 0.5)
            return
        self.add(key, max(min(0.05 * 2**count, 20.0) * (1 + random.random()), late))


def main(program: Callable[[Api], None], agent: str) -> None:
    """Runs a program with the options of the command line."""
    arguments = sys.argv[1:]
    if "--defect" in arguments:
        activate(arguments[arguments.index("--defect") + 1])
    if "--start" in arguments:
        time.sleep(float(arguments[arguments.index("--start") + 1]))
    program(Api(agent))
    threading.Event().wait()
