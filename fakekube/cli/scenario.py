"""`fakekube scenario FILE|NAME`: a cluster to practise on; `scenario list`; `scenario test [NAME…]` plays the solutions.

A scenario is served until all its tasks have passed, or a signal ends it; then the result is printed as JSON. The clock runs
while somebody plays, and is held in a test. Hints are shown when the player asks for them.

Exit codes: 0 if all tasks have passed, 1 if not, 2 for a scenario that cannot be read or set up.
"""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from fakekube.cli.arguments import Options, UsageError
from fakekube.cli.process import setup_signal_handler

if TYPE_CHECKING:
    from fakekube.cluster.scenarios.game import Game

#: Real seconds between two judgements while somebody plays.
_ROUND: Final = 0.5


def run_scenario(options: Options) -> int:
    """Runs the command, and returns its exit code. Raises UsageError."""
    from fakekube.cluster.scenarios.scenario import ScenarioError, find_scenario, library

    first, *names = options.scenarios
    try:
        if first == "list" and not names:
            for name, path in library().items():
                print(f"{name:22} {find_scenario(str(path)).title}")
            return 0
        if first == "test":
            return _test(names or list(library()))
        if names:
            raise UsageError("scenario plays one scenario; several are for `scenario test`")
        return _play(first, options)
    except ScenarioError as problem:
        raise UsageError(str(problem)) from None


def _test(names: list[str]) -> int:
    """Plays the solutions of scenarios, and prints a result for each."""
    from fakekube.cluster.scenarios.game import play, play_solution
    from fakekube.cluster.scenarios.scenario import find_scenario

    passed = True
    for name in names:
        with play(find_scenario(name)) as game:
            result: dict[str, Any] = play_solution(game)
        print(json.dumps(result), flush=True)
        passed = passed and result["passed"]
    return 0 if passed else 1


def _play(name: str, options: Options) -> int:
    """Serves a scenario until its tasks have passed or a signal arrives, and prints the result."""
    from fakekube.cluster.scenarios.game import play
    from fakekube.cluster.scenarios.scenario import find_scenario

    stop = setup_signal_handler()
    scenario = find_scenario(name)
    with play(scenario, port=options.port) as game:
        if options.kubeconfig is not None:
            game.cluster.write_kubeconfig(options.kubeconfig)
        _introduce(game, str(options.kubeconfig or game.cluster.kubeconfig), with_hints=options.hints)
        game.cluster.clock.release()
        shown: set[int] = set()
        hints: Iterator[str] = iter(()) if options.hints else _hints(game)
        while not game.judge() and not stop.wait(_ROUND):
            _report_progress(game, shown)
            if _is_enter_pressed():
                print(next(hints, "there are no more hints"), file=sys.stderr, flush=True)
        _report_progress(game, shown)
        stop.wait(_ROUND)  # the page shows the last result
        print(json.dumps(game.data(), indent=2), flush=True)
        return 0 if game.data()["passed"] else 1


def _introduce(game: Game, kubeconfig: str, *, with_hints: bool) -> None:
    """Prints the text and the tasks of a scenario to standard error, so that standard output has the result alone."""
    scenario = game.scenario
    print(f"\n{scenario.title}\n\n{scenario.text.rstrip()}\n\n    export KUBECONFIG={kubeconfig}\n", file=sys.stderr)
    for number, task in enumerate(scenario.tasks, 1):
        budget = f" (within {task.seconds:g} s)" if task.seconds is not None else ""
        print(f"{number}. {task.title}{budget}", file=sys.stderr)
        if task.text:
            print(f"   {task.text.rstrip()}", file=sys.stderr)
        for hint in task.hints if with_hints else ():
            print(f"   hint: {hint}", file=sys.stderr)
    asks = "Enter shows a hint, " if sys.stdin.isatty() and not with_hints else ""
    print(f"\nThe page of the cluster is {game.cluster.page_url}. {asks}Ctrl-C gives up.\n", file=sys.stderr, flush=True)


def _hints(game: Game) -> Iterator[str]:
    """Yields the hints one after the other; those of tasks that have passed meanwhile are left out."""
    for result in game.results:
        for hint in result.task.hints:
            if not result.passed:
                yield f"hint for {result.task.title!r}: {hint}"


def _is_enter_pressed() -> bool:
    """Reports whether the player has pressed Enter in a terminal, without waiting for it."""
    if not sys.stdin.isatty() or not select.select([sys.stdin], [], [], 0)[0]:
        return False
    return bool(sys.stdin.readline())


def _report_progress(game: Game, shown: set[int]) -> None:
    for number, result in enumerate(game.results, 1):
        if result.passed and number not in shown:
            shown.add(number)
            print(f"passed: {result.task.title}", file=sys.stderr, flush=True)
