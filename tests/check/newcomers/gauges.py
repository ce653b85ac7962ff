"""Shows Gauges: a ConfigMap for each one, which it deletes itself, an annotation, and a status with observedGeneration.

    KUBECONFIG=… python gauges.py            (DEFECT=NAME puts one in)

Sockets of its own, one for each request; threads; a work queue; lists in pages.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import socket
import ssl
import threading
import time
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEFECT = os.environ.get("DEFECT", "")
GAUGES = "/apis/checked.dev/v1/gauges"
DISPLAYS = "/api/v1/configmaps"
OF, UID, DIGEST = "gauges.checked.dev/of", "gauges.checked.dev/uid", "gauges.checked.dev/digest"
#: Seconds without a byte after which a connection is given up.
SILENCE = 14.0
Object = dict[str, Any]

config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
server = urlsplit(config["clusters"][0]["cluster"]["server"])
user = config["users"][0]["user"]
trust = None
if server.scheme == "https":
    authority = config["clusters"][0]["cluster"].get("certificate-authority-data")
    trust = ssl.create_default_context(cadata=base64.b64decode(authority).decode() if authority else None)


class Refused(Exception):
    def __init__(self, code: int, text: str, wait: float = 0.0) -> None:
        super().__init__(f"{code} {text[:150]}")
        self.code, self.wait = code, wait


class Answer:
    """The answer to a request on a socket of its own."""

    def __init__(self, method: str, path: str, body: bytes, kind: str) -> None:
        plain = socket.create_connection((server.hostname, server.port), timeout=SILENCE)
        self._socket = trust.wrap_socket(plain, server_hostname=server.hostname) if trust else plain
        token = Path(user["tokenFile"]).read_text().strip() if "tokenFile" in user else user.get("token", "")
        lines = [f"{method} {path} HTTP/1.1", f"Host: {server.netloc}", "User-Agent: gauges/0.9", "Accept: application/json"]
        lines += ["Connection: close", f"Authorization: Bearer {token}", f"Content-Length: {len(body)}"]
        lines += [f"Content-Type: {kind}"] if body else []
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        self._read = bytearray()
        head = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        self.code = int(head[0].split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}

    def close(self) -> None:
        self._socket.close()

    def _more(self) -> None:
        piece = self._socket.recv(65536)
        if not piece:
            raise OSError("the connection ended early")
        self._read += piece

    def _until(self, end: bytes) -> bytes:
        while end not in self._read:
            self._more()
        found, _, self._read = self._read.partition(end)
        return bytes(found)

    def _exactly(self, count: int) -> bytes:
        while len(self._read) < count:
            self._more()
        found = bytes(self._read[:count])
        del self._read[:count]
        return found

    def pieces(self) -> Iterator[bytes]:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            while count := int(self._until(b"\r\n").partition(b";")[0], 16):
                yield self._exactly(count)
                self._exactly(2)
        else:
            yield self._exactly(int(self.headers.get("content-length", 0)))

    def lines(self) -> Iterator[bytes]:
        rest = b""
        for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
        if rest:
            raise OSError("cut within an event")


def open_answer(method: str, path: str, body: Any = None, kind: str = "application/json") -> Answer:
    """Raises Refused."""
    answer = Answer(method, path, b"" if body is None else json.dumps(body).encode(), kind)
    if answer.code >= 300:
        text = b"".join(answer.pieces()).decode(errors="replace")
        answer.close()
        after = answer.headers.get("retry-after", "0")
        heeded = after.isdigit() and (answer.code == 429 or DEFECT != "only-429")
        raise Refused(answer.code, text, float(after) if heeded else 0.0)
    return answer


def call(method: str, path: str, body: Any = None, kind: str = "application/json") -> Object:
    answer = open_answer(method, path, body, kind)
    try:
        return dict(json.loads(b"".join(answer.pieces())))
    finally:
        answer.close()


def key_of(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


class Reflector:
    def __init__(self, path: str, selector: str, told: Callable[[Object], None]) -> None:
        self.items: dict[str, Object] = {}
        self.filled = threading.Event()
        self._path, self._selector, self._told, self._revision = path, selector, told, ""

    def run(self) -> None:
        pause = 0.7
        while True:
            begun, wait = time.monotonic(), 0.0
            try:
                if not self._revision:
                    self._list()
                if self._watch() or time.monotonic() - begun > 1.5:
                    pause = 0.7
                    continue
                self._revision = ""  # ended without an event: it may have expired
            except Refused as problem:
                wait = problem.wait
                if problem.code in (410, 504):
                    self._revision = ""
            except TimeoutError:
                if time.monotonic() - begun >= SILENCE:
                    continue
            except (OSError, ValueError) as problem:
                print(self._path, repr(problem), flush=True)
            time.sleep(max(wait, pause * random.uniform(0.5, 1.5)))
            pause = min(2 * pause, 30.0)

    def _list(self) -> None:
        found: dict[str, Object] = {}
        token = ""
        while True:
            try:
                page = call("GET", f"{self._path}?limit=100{self._selector}" + (f"&continue={quote(token)}" if token else ""))
            except Refused as problem:
                if problem.code != 410 or not token:
                    raise
                token = ""
                if DEFECT != "old-pages":
                    found = {}
                continue
            found |= {key_of(one): one for one in page["items"]}
            token = page["metadata"].get("continue") or ""
            if not token:
                break
        gone = [one for key, one in self.items.items() if key not in found]
        self.items, self._revision = found, page["metadata"]["resourceVersion"]
        self.filled.set()
        for one in [*gone, *found.values()]:
            self._told(one)

    def _watch(self) -> int:
        seconds = random.randint(280, 420)
        query = f"?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={self._revision}{self._selector}"
        answer = open_answer("GET", self._path + query)
        came = 0
        try:
            for line in answer.lines():
                event = json.loads(line)
                obj = event["object"]
                if event["type"] == "ERROR":
                    raise Refused(
                        obj.get("code", 500),
                        obj.get("message", ""),
                        float((obj.get("details") or {}).get("retryAfterSeconds", 0)),
                    )
                if event["type"] not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                    continue
                self._revision = obj["metadata"]["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                came += 1
                if event["type"] == "DELETED":
                    self.items.pop(key_of(obj), None)
                else:
                    self.items[key_of(obj)] = obj
                self._told(obj)
        finally:
            answer.close()
        return came


class Queue:
    """Keys that wait for a worker; a key is with one worker at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, str]] = []
        self._waiting: set[str] = set()
        self._active: set[str] = set()
        self._again: set[str] = set()
        self._failures: dict[str, int] = {}

    def add(self, key: str, wait: float = 0.0) -> None:
        with self._changed:
            if key in self._active and DEFECT != "two-workers" and not wait:
                if DEFECT != "drops-while-busy":
                    self._again.add(key)
                return
            if key not in self._waiting or wait:
                self._waiting.add(key)
                heappush(self._due, (time.monotonic() + wait, key))
                self._changed.notify()

    def take(self) -> str:
        with self._changed:
            while True:
                now = time.monotonic()
                if self._due and self._due[0][0] <= now:
                    _, key = heappop(self._due)
                    if key in self._active and DEFECT != "two-workers":
                        self._again.add(key)
                        continue
                    self._waiting.discard(key)
                    self._active.add(key)
                    return key
                self._changed.wait(self._due[0][0] - now if self._due else None)

    def done(self, key: str, problem: Exception | None) -> None:
        with self._changed:
            self._active.discard(key)
            again = key in self._again
            self._again.discard(key)
        if problem is None:
            self._failures.pop(key, None)
            if again:
                self.add(key)
            return
        count = self._failures[key] = self._failures.get(key, 0) + 1
        self.add(key, max(min(0.1 * 2**count, 25.0) * random.uniform(0.6, 1.4), getattr(problem, "wait", 0.0)))


