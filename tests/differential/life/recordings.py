"""The recordings in `fixtures/recorded/life`: what scenarios about living clusters leave, and how fakekube is compared with it.

The reference is kube-apiserver, kube-controller-manager and kube-scheduler with kwok as the kubelets (`stack.py`).
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import importlib
import json
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakekube import Cluster
from tests.differential.comparison import differences
from tests.differential.life.cluster import LivingCluster, LocalCluster
from tests.differential.life.normaliser import normalise
from tests.differential.life.world import World
from tests.differential.pacing import paced_by

FOLDER = Path(__file__).parents[3] / "fixtures" / "recorded" / "life"
#: The module of what differs from minor to minor; it is recorded of each, others of `REFERENCE` only.
MINORS, REFERENCE = "minors", "1.36"
RECORDED = ("1.33", "1.34", "1.35", "1.36", "1.37")
_MODULES = sorted(path.stem for path in (Path(__file__).parent / "lives").glob("*.py"))
#: A module of `lives/`, or `minors@1.37`.
LIVES = (*(name for name in _MODULES if name != MINORS), *(f"{MINORS}@{version}" for version in RECORDED))

#: The reference has no metrics-server.
WITHOUT_METRICS = "*,-metrics-server"

Play = dict[str, Any]
"""What one scenario took down."""
Plays = dict[str, Play]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A function that takes a World; `alone`: it brings its own nodes, and no other scenario runs meanwhile."""

    name: str
    play: Callable[[World], None]
    alone: bool
    since: str = ""
    """The first minor to which it is played; "" for all."""


_scenarios: dict[str, Scenario] = {}


def scenario(function: Callable[[World], None] | None = None, *, alone: bool = False, since: str = "") -> Any:
    """Mark a function as a scenario about a living cluster."""
    if function is None:
        return functools.partial(scenario, alone=alone, since=since)
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    _scenarios[name] = Scenario(name, function, alone, since)
    return function


def version_of(life: str) -> str:
    """The minor that is recorded."""
    return life.partition("@")[2] or REFERENCE


def scenarios_of(life: str, word: str = "") -> dict[str, Scenario]:
    """The scenarios of a module of `lives/` that have the word in their names. Raises ModuleNotFoundError."""
    module, version = life.partition("@")[0], version_of(life)
    importlib.import_module(f"tests.differential.life.lives.{module}")
    return {
        name: found
        for name, found in _scenarios.items()
        if name.partition(".")[0] == module and word in name and found.since <= version
    }


def path_of(life: str) -> Path:
    return FOLDER / f"{life}.json.gz"


def read(life: str, word: str = "") -> Plays:
    """What was recorded. Raises OSError."""
    with gzip.open(path_of(life), "rt") as file:
        return {name: play for name, play in json.load(file).items() if word in name}


def write(life: str, plays: Plays) -> None:
    """Replace what was recorded; the same plays give the same bytes."""
    with gzip.GzipFile(path_of(life), "wb", mtime=0) as file:
        file.write(json.dumps(plays, separators=(",", ":"), sort_keys=True).encode())


# ---------------------------------------------------------------- playing


def play(scenario: Scenario, cluster: LivingCluster, *, is_last: bool = False) -> Play:
    """What one scenario takes down of a cluster; the last one takes nothing away."""
    world = World(cluster)
    events: list[Any] = []
    with paced_by(world.transport.pace):
        try:
            cluster.settle(world.places, 5)  # its service account is there
            scenario.play(world)
        except Exception:  # a scenario that trips over an odd answer still shows what it saw
            world.trouble.append(traceback.format_exc(limit=-2).splitlines()[-1])
        with contextlib.suppress(Exception):
            events = world.events()
        known = world.known()
        if not is_last:
            with contextlib.suppress(Exception):
                world.leave()
            if world.nodes:
                cluster.settle(["nodes"], 10)
    world.close()
    return {
        "id": world.id, "dumps": world.dumps, "events": events, "known": known, "sent": "\n".join(world.sent),
        "trouble": world.trouble,
    }  # fmt: skip


def play_to(cluster: LivingCluster, scenarios: dict[str, Scenario], jobs: int = 6) -> Plays:
    """Play scenarios to one cluster: those that share a node side by side, unless they move its clock."""
    plays: Plays = {}
    cluster.no_nodes()
    cluster.shared_node()
    together = [scenario for scenario in scenarios.values() if not scenario.alone]
    with ThreadPoolExecutor(1 if cluster.moves_clock else jobs) as pool:
        for scenario, played in zip(together, pool.map(lambda one: play(one, cluster), together), strict=True):
            plays[scenario.name] = played
    cluster.no_nodes()
    for scenario in scenarios.values():
        if scenario.alone:
            plays[scenario.name] = play(scenario, cluster)
            cluster.no_nodes()
    return plays


@contextlib.contextmanager
def local_cluster(version: str = REFERENCE) -> Iterator[LocalCluster]:
    """A fresh cluster in this process, without nodes, whose clock is held.

    Its clock starts with a minute, so that no schedule of a CronJob is due while a scenario waits for the first changes.
    """
    with Cluster(version=version, profile="cluster", controllers=WITHOUT_METRICS) as cluster:
        cluster.clock.hold()
        cluster.clock.advance(seconds=60 - cluster.clock.now().second)
        found = LocalCluster(cluster)
        found.no_nodes()
        cluster.settle()
        try:
            yield found
        finally:
            found.close()


