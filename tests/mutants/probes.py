"""What can notice a mutant: each recorded scenario, each story of a kind, each file of tests; and which lines each executes.

A probe is played in a fork of a process that has imported everything and has done nothing: so it costs no imports, and no cache
hides from it what an error has changed.
"""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import pkgutil
import resource
import signal
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from tests.mutants.changes import PROJECT, ROOMS

#: Tests that play what is a probe itself, or read the sources.
REPEATED = ("test_kinds.py", "test_stories.py", "test_growth.py", "test_hostile.py")
#: Folders whose tests are probes.
TESTED = (
    *(f"unit/{room}" for room in ROOMS),
    "unit/apiserver/http",
    "unit/apiserver/controlplane",
    "unit/strategies",
    "behaviour",
)
_FOLDERS = tuple(str(PROJECT / "fakekube" / room) + os.sep for room in ROOMS)

Lines = dict[str, frozenset[int]]
"""Module → lines of it that were executed; 0 if an object of a class of it was used."""


@dataclass(frozen=True, slots=True, order=True)
class Probe:
    """One thing that can be played."""

    kind: str
    name: str
    part: str = ""

    def play(self) -> str:
        """Plays it in this process; returns what went wrong, or ""."""
        return _PLAYERS[self.kind](self.name, self.part)

    def __str__(self) -> str:
        return f"{self.name} {self.part}".strip()


@dataclass(slots=True)
class Known:
    """What is known of a probe from its play without any error."""

    seconds: float = 0.0
    """Of the processor, while the lines were noted."""
    fails: str = ""
    lines: Lines = field(default_factory=dict)


#: Recordings of random requests, of CBOR, of whole clusters and of compaction show little of the rooms for what they cost.
LEFT_OUT = ("random-open", "cbor/", "controlled/", "compacting/")


def probes() -> Iterator[Probe]:
    """Yields all probes."""
    from tests.differential.recordings import RECORDINGS

    for name, recording in RECORDINGS.items():
        if "certificates" not in recording.features and not name.startswith(LEFT_OUT):
            known = recording.scenarios()
            yield from (Probe("recording", name, scenario) for scenario in _recorded(name) if scenario in known)
    folders = [PROJECT / "fixtures" / "kinds", *sorted((PROJECT / "tests" / "unit").rglob("stories"))]
    for folder in folders:
        yield from (Probe("story", str(path.relative_to(PROJECT))) for path in sorted(folder.glob("*.jsonl")))
    for place in TESTED:
        files = sorted((PROJECT / "tests" / place).rglob("test_*.py"))
        yield from (Probe("tests", str(path.relative_to(PROJECT))) for path in files if path.name not in REPEATED)


@functools.cache
def _recorded(name: str) -> dict[str, Any]:
    from tests.differential.recordings import RECORDINGS

    return RECORDINGS[name].read()


def _play_recording(name: str, scenario: str) -> str:
    from tests.differential.recordings import RECORDINGS, play, score

    recording, recorded = RECORDINGS[name], _recorded(name)[scenario]
    with recording.cluster() as transport:
        answered = play(recording.scenarios()[scenario], transport, recording.features, f"{zlib.crc32(scenario.encode()):08x}")
    found = score({scenario: recorded}, {scenario: answered})
    return "" if not found.differences else "; ".join(str(difference) for difference in found.differences)


def _play_story(name: str, _: str) -> str:
    from tests.unit import stories

    return "; ".join(stories.differences_of_fresh_cluster(PROJECT / name))


def _play_tests(name: str, _: str) -> str:
    import pytest

    imported = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"  # plugins; the project's tests fail at warnings
    code = pytest.main(
        ["-q", "-x", "--no-header", "-W", imported, "-p", "no:cacheprovider", "-p", "no:xdist", str(PROJECT / name)]
    )
    return "" if code == 0 else f"exit code {int(code)}"


def import_everything(*_: str) -> str:
    """Imports all modules that a probe may use, so that no fork has to. Returns ""."""
    import fakekube

    for found in pkgutil.walk_packages(fakekube.__path__, "fakekube."):
        if (
            not found.name.startswith(("fakekube.page", "fakekube.pytest_plugin", "fakekube.checker", "fakekube.cli"))
            and "__main__" not in found.name
        ):
            importlib.import_module(found.name)
    for name in (
        "tests.differential.recordings",
        "tests.differential.random_stories",
        "tests.unit.stories",
        "pytest",
        "_pytest.config",
    ):
        importlib.import_module(name)
    return ""


_PLAYERS: dict[str, Callable[[str, str], str]] = {
    "recording": _play_recording, "story": _play_story, "tests": _play_tests, "import": import_everything,
}  # fmt: skip


def in_fork(work: Callable[[], Any], seconds: float) -> Any:
    """What `work` returns in a fork of this process; None if it needs more seconds of the processor, or ends in another way."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:  # the fork removes nothing of its own, however it ends
        child = os.fork()
        if not child:
            os.close(reading)
            tempfile.tempdir = folder
            _run_in_child(work, writing, seconds)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            answer = file.read()
        os.waitpid(child, 0)
    return pickle.loads(answer) if answer else None


def _run_in_child(work: Callable[[], Any], writing: int, seconds: float) -> None:
    """Does the work, writes what it returns, and ends the process; clients and sockets are not waited for."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime + seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    signal.alarm(int(20 * seconds) + 120)  # of real time, for what waits
    answer = pickle.dumps(work())
    with os.fdopen(writing, "wb") as file:
        file.write(answer)
    os._exit(0)


def examine(probe: Probe) -> Known:
    """Plays a probe in this process, and notes which lines of the rooms it executes."""
    lines: set[tuple[str, int]] = set()
    classes: dict[type, tuple[str, ...]] = {}

    def note_line(frame: FrameType, event: str, argument: object) -> Any:
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return note_line

    def note_call(frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_FOLDERS):
            return None
        if code.co_varnames[:1] == ("self",) and (owner := type(frame.f_locals.get("self"))) not in classes:
            classes[owner] = tuple(_file_of(one) for one in owner.__mro__)
            lines.update((file, 0) for file in classes[owner] if file)
        lines.add((code.co_filename, frame.f_lineno))
        return note_line

    started = time.process_time()
    threading.settrace(note_call)
    sys.settrace(note_call)
    try:
        fails = probe.play()
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
    return Known(time.process_time() - started, fails, _by_file(lines))


def _file_of(one: type) -> str:
    file = getattr(sys.modules.get(one.__module__), "__file__", None) or ""
    return file if file.startswith(_FOLDERS) else ""


def _by_file(lines: set[tuple[str, int]]) -> Lines:
    found: dict[str, set[int]] = {}
    for file, line in lines:
        found.setdefault(str(Path(file).relative_to(PROJECT)), set()).add(line)
    return {file: frozenset(numbers) for file, numbers in found.items()}