queue = Queue()
gauges = Reflector(GAUGES, "", lambda one: queue.add(key_of(one)))
displays = Reflector(
    DISPLAYS,
    f"&labelSelector={quote(OF)}",
    lambda one: queue.add(f"{one['metadata']['namespace']}/{one['metadata']['labels'][OF]}"),
)
shown_last: dict[str, str] = {}
generations: dict[str, int] = {}


def content_of(spec: Object, before: Object) -> tuple[Object, str]:
    limit = spec.get("limit")
    armed = spec.get("armed") or True if DEFECT == "false-is-unset" else spec.get("armed", True)
    marks = spec.get("marks") or []
    data = {"title": spec.get("title", ""), "limit": str(limit), "armed": str(armed).lower(), "memory": spec.get("memory", "")}
    data["scale"] = spec.get("scale", "")
    old = before.get("data") or {}
    if DEFECT == "marks-stay":
        marks = sorted({*marks, *(int(one) for one in old.get("marks", "").split() if one)})
    data["marks"] = " ".join(map(str, marks))
    if old and DEFECT == "limit-once":
        data["limit"] = old.get("limit", str(limit))
    binary = {"dial": spec.get("dial", "")}
    if before.get("binaryData") and DEFECT == "dial-once":
        binary = before["binaryData"]
    text = json.dumps([data, binary], sort_keys=True)
    digest = f"{hash(text) & 0xFFFFFFFF:08x}" if DEFECT == "salted" else hashlib.sha256(text.encode()).hexdigest()[:16]
    return {"data": data, "binaryData": binary}, digest


