"""`agnhost guestbook`: a primary that stores values, replicas that it updates, and a front end that asks both."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final
from urllib.parse import urlencode

from fakekube.nodes.images.agnhost.flags import flags, log
from fakekube.nodes.images.programs import wait
from fakekube.nodes.images.servers import Answer, Request, as_json, fetch, listen_http
from fakekube.nodes.runtime.program import Command, Program
from fakekube.nodes.runtime.scheduling import sleep

#: Seconds for which a replica tries to register.
_PATIENCE: Final = 15


class _Guestbook:
    def __init__(self, program: Program, backend_port: int) -> None:
        self._program, self._backend_port = program, backend_port
        self._values: dict[str, Any] = {}
        self._replicas: list[str] = []

    def handle(self, request: Request) -> Answer:
        """Responds to a request."""
        found: Mapping[str, Callable[[Request], Answer]] = {
            "/register": self._register,
            "/get": self._get,
            "/set": self._set,
            "/guestbook": self._forward,
        }
        handler = found.get(request.path)
        return Answer("404 page not found\n", 404) if handler is None else handler(request)

    def register_at(self, host: str) -> None:
        """Registers at the primary, and takes its values over. Raises OSError."""
        own = self._program.host.network.own_address()
        _, body = fetch(self._program, f"http://{host}:{self._backend_port}/register?host={own}")
        self._values = json.loads(body)["data"]

    def _register(self, request: Request) -> Answer:
        self._replicas.append(request.query.get("host", ""))
        log(self._program, f"Node '{self._replicas[-1]}' registered.")
        return Answer(as_json({"data": self._values}))

    def _get(self, request: Request) -> Answer:
        key = request.query.get("key", "")
        return Answer(as_json({"data": self._values.get(key, "") if key else self._values}))

    def _set(self, request: Request) -> Answer:
        key, value = request.query.get("key", ""), request.query.get("value", "")
        if not key:
            return Answer("cannot set with empty key.\n", 400)
        self._values[key] = value
        for replica in self._replicas:
            try:
                fetch(self._program, f"http://{replica}:{self._backend_port}/set?{urlencode({'key': key, 'value': value})}")
            except OSError as error:
                return Answer(f"encountered error while propagating to replica '{replica}': {error.strerror}\n", 417)
        return Answer(as_json({"message": "Updated"}))

    def _forward(self, request: Request) -> Answer:
        command = request.query.get("cmd", "").lower()
        if command not in ("get", "set"):
            return Answer(f"unsupported cmd: '{command}'\n", 400)
        if command == "set" and not request.query.get("key"):
            return Answer("cannot set with empty key.\n", 400)
        host = "agnhost-replica" if command == "get" else "agnhost-primary"
        query = urlencode({name: request.query.get(name, "") for name in ("key", "value")})
        try:
            return Answer(fetch(self._program, f"http://{host}:{self._backend_port}/{command}?{query}")[1])
        except OSError as error:
            return Answer(f"encountered error: {error.strerror}\n", 417)


async def _guestbook(program: Program) -> int:
    given, _ = flags(program, {"http-port": "80", "backend-port": "6379", "replicaof": ""})
    server = _Guestbook(program, int(given["backend-port"]))
    with ExitStack() as stack:
        stack.enter_context(listen_http(program, int(given["http-port"]), server.handle))
        if given["replicaof"]:
            for _ in range(_PATIENCE):
                try:
                    server.register_at(given["replicaof"])
                except (OSError, TimeoutError):
                    await sleep(1.0)
                else:
                    log(program, f"Registered to node: {given['replicaof']}")
                    break
            else:
                return await program.complain("Timed out while registering to primary.")
        return await wait(program)


COMMANDS: Final[dict[str, Command]] = {"guestbook": _guestbook}