def play_in_process(scenarios: dict[str, Scenario], version: str = REFERENCE) -> Plays:
    """Play each scenario to a fresh cluster in this process."""
    plays: Plays = {}
    for name, scenario in scenarios.items():
        with local_cluster(version) as cluster:
            if not scenario.alone:
                cluster.shared_node()
            plays[name] = play(scenario, cluster, is_last=True)
    return plays


def merge(plays: list[Plays]) -> Plays:
    """What several plays of the reference agree on; the paths and events in which they differ are named as unstable."""
    merged = {}
    for name in plays[0]:
        first, *others = (normalise(found[name]) for found in plays if name in found)
        for i, dump in enumerate(first["dumps"]):
            unstable: set[str] = set()
            for other in others:
                if i >= len(other["dumps"]) or other["dumps"][i]["label"] != dump["label"]:
                    unstable.add("")
                else:
                    unstable |= {_path(line) for line in differences(dump["value"], other["dumps"][i]["value"])}
            if unstable:
                dump["unstable"] = sorted(unstable)
        loose = {k for o in others for k in {*first["events"], *o["events"]} if first["events"].get(k) != o["events"].get(k)}
        merged[name] = {**first, **({"unstable_events": sorted(loose)} if loose else {})}
    return merged


# ---------------------------------------------------------------- comparing


@dataclass(slots=True)
class Score:
    """How many dumps and events, and how many scenarios as a whole, are as recorded."""

    dumps: int = 0
    identical: int = 0
    events: int = 0
    identical_events: int = 0
    scenarios: int = 0
    identical_scenarios: int = 0
    differences: list[str] = field(default_factory=list)

    def add(self, name: str, wanted: Play, played: Play) -> None:
        """Compare one scenario."""
        before = len(self.differences)
        got = normalise(played)
        for i, dump in enumerate(wanted["dumps"]):
            unstable = dump.get("unstable", [])
            if "" not in unstable:
                actual = got["dumps"][i] if i < len(got["dumps"]) else {"value": None}
                self._add_dump(f"{name}: {dump['label']}", dump["value"], actual["value"], unstable)
        self._add_events(f"{name}: events", wanted, got["events"])
        if len(self.differences) > before and played["trouble"]:
            self.differences[-1] += f"\n    trouble: {'; '.join(played['trouble'])}"
        self.scenarios += 1
        self.identical_scenarios += len(self.differences) == before

    def _add_dump(self, title: str, wanted: Any, actual: Any, unstable: list[str]) -> None:
        self.dumps += 1
        if lines := [line for line in differences(wanted, actual) if not _is_below(_path(line), unstable)]:
            self.differences.append("\n    ".join([f"--- {title}", *lines[:8]]))
        else:
            self.identical += 1

    def _add_events(self, title: str, wanted: Play, events: dict[str, int]) -> None:
        loose = set(wanted.get("unstable_events", ()))
        expected = {event: count for event, count in wanted["events"].items() if event not in loose}
        missing = [event for event, count in expected.items() if events.get(event) != count]
        unwanted = sorted(event for event in events if event not in wanted["events"] and event not in loose)
        self.events += len(expected)
        self.identical_events += max(0, len(expected) - len(missing) - len(unwanted))
        if missing or unwanted:
            lines = [f"missing {event} x{expected[event]}, got {events.get(event, 0)}" for event in missing[:6]]
            lines += [f"unwanted {event} x{events[event]}" for event in unwanted[:6]]
            self.differences.append("\n    ".join([f"--- {title}", *lines]))

    def report(self, shown: int) -> str:
        """So many differences in full, and the score."""
        return "\n".join([*self.differences[:shown], str(self)])

    def __str__(self) -> str:
        return (
            f"scenarios {self.identical_scenarios}/{self.scenarios} identical; dumps {self.identical}/{self.dumps}; "
            f"events {self.identical_events}/{self.events}"
        )


def _path(line: str) -> str:
    """The path in a line of `differences`; a list of another length is one place, whatever it holds."""
    return line.split(": ", 1)[0]


def _is_below(path: str, places: list[str]) -> bool:
    return any(path == place or path.startswith((f"{place}.", f"{place}[")) for place in places)


def score(recorded: Plays, played: Plays) -> Score:
    """Compare what was played with what was recorded."""
    result = Score()
    for name, wanted in recorded.items():
        result.add(name, wanted, played[name])
    return result


def score_in_process(life: str, recorded: Plays | None = None) -> Score:
    """The score of fakekube; what differs is played up to twice more, and counts as it went best."""
    recorded = read(life) if recorded is None else recorded
    scenarios = {name: found for name, found in scenarios_of(life).items() if name in recorded}
    version = version_of(life)
    played = play_in_process(scenarios, version)
    for name, scenario in scenarios.items():
        wanted = {name: recorded[name]}
        for _ in range(2):
            if not (before := score(wanted, played).differences):
                break
            again = play_in_process({name: scenario}, version)
            if len(score(wanted, again).differences) < len(before):
                played |= again
    return score(recorded, played)
