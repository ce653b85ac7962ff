"""The part of `Cluster` that shows what happened: rows for the page, marks, findings, comparisons, trace files.

Invariant: what shows nothing costs nothing: rows and marks are made when they are first used.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fakekube.base.clock import CONTROLLERS
from fakekube.base.private_files import write_private
from fakekube.cluster.served import ServedCluster

if TYPE_CHECKING:
    from fakekube.controllers.client import Client
    from fakekube.powers.comparison import Comparison
    from fakekube.powers.findings import Evidence, Finding
    from fakekube.powers.journal import Mark
    from fakekube.powers.live import Live, LiveSource
    from fakekube.powers.rows import Rows
    from fakekube.powers.trace import TraceParts


#: The number of next timers that are shown.
_MAX_DUE: Final = 100


class ObservedCluster(ServedCluster):
    """A cluster that shows what happened in it."""

    _profile: str
    has_page: bool
    test: dict[str, Any] | None = None
    """The test that uses the cluster: `{"id", "outcome", "message"}`; set by the pytest plugin."""
    describe_scenario: Callable[[], dict[str, Any]] | None = None
    """Returns the scenario that is played in the cluster, with its tasks and how they stand; set by `cluster.scenarios`."""

    @cached_property
    def instance(self) -> str:
        """Identifies this cluster among those at the same address."""
        return secrets.token_hex(8)

    @cached_property
    def rows(self) -> Rows:
        """The requests, changes and objects as rows, as the page gets them."""
        from fakekube.powers.rows import Rows

        return Rows(self._machinery.backend, self._observe())

    def mark(self, text: str) -> Mark:
        """Adds a mark with a text to the timeline of the page and of trace files: `mark("scaled to 3")`."""
        return self._observe().marks.add("mark", text)

    @cached_property
    def live_source(self) -> LiveSource:
        """Wakes those who read `live`."""
        from fakekube.powers.live import LiveSource, Shown

        me, observer = weakref.proxy(self), self._observe()
        clock, findings = partial(ObservedCluster.describe_clock, me), partial(ObservedCluster.count_findings, me)
        faults, scenario = partial(ObservedCluster.describe_faults, me), partial(ObservedCluster.scenario, me)
        return LiveSource(observer, self.rows, Shown(clock, faults, findings, scenario))

    def live(self, *, requests: int = -1, changes: int = 0, marks: int = 0) -> Live:
        """Returns what happens from now on as a stream of JSON lines, for the page.

        Args:
            requests: the number of the newest request that the reader has.
            changes: the revision of the newest change that it has.
            marks: the number of the newest mark that it has.
        """
        from fakekube.powers.live import Live

        return Live(self.live_source, self.describe(), requests=requests, changes=changes, marks=marks)

    @cached_property
    def _evidence(self) -> Evidence:
        from fakekube.powers.findings import Evidence

        return Evidence(self._observe(), self.rows)

    def findings(self) -> list[Finding]:
        """Returns patterns in the requests and changes that are often mistakes: fights, hot loops, blind retries …

        Each has a kind, a sentence, and the numbers of the requests and the revisions that show it. They are hints; verdicts are
        those of `fakekube.check`.
        """
        return self._evidence.findings()

    def count_findings(self) -> int:
        """Returns the number of findings."""
        return len(self.findings())

    def compare(self, first: int, last: int, *, namespace: str | None = None, resource: str = "", name: str = "") -> Comparison:
        """Returns how the objects of two revisions differ: added, removed and changed ones, with paths, values and actors.

        Args:
            first, last: the revisions.
            namespace, resource, name: only these objects; by default all.

        Raises Compacted if the journal does not reach back to a revision, and FutureRevision.
        """
        from fakekube.powers.comparison import compare

        return compare(self.rows, first, last, namespace=namespace, resource=resource, name=name)

    def trace(self, path: Path | str, *, redact: bool = True, limit: str | int = "20MB") -> Path:
        """Writes a trace file: what happened so far, as one HTML file that a browser opens without a server.

        It has the requests with their bodies, the changes, the marks, and the state with its history, which `load` and
        `fakekube serve --load` restore. May be called at any time, also after `stop`.

        Args:
            path: of the file; missing folders are created.
            redact: remove the values of Secrets, tokens and headers with credentials. Without it the file keeps all but the
                headers, and only its owner may read it.
            limit: the maximum size; bodies are dropped first, then requests, then versions of objects.

        Returns the path. Raises OSError, and ValueError for an invalid size.
        """
        from fakekube.powers.trace import read_size

        found = Path(path)
        html = self.trace_html(redact=redact, limit=read_size(limit)).encode()
        found.parent.mkdir(parents=True, exist_ok=True)
        if redact:
            found.write_bytes(html)
        else:
            write_private(found, html)
        return found

    def trace_html(self, *, redact: bool = True, limit: int = 20_000_000) -> str:
        """Returns the content of a trace file, see `trace`."""
        from fakekube.page import trace_document

        empty = len(trace_document("trace", {}, {}))
        parts = self.trace_parts(redact=redact, limit=max(limit - empty, 0))
        return trace_document("trace", {"trace": parts.trace}, parts.pack(), title=parts.trace["info"]["name"])

    def trace_parts(self, *, redact: bool = True, limit: int = 20_000_000) -> TraceParts:
        """Returns the data of a trace file, see `trace`."""
        from fakekube.powers.trace import TraceMaker

        maker = TraceMaker(self._machinery.backend, self._observe(), self.rows)
        findings = [one.data() for one in self.findings()]
        return maker.make(self.describe(), findings, self.test, redact=redact, limit=limit)

    def client_of(self, agent: str) -> Client:
        """Returns a client in the same process with another User-Agent; its user is an administrator."""
        return self._components.client(agent)

    def mark_rows(self, since: int = 0) -> dict[str, Any]:
        """Returns the marks after a number as columns, for the page."""
        return self._observe().marks.rows(since, self._observe().began)

    def describe(self) -> dict[str, Any]:
        """Returns what the page shows of the cluster as a whole: version, address, revision, clock, resources."""
        from fakekube import __version__
        from fakekube.powers.columns import revision_value
        from fakekube.powers.journal import KEPT_EVENTS, KEPT_ROWS

        store, observer = self._machinery.backend.store, self._observe()
        serving = self._serving.server is not None
        changes = self.rows.journal()
        kept = observer.recorder.list_exchanges()
        return {
            "name": (self.test or {}).get("id") or "fakekube",
            "test": self.test,
            "scenario": self.scenario(),
            "version": __version__,
            "kubernetes": self._settings.version,
            "profile": self._profile,
            "url": self.url if serving else "",
            "kubeconfig": str(self.kubeconfig) if serving else "",
            "started": self.instance,
            "revision": revision_value(store.revision),
            "oldest": revision_value(changes[0].revision if changes else store.revision + 1),
            "initial": revision_value(observer.journal.initial),
            "requests": {"newest": observer.recorder.newest, "oldest": kept[0].number if kept else 0},
            "clock": self.describe_clock(),
            "readOnly": False,
            "limits": {"requests": self._keep_requests, "changes": KEPT_ROWS, "objects": KEPT_EVENTS},
            "resources": self.rows.resources(),
        }

    def scenario(self) -> dict[str, Any] | None:
        """Returns the scenario that is played in the cluster: its texts, its tasks, and how they stand. None without one."""
        return None if self.describe_scenario is None else self.describe_scenario()

    def describe_clock(self) -> dict[str, Any]:
        """Returns the clock as the control API shows it."""
        from fakekube.base.golang.timestamps import print_time

        clock = self.clock
        now = clock.now()
        return {
            "now": print_time(now),
            "time": now.timestamp(),
            "held": clock.held,
            "scale": clock.factor,
            "due": [{"in": round(left, 3), "what": what} for left, what in self._due()],
        }

    def _due(self) -> list[tuple[float, str]]:
        """Returns what is due next by the clock: the seconds left, and what it is."""
        timers = [(timer.due, timer.what or "a timer") for timer in self.clock.pending() if timer.what != CONTROLLERS]
        waiting = [*timers, *self._components.manager.waiting()]
        now = self.clock.monotonic()
        return [(max(due - now, 0.0), what) for due, what in sorted(waiting)[:_MAX_DUE]]

    def describe_faults(self, *, near: bool = False) -> list[dict[str, Any]]:
        """Returns the armed faults as the control API shows them.

        Args:
            near: also describe the nearest requests of a fault that never happened.
        """
        found = []
        for fault in self.faults:
            often = fault.frequency
            left = {
                "times": None if often.times is None else max(often.times - fault.hits, 0),
                "seconds": None if fault.until is None else round(max(fault.until - self.clock.monotonic(), 0.0), 3),
            }
            shown = {**fault.describe(), "left": left}
            if near:
                shown["near"] = "" if fault.hits else self.requests.nearest(fault.criteria).lstrip("; ")
            found.append(shown)
        return found

    @property
    def profile(self) -> str:
        """The name of the profile."""
        return self._profile

    def count_objects(self) -> int:
        """Returns the number of stored objects."""
        store = self._machinery.backend.store
        return sum(store.bucket(name).count() for name in {one.bucket for one in self._machinery.backend.registry})

    @property
    def version(self) -> str:
        """The emulated minor version of Kubernetes."""
        return self._settings.version

    @cached_property
    def page_token(self) -> str:
        """The token with which the page opens where clients without credentials are no administrators; 128 random bits."""
        return secrets.token_urlsafe(16)

    @property
    def page_url(self) -> str:
        """The address of the page, with its token if one is needed. Raises RuntimeError before `start` and after `stop`."""
        return f"{self.url}/fakekube/{f'?token={self.page_token}' if self._needs_token() else ''}"

    def _needs_token(self) -> bool:
        from fakekube.apimachinery.errors import StatusError
        from fakekube.apiserver.endpoints.request import RequestInfo

        access, scheme = self._machinery.access, "https" if self._serving.tls else "http"
        try:
            user = access.authenticator.user_of({"REQUEST_METHOD": "GET", "PATH_INFO": "/fakekube/", "wsgi.url_scheme": scheme})
            access.require(RequestInfo("/fakekube/", "get"), user)
        except StatusError:
            return True
        return False

    def keep_changes(self) -> None:
        """Keeps changes from now on even after the history is compacted: 100,000 rows, the latest 10,000 with their objects.

        Without it the page and trace files show what the history of the API has, which is about five minutes of the clock.
        """
        self.rows.journal()

    def pack_past(self) -> None:
        """Packs what only shows the past, so that it takes a part of its memory until it is read: for a cluster that rests."""
        from fakekube.powers.history import pack_past

        pack_past(self._machinery.backend.store, self._observer)

    def mark_phase(self, text: str) -> None:
        """Adds a mark for a phase of a test: setup, call, teardown."""
        self._did("phase", text)

    @property
    def marks(self) -> list[Mark]:
        """The marks so far: those of `mark`, and what was done to the cluster outside of the Kubernetes API."""
        return self._observe().marks.since()

    def _did(self, kind: str, text: str) -> None:
        """Adds a mark of the cluster itself, if requests are recorded."""
        if self._observer is not None:
            self._observer.marks.add(kind, text)

    def _note_replacement(self, kind: str, text: str) -> None:
        """Notes that the state was replaced: pages read it again."""
        self._did(kind, text)
        if self._observer is not None:
            self._observer.journal.resume(self._machinery.backend.store, kind)
            if "live_source" in self.__dict__:
                self.live_source.replaced += 1
