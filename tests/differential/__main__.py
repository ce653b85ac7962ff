"""Plays the scenarios to servers and compares what they answer.

    python -m tests.differential check                             what was recorded, against fakekube in this process
    python -m tests.differential check --subject URL               the same, against a running server
    python -m tests.differential run --reference URL               a running reference against fakekube, live
    python -m tests.differential run --reference URL random:7:100  the same with other random stories: any seed, any number
    python -m tests.differential record --reference URL lists      records the reference's answers anew
    python -m tests.differential scores [--write]                  the table of scores; --write replaces it

Without names, all recordings are meant. A name is one of fixtures/recorded (`lists`, `cbor/negotiation`), or
`random:SEED:COUNT`. A URL may carry a token: https://admin-token@127.0.0.1:6443. `-k WORD` chooses scenarios, `-v N` shows
more differences, `-j N` plays so many scenarios at once. The status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys

from fakekube.data import descriptions
from tests.differential import scores
from tests.differential.comparison import Score
from tests.differential.recordings import (
    RECORDINGS,
    Recording,
    Transcripts,
    mark_unstable,
    play_in_process,
    play_to_server,
    score,
    score_in_process,
)

#: The scores are those without descriptions, whether kubernetes-validate is installed or not.
descriptions.find_spec = lambda *_: None


def chosen(names: list[str]) -> list[Recording]:
    """The recordings of these names, or all. Raises SystemExit for a name that is none."""
    if unknown := [name for name in names if name not in RECORDINGS and not name.startswith("random:")]:
        raise SystemExit(f"no recording is called {', '.join(unknown)}; there are {', '.join(RECORDINGS)}")
    return [RECORDINGS.get(name) or Recording(name, name) for name in names] or list(RECORDINGS.values())


def play(recording: Recording, options: argparse.Namespace, url: str, names: set[str] | None = None) -> Transcripts:
    """The answers of the server at the URL, or of fakekube in this process if there is none."""
    found = {n: s for n, s in recording.scenarios(options.word).items() if names is None or n in names}
    return play_to_server(recording, found, url, options.jobs) if url else play_in_process(recording, found)


def recorded(recording: Recording, options: argparse.Namespace) -> Transcripts:
    """What the reference answers: as recorded, or now, where it is given; played twice, to see what it repeats."""
    if not options.reference:
        return {name: exchanges for name, exchanges in recording.read().items() if options.word in name}
    first = play(recording, options, options.reference)
    count = mark_unstable(first, play(recording, options, options.reference))
    print(f"{recording.name}: {count} exchanges are not compared: the reference does not repeat itself there")
    return first


def compared(recording: Recording, options: argparse.Namespace) -> Score:
    """The score of one recording."""
    wanted = recorded(recording, options)
    if not options.subject:
        return score_in_process(recording, wanted)
    return score(wanted, play(recording, options, options.subject, set(wanted)))


def main() -> int:
    """The command; see the module."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["check", "run", "record", "scores"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--reference", default="")
    parser.add_argument("--subject", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("-k", dest="word", default="")
    parser.add_argument("-v", dest="verbose", type=int, default=10)
    parser.add_argument("-j", dest="jobs", type=int, default=4)
    options = parser.parse_intermixed_args()
    if options.command in ("run", "record") and not options.reference:
        parser.error(f"{options.command} needs --reference")
    wrong = 0
    table = scores.read()
    for recording in chosen(options.names):
        if options.command == "record":
            recording.write(recorded(recording, options))
            continue
        result = compared(recording, options)
        print(f"{recording.name}: {result.report(0 if options.command == 'scores' else options.verbose)}", flush=True)
        table[recording.name] = scores.figures(result)
        wrong += len(result.differences)
    if options.command == "scores" and options.write:
        scores.write({name: table[name] for name in RECORDINGS if name in table})
    return 1 if wrong and options.command != "scores" else 0


if __name__ == "__main__":
    sys.exit(main())
