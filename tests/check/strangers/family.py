"""A correct operator of another make: asyncio and HTTP by hand, children by apply, status by PUT, no finalizer.

    KUBECONFIG=… python tests/check/strangers/family.py

Each Widget gets a ConfigMap and a ServiceAccount. The ConfigMap has the message of the Widget and the size of the Secret beside it,
which has the name of the Widget. Watches last 20 to 30 s, pauses are random up to three times the last one, and work that failed is
tried again while the client goes on with other objects.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import ssl
import time
from base64 import b64decode
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

Object = dict[str, Any]

CORE, WIDGETS = "/api/v1", "/apis/checked.dev/v1"
MANAGER = "family"
#: What goes wrong with a request that may be sent again.
TROUBLE = (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError, ValueError, IndexError)


class Refused(Exception):
    """The server has answered with a Status of failure."""

    def __init__(self, code: int, retry_after: float = 0.0) -> None:
        super().__init__(str(code))
        self.code, self.retry_after = code, retry_after


class Expired(Exception):
    """The revision is too old."""


class Pause:
    """Random pauses, each up to three times as long as the last one."""

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest = first, longest
        self._last = first

    def reset(self) -> None:
        self._last = self._first

    def draw(self) -> float:
        self._last = min(self._longest, random.uniform(self._first, self._last * 3))
        return self._last


class Response:
    """The head of an answer, and its body in pieces as they arrive."""

    def __init__(self, status: int, headers: dict[str, str], reader: asyncio.StreamReader) -> None:
        self.status, self.headers, self._reader = status, headers, reader

    async def pieces(self, timeout: float) -> AsyncIterator[bytes]:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            while size := int(await asyncio.wait_for(self._reader.readline(), timeout), 16):
                yield (await asyncio.wait_for(self._reader.readexactly(size + 2), timeout))[:-2]
        elif "content-length" in self.headers:
            yield await asyncio.wait_for(self._reader.readexactly(int(self.headers["content-length"])), timeout)
        else:
            while piece := await asyncio.wait_for(self._reader.read(65536), timeout):
                yield piece

    async def whole(self) -> bytes:
        return b"".join([piece async for piece in self.pieces(10.0)])


class Server:
    """The API server of the kubeconfig; each request has a connection of its own."""

    def __init__(self) -> None:
        config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
        cluster, self._user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url = urlsplit(cluster["server"])
        self._tls: ssl.SSLContext | None = None
        if self._url.scheme == "https":
            authority = cluster.get("certificate-authority-data")
            text = b64decode(authority).decode() if authority else Path(cluster["certificate-authority"]).read_text()
            self._tls = ssl.create_default_context(cadata=text)
        self._token, self._read_at = str(self._user.get("token") or ""), -1000.0

    @asynccontextmanager
    async def _open(self, method: str, path: str, body: bytes, kind: str) -> AsyncIterator[Response]:
        """Yields the answer to a request. Raises Refused and Expired."""
        if "tokenFile" in self._user and time.monotonic() - self._read_at > 20.0:
            self._token, self._read_at = Path(self._user["tokenFile"]).read_text().strip(), time.monotonic()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._url.netloc}", "User-Agent: family/2.1", "Connection: close"]
        lines += [f"Authorization: Bearer {self._token}"] if self._token else []
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"] if body else []
        opening = asyncio.open_connection(self._url.hostname, self._url.port, ssl=self._tls, limit=1 << 25)
        reader, writer = await asyncio.wait_for(opening, 10.0)
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10.0)).decode().split("\r\n")
            pairs = (line.partition(":") for line in head[1:] if line)
            response = Response(int(head[0].split()[1]), {name.lower(): value.strip() for name, _, value in pairs}, reader)
            if response.status == 401:
                self._read_at = -1000.0
            if response.status == 410:
                raise Expired
            if response.status >= 400:
                text = response.headers.get("retry-after", "0")
                raise Refused(response.status, float(text) if text.isdigit() else 0.0)
            yield response
        finally:
            writer.close()

    async def send(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object:
        async with self._open(method, path, b"" if body is None else json.dumps(body).encode(), kind) as response:
            return dict(json.loads(await response.whole()))

    async def follow(self, path: str) -> AsyncIterator[Object]:
        """Yields the events of a watch."""
        async with self._open("GET", path, b"", "") as response:
            rest = b""
            async for piece in response.pieces(40.0):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)


class Informer:
    """The objects of a collection, by namespace/name."""

    def __init__(self, server: Server, path: str, changed: Callable[[str], None]) -> None:
        self._server, self._path, self._changed = server, path, changed
        self.objects: dict[str, Object] = {}
        self.ready = asyncio.Event()

    async def run(self) -> None:
        pause, revision = Pause(0.7, 20.0), ""
        while True:
            begun, least = time.monotonic(), 0.0
            try:
                if not revision:
                    revision = await self._list()
                    self.ready.set()
                count = 0
                async for event in self._server.follow(self._query(revision)):
                    count += 1
                    revision = self._handle(event) or revision
                if count:
                    pause.reset()
                if count or time.monotonic() - begun > 2.0:
                    continue
                revision = ""  # an end at once: the revision may be one that the server does not have any more
            except Expired:
                revision = ""
            except Refused as problem:
                least = problem.retry_after
                if problem.code == 504:
                    revision = ""
            except TROUBLE:
                pass
            if time.monotonic() - begun > 10.0:
                pause.reset()
            await asyncio.sleep(least + pause.draw())

    def _query(self, revision: str) -> str:
        seconds = random.randint(20, 30)
        return f"{self._path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={revision}"

    async def _list(self) -> str:
        found: dict[str, Object] = {}
        token = ""
        while True:
            page = await self._server.send("GET", f"{self._path}?limit=200" + (f"&continue={token}" if token else ""))
            found |= {key_of(one): one for one in page["items"] or []}
            token = page["metadata"].get("continue") or ""
            if not token:
                break
        keys = [*self.objects, *found]
        self.objects = found
        for key in dict.fromkeys(keys):
            self._changed(key)
        return str(page["metadata"]["resourceVersion"])

    def _handle(self, event: Object) -> str:
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            if obj.get("code") == 410:
                raise Expired
            raise Refused(int(obj.get("code") or 500))
        if kind in ("ADDED", "MODIFIED"):
            self.objects[key_of(obj)] = obj
        elif kind == "DELETED":
            self.objects.pop(key_of(obj), None)
        elif kind != "BOOKMARK":
            return ""
        if kind != "BOOKMARK":
            self._changed(key_of(obj))
        return str(obj["metadata"]["resourceVersion"])


def key_of(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


class Operator:
    """Keeps the family of each Widget."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._widgets = Informer(server, f"{WIDGETS}/widgets", self._wake)
        self._configs = Informer(server, f"{CORE}/configmaps", self._wake_owner)
        self._secrets = Informer(server, f"{CORE}/secrets", self._wake)
        self._accounts = Informer(server, f"{CORE}/serviceaccounts", self._wake_owner)
        self._dirty: set[str] = set()
        self._pauses: dict[str, Pause] = {}
        self._busy: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            informers = (self._configs, self._secrets, self._accounts, self._widgets)
            for one in informers:
                group.create_task(one.run())
            for one in informers:
                await one.ready.wait()
            while True:
                for key in list(self._dirty - self._busy):
                    self._dirty.discard(key)
                    self._busy.add(key)
                    task = asyncio.create_task(self._work(key))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                await asyncio.sleep(0.02)

    def _wake(self, key: str) -> None:
        self._dirty.add(key)

    def _wake_owner(self, key: str) -> None:
        self._dirty.add(key.removesuffix("-family"))

    async def _work(self, key: str) -> None:
        try:
            await self._reconcile(key)
            self._pauses.pop(key, None)
        except (Refused, Expired, *TROUBLE) as problem:
            pause = self._pauses.setdefault(key, Pause(0.1, 15.0)).draw()
            await asyncio.sleep(pause + getattr(problem, "retry_after", 0.0))
            self._dirty.add(key)
        finally:
            self._busy.discard(key)

    async def _reconcile(self, key: str) -> None:
        widget = self._widgets.objects.get(key)
        if widget is None or widget["metadata"].get("deletionTimestamp"):
            return
        namespace, _, name = key.partition("/")
        secret = self._secrets.objects.get(key) or {}
        message = str((widget.get("spec") or {}).get("message"))
        size = str(sum(len(value) for value in (secret.get("data") or {}).values()))
        reference = {"apiVersion": "checked.dev/v1", "kind": "Widget", "name": name, "uid": widget["metadata"]["uid"]}
        metadata = {"name": f"{name}-family", "namespace": namespace, "ownerReferences": [{**reference, "controller": True}]}
        data = {"message": message, "secret": size}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        for informer, plural, wanted in ((self._configs, "configmaps", config), (self._accounts, "serviceaccounts", account)):
            there = informer.objects.get(f"{key}-family")
            if there is None or not self._is_right(there, wanted):
                if there is not None and not self._is_mine(there, widget):
                    raise Refused(409)
                path = f"{CORE}/namespaces/{namespace}/{plural}/{name}-family?fieldManager={MANAGER}&force=true"
                await self._server.send("PATCH", path, wanted, "application/apply-patch+yaml")
        if (widget.get("status") or {}).get("message") != message:
            await self._set_status(namespace, name, widget["metadata"]["uid"], message)

    @staticmethod
    def _is_right(there: Object, wanted: Object) -> bool:
        uids = [one["uid"] for one in there["metadata"].get("ownerReferences") or ()]
        return wanted["metadata"]["ownerReferences"][0]["uid"] in uids and there.get("data") == wanted.get("data")

    @staticmethod
    def _is_mine(there: Object, widget: Object) -> bool:
        owners = [one["uid"] for one in there["metadata"].get("ownerReferences") or () if one.get("controller")]
        return not owners or widget["metadata"]["uid"] in owners

    async def _set_status(self, namespace: str, name: str, uid: str, message: str) -> None:
        path = f"{WIDGETS}/namespaces/{namespace}/widgets/{name}"
        with suppress(KeyError):
            try:
                now = await self._server.send("GET", path)
                if now["metadata"]["uid"] == uid and (now.get("status") or {}).get("message") != message:
                    now["status"] = {**(now.get("status") or {}), "message": message}
                    await self._server.send("PUT", f"{path}/status", now)
            except Refused as problem:
                if problem.code != 404:
                    raise


if __name__ == "__main__":
    asyncio.run(Operator(Server()).run())
