"""The state that the controllers of the nodes share: no exit is lost or told twice between threads."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from fakekube.nodes.node_state import Exit, NodeState
from fakekube.nodes.plans import Run


def new_state() -> NodeState:
    def no_runtime() -> Any:
        raise AssertionError

    return NodeState(no_runtime, seeded=False)


def let_others_run(frame: FrameType, event: str, argument: Any) -> Any:
    """Traces a thread: the other threads run after each of its instructions."""
    frame.f_trace_opcodes = True
    time.sleep(0)
    return let_others_run


@pytest.fixture
def _short_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_short_switches")
def test_each_exit_is_taken_once() -> None:
    state = new_state()
    exits = [Exit("main", number, Run(0.0), 0.0) for number in range(10)]

    def add() -> None:
        sys.settrace(let_others_run)
        for one in exits:
            state.add_exit("a", one)

    thread = threading.Thread(target=add)
    thread.start()
    taken: list[Exit] = []
    while thread.is_alive():
        taken += state.take_exits("a")
    thread.join()
    taken += state.take_exits("a")
    assert taken == exits


def test_exits_belong_to_their_pod() -> None:
    state = new_state()
    one = Exit("main", 0, Run(0.0), 0.0)
    state.add_exit("a", one)
    assert state.take_exits("b") == ()
    assert state.take_exits("a") == [one]
