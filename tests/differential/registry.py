"""The scenarios by name, and what a server must have so that they can be played to it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.differential.client import Client

Play = Callable[[Client], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A function that makes requests; its name is `module.function`."""

    name: str
    play: Play
    needs: str = ""
    """What only a server of a special kind has: `compaction`, `certificates` or `controllers`."""


_scenarios: dict[str, Scenario] = {}


def scenario(function: Play | None = None, *, needs: str = "") -> Any:
    """Mark a function as a scenario."""
    if function is None:
        return functools.partial(scenario, needs=needs)
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    _scenarios[name] = Scenario(name, function, needs)
    return function


def scenarios_of(module: str, minor: str, everything: bool = False) -> dict[str, Scenario]:
    """The scenarios of a module of `scenarios/`, or random ones, `MODE:SEED:COUNT` (`generators.modes`) or `random:SEED:COUNT`.

    Args:
        minor: of the server; random edits follow its schemas.
        everything: the server has all gates and APIs.

    Raises ModuleNotFoundError, and SystemExit for an unknown mode.
    """
    if module.startswith("random:"):
        return _random_scenarios(*module.split(":")[1:])
    if ":" in module:
        from tests.differential.generators import modes

        return {name: Scenario(name, play) for name, play in modes.stories(module, minor, everything).items()}
    importlib.import_module(f"tests.differential.scenarios.{module}")
    return {name: found for name, found in _scenarios.items() if name.partition(".")[0] == module}


def _random_scenarios(seed: str, count: str) -> dict[str, Scenario]:
    from tests.differential.random_stories import scenario_of

    names = {f"random.{seed}.{number:04d}": f"{seed}.{number}" for number in range(int(count))}
    return {name: Scenario(name, scenario_of(own)) for name, own in names.items()}