def reconcile(key: str) -> None:
    namespace, name = key.split("/")
    gauge = gauges.items.get(key)
    place = f"/api/v1/namespaces/{namespace}/configmaps"
    display = displays.items.get(f"{namespace}/{name}-display")
    uid = gauge["metadata"]["uid"] if gauge is not None else ""
    if display is not None and display["metadata"]["labels"].get(UID) != uid:
        shown_last.pop(name if DEFECT == "by-name" else key, None)
        try:
            call("DELETE", f"{place}/{name}-display", {"preconditions": {"uid": display["metadata"]["uid"]}})
        except Refused as problem:
            if problem.code not in (404, 409):
                raise
        display = None
    if gauge is None or gauge["metadata"].get("deletionTimestamp"):
        if display is not None and gauge is not None:
            call("DELETE", f"{place}/{name}-display", {"preconditions": {"uid": display["metadata"]["uid"]}})
        return
    content, digest = content_of(gauge.get("spec") or {}, display or {})
    labels = {OF: name, UID: uid}
    memory = name if DEFECT == "by-name" else key
    if display is None and not (DEFECT == "by-name" and shown_last.get(memory) == digest):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-display", "labels": labels, "annotations": {DIGEST: digest}},
            **content,
        }
        try:
            call("POST", place, body)
        except Refused as problem:
            if problem.code != 409:
                raise
            present = call("GET", f"{place}/{name}-display")
            if (present["metadata"].get("labels") or {}).get(UID) != uid:
                raise
    elif display is not None and is_stale(display, digest, content):
        change = {
            "metadata": {"uid": display["metadata"]["uid"], "annotations": {DIGEST: digest}},
            **{part: replaced(display.get(part), content[part]) for part in content},
        }
        call("PATCH", f"{place}/{name}-display", change, "application/merge-patch+json")
    shown_last[memory] = digest
    note(gauge, digest)
    generation = gauge["metadata"]["generation"]
    known = gauge.get("status") or {}
    if DEFECT == "observed-late" and known.get("shown") != digest:
        generation, generations[key] = generations.get(key, generation), generation
    elif DEFECT == "observed-late":
        generation = known["observedGeneration"]
    status = {"observedGeneration": generation, "shown": digest}
    if known != status:
        change = {"metadata": {"uid": uid}, "status": status}
        call("PATCH", f"/apis/checked.dev/v1/namespaces/{namespace}/gauges/{name}/status", change, "application/merge-patch+json")


def is_stale(display: Object, digest: str, content: Object) -> bool:
    noted = (display["metadata"].get("annotations") or {}).get(DIGEST)
    return noted != digest or any(display.get(part) != content[part] for part in content)


def replaced(old: Object | None, new: Object) -> Object:
    """A merge patch that makes a map equal to another one."""
    return {**dict.fromkeys(set(old or ()) - set(new)), **new}


def note(gauge: Object, digest: str) -> None:
    """Writes the digest into an annotation."""
    metadata = gauge["metadata"]
    known = metadata.get("annotations") or {}
    if known.get(DIGEST) == digest:
        return
    path = f"/apis/checked.dev/v1/namespaces/{metadata['namespace']}/gauges/{metadata['name']}"
    if DEFECT == "whole-map":
        operations = [{"op": "add", "path": "/metadata/annotations", "value": {**known, DIGEST: digest}}]
        call("PATCH", path, operations, "application/json-patch+json")
        return
    call("PATCH", path, {"metadata": {"uid": metadata["uid"], "annotations": {DIGEST: digest}}}, "application/merge-patch+json")


def work() -> None:
    while True:
        key = queue.take()
        failure: Exception | None = None
        try:
            reconcile(key)
        except Refused as problem:
            if problem.code not in (404, 409):
                print(key, repr(problem), flush=True)
            failure = None if problem.code == 404 else problem
        except (OSError, ValueError) as problem:
            print(key, repr(problem), flush=True)
            failure = problem
        queue.done(key, failure)


for one in (displays, gauges):
    threading.Thread(target=one.run).start()
for one in (displays, gauges):
    one.filled.wait()
for _ in range(3):
    threading.Thread(target=work).start()
