"""The subcommand nettest of agnhost: pods of a Service that contact each other, and tell whether they could.

Specified by: test/images/agnhost/nettest.
"""

from __future__ import annotations

import json
import threading
from typing import Any, Final

from fakekube.nodes.images.programs import SERVICE_ACCOUNT_TOKEN, flags
from fakekube.nodes.images.servers import Answer, Exit, Request, as_json, fetch, listen_http, serve_until_end
from fakekube.nodes.runtime.program import Command, Program
from fakekube.nodes.runtime.scheduling import sleep

#: The least seconds between two rounds; more than fifty peers are contacted less often.
_PAUSE: Final = 5
#: The least seconds for which the endpoints of all peers are waited for.
_TIMEOUT: Final = 300
_ROUNDS: Final = 15
_KEPT_LINES: Final = 500


class _State:
    """What a pod has sent and received; requests and the program use it in different threads."""

    def __init__(self, program: Program, given: dict[str, str]) -> None:
        self._program = program
        self._peers, self._namespace, self._service = int(given["peers"]), given["namespace"], given["service"]
        self._sent, self._received = dict[str, int](), dict[str, int]()
        self._errors, self._lines = list[str](), list[str]()
        self._contacting = True
        self._lock = threading.Lock()
        self.end = Exit()

    def handle(self, request: Request) -> Answer:
        """Responds to a request."""
        if request.path == "/quit":
            self.end.set(0)
            return Answer()
        pages = {"/read": self._read, "/write": self._write, "/status": self._status}
        handler = pages.get(request.path)
        if handler is None:
            return Answer("404 page not found\n", 404)
        with self._lock:
            return handler(request)

    def _read(self, request: Request) -> Answer:
        state = {
            "Hostname": self._program.host.hostname,
            "Sent": self._sent or None,
            "Received": self._received or None,
            "Errors": self._errors or None,
            "Log": self._lines or None,
            "StillContactingPeers": self._contacting,
        }
        return Answer(json.dumps(state, indent="\t"))

    def _write(self, request: Request) -> Answer:
        try:
            source = json.loads(request.body)["Source"]
        except (ValueError, KeyError, TypeError) as error:
            source = ""
            self._errors.append(str(error))
        if source:
            self._received[source] = self._received.get(source, 0) + 1
        else:
            self._errors.append(f"{self._program.host.hostname}: Got request with no source")
        return Answer(as_json({"Hostname": self._program.host.hostname}) + "\n")

    def _status(self, request: Request) -> Answer:
        if len(self._sent) >= self._peers and len(self._received) >= self._peers:
            return Answer("pass")
        if self._contacting:
            return Answer("running")
        counts = f"{len(self._sent)} sent and {len(self._received)} received and {self._peers} peers"
        self._log_line(f"Declaring failure for {self._namespace}/{self._service} with {counts}")
        return Answer("fail")

    def _log_line(self, text: str) -> None:
        self._lines = [*self._lines, text][-_KEPT_LINES:]

    # --- The program --------------------------------------------------------------------------------------------------

    async def contact_others(self) -> int:
        """Waits for the endpoints of all peers, and contacts each of them in rounds (contactOthers). Returns 0."""
        pause, waited = max(_PAUSE, self._peers // 10), 0
        while waited < max(_TIMEOUT, self._peers):
            found = self._endpoints()
            if len(found) >= self._peers:
                break
            with self._lock:
                where = f"{self._namespace}/{self._service} has {len(found)} endpoints ({found})"
                self._log_line(f"{where}, which is less than {self._peers} as expected. Waiting for all endpoints to come up.")
            await sleep(pause)
            waited += pause
        for _ in range(_ROUNDS):
            for url in self._endpoints():
                self._contact(url)
            await sleep(pause)
        self._contacting = False
        return 0

    def _endpoints(self) -> list[str]:
        """Returns the addresses of the pods of the Service."""
        token = self._program.files.read(SERVICE_ACCOUNT_TOKEN).decode()
        path = f"/api/v1/namespaces/{self._namespace}/endpoints/{self._service}"
        code, body = self._program.host.call_api(path, token)
        endpoints: dict[str, Any] = json.loads(body)
        if code != 200:
            with self._lock:
                where = f"{self._namespace}/{self._service}"
                self._log_line(f"Unable to read the endpoints for {where}: {endpoints.get('message')}.")
            return []
        subsets = endpoints.get("subsets") or ()
        pairs = (
            (address["ip"], port["port"]) for one in subsets for address in one.get("addresses") or () for port in one["ports"]
        )
        return sorted({f"http://[{ip}]:{port}" if ":" in ip else f"http://{ip}:{port}" for ip, port in pairs})

    def _contact(self, url: str) -> None:
        body = as_json({"Source": self._program.host.hostname, "Dest": url}).encode()
        try:
            _, answer = fetch(self._program, f"{url}/write", body)
            name = json.loads(answer)["Hostname"]
        except (OSError, TimeoutError, ValueError, KeyError) as error:
            with self._lock:
                self._log_line(f'Warning: unable to contact the endpoint "{url}": {error}')
            return
        with self._lock:
            self._log_line(f"Attempting to contact {url}")
            self._sent[name] = self._sent.get(name, 0) + 1


async def _nettest(program: Program) -> int:
    defaults = {"port": "8080", "peers": "8", "service": "nettest", "namespace": "default", "delay-shutdown": "0"}
    given, _ = flags(program, defaults)
    state = _State(program, given)
    with listen_http(program, int(given["port"]), state.handle):
        program.task.scheduler.start(state.contact_others(), "nettest", program.host.next_pid(), program.task)
        return await serve_until_end(program, state.end, float(given["delay-shutdown"]))


COMMANDS: Final[dict[str, Command]] = {"nettest": _nettest}
