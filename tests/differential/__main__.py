"""Plays the scenarios to servers and compares what they answer.

    python -m tests.differential check                             what was recorded, against fakekube in this process
    python -m tests.differential check --subject URL               the same, against a running server
    python -m tests.differential run --reference URL               a running reference against fakekube, live
    python -m tests.differential run --reference URL random:7:100  the same with other random stories: any seed, any number
    python -m tests.differential run --reference URL --minor 1.37 edits:7:100:Pod,Job quotas:7:30   of one mode (generators/modes.py)
    python -m tests.differential record --reference URL lists      records the reference's answers anew
    python -m tests.differential record --reference URL life/jobs  the same of a living cluster (`life.stack` starts one)
    python -m tests.differential scores [--write]                  the table of scores; --write replaces it

Without names, all recordings are meant. A name is one of fixtures/recorded (`lists`, `cbor/negotiation`), or
`MODE:SEED:COUNT` for random stories, whose servers are of `--minor` (with `--everything`, of all its gates and APIs). A URL may carry a token: https://admin-token@127.0.0.1:6443. `-k WORD` chooses scenarios, `-v N` shows
more differences, `-j N` plays so many scenarios at once. The status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fakekube.apimachinery import data
from tests.differential import recordings, scores
from tests.differential.generators import modes
from tests.differential.life import recordings as lives
from tests.differential.life.cluster import RemoteCluster
from tests.differential.recordings import RECORDINGS, Recording, Transcripts

Options = argparse.Namespace


@dataclass(frozen=True, slots=True)
class Exchanges:
    """A recording of exchanges."""

    recording: Recording

    def recorded(self, options: Options) -> Transcripts:
        """What the reference answers: as recorded, or now, where it is given; played twice, to see what it repeats."""
        if not options.reference:
            return {name: exchanges for name, exchanges in self.recording.read().items() if options.word in name}
        first = self._play(options, options.reference)
        if options.once:
            return first
        count = recordings.mark_unstable(first, self._play(options, options.reference))
        print(f"{self.recording.name}: {count} exchanges are not compared: the reference does not repeat itself there")
        return first

    def score(self, options: Options) -> Any:
        """How much of it the subject answers."""
        wanted = self.recorded(options)
        if not options.subject:
            return recordings.score_in_process(self.recording, wanted)
        return recordings.score(wanted, self._play(options, options.subject, set(wanted)))

    def record(self, options: Options) -> None:
        """Record it anew."""
        self.recording.write(self.recorded(options))

    def _play(self, options: Options, url: str, names: set[str] | None = None) -> Transcripts:
        found = {n: s for n, s in self.recording.scenarios(options.word).items() if names is None or n in names}
        return recordings.play_to_server(self.recording, found, url, options.jobs, options.certificates)

    @staticmethod
    def figures(score: Any) -> scores.Expected:
        """What the table says of a score."""
        return scores.figures(score)


@dataclass(frozen=True, slots=True)
class Life:
    """A recording of what scenarios leave in a living cluster."""

    name: str

    def recorded(self, options: Options) -> lives.Plays:
        """What the reference leaves: as recorded, or now, where it is given; played twice, to see what it repeats."""
        if not options.reference:
            return lives.read(self.name, options.word)
        return lives.merge([self._play(options, options.reference) for _ in range(2)])

    def score(self, options: Options) -> Any:
        """How much of it the subject leaves."""
        wanted = self.recorded(options)
        if not options.subject:
            return lives.score_in_process(self.name, wanted)
        return lives.score(wanted, self._play(options, options.subject, set(wanted)))

    def record(self, options: Options) -> None:
        """Record it anew."""
        lives.write(self.name, self.recorded(options))

    def _play(self, options: Options, url: str, names: set[str] | None = None) -> lives.Plays:
        found = {n: s for n, s in lives.scenarios_of(self.name, options.word).items() if names is None or n in names}
        cluster = RemoteCluster(url)
        try:
            return lives.play_to(cluster, found, options.jobs)
        finally:
            cluster.close()

    @staticmethod
    def figures(score: Any) -> scores.Expected:
        """What the table says of a score."""
        return scores.life_figures(score)


ALL: dict[str, Exchanges | Life] = {
    **{name: Exchanges(recording) for name, recording in RECORDINGS.items()},
    **{f"life/{name}": Life(name) for name in lives.LIVES},
}


def chosen(names: list[str], minor: str, everything: bool) -> dict[str, Exchanges | Life]:
    """The recordings of these names, or all. Raises SystemExit for a name that is none."""
    if unknown := [name for name in names if name not in ALL and ":" not in name]:
        raise SystemExit(f"no recording is called {', '.join(unknown)}; there are {', '.join(ALL)}")
    return {name: ALL.get(name) or Exchanges(_of_random_stories(name, minor, everything)) for name in names or ALL}


def _of_random_stories(name: str, minor: str, everything: bool) -> Recording:
    if not everything:
        mode = name.partition(":")[0]
        return Recording(name, name, version=minor, options=modes.OPTIONS.get(mode, {}), feature_gates=modes.GATES.get(mode, {}))
    return replace(RECORDINGS["v1.37/rules/alpha"], name=name, module=name, version=minor)


def main() -> int:
    """The command; see the module."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["check", "run", "record", "scores"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--reference", default="")
    parser.add_argument("--subject", default="")
    parser.add_argument("--certificates", type=Path, default=Path(), help="a folder of certificates.py, for certified/…")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--descriptions", action="store_true", help="with those of kubernetes-validate; scores are without them")
    parser.add_argument("--minor", default="1.36", help="of random stories")
    parser.add_argument("--everything", action="store_true", help="random stories of servers with all gates and APIs")
    parser.add_argument("--once", action="store_true", help="does not ask the reference twice to see what it repeats")
    parser.add_argument("-k", dest="word", default="")
    parser.add_argument("-v", dest="verbose", type=int, default=10)
    parser.add_argument("-j", dest="jobs", type=int, default=4)
    options = parser.parse_intermixed_args()
    if options.command in ("run", "record") and not options.reference:
        parser.error(f"{options.command} needs --reference")
    if not options.descriptions:
        data.find_spec = lambda *_: None
    wrong = 0
    table = scores.read()
    for name, recording in chosen(options.names, options.minor, options.everything).items():
        if options.command == "record":
            recording.record(options)
            continue
        result = recording.score(options)
        print(f"{name}: {result.report(0 if options.command == 'scores' else options.verbose)}", flush=True)
        table[name] = recording.figures(result)
        if isinstance(recording, Life) and options.write:  # of what threads do, the least is promised
            again = [scores.life_figures(lives.score_in_process(recording.name)) for _ in range(2)]
            table[name] = {figure: min(table[name][figure], *(other[figure] for other in again)) for figure in table[name]}
        wrong += len(result.differences)
    if options.command == "scores" and options.write:
        scores.write({name: table[name] for name in ALL if name in table})
    return 1 if wrong and options.command != "scores" else 0


if __name__ == "__main__":
    sys.exit(main())
