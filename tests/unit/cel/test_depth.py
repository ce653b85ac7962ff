"""Deep expressions have room, and take nothing from anybody else."""

from __future__ import annotations

import sys
import threading

from fakekube.cel.checker import check
from fakekube.cel.depth import is_deep, room
from fakekube.cel.evaluation import program
from fakekube.cel.parser import parse


def test_a_deep_expression_is_evaluated_and_the_allowance_is_as_before() -> None:
    before = sys.getrecursionlimit()
    source = "(" * 200 + "1" + " + 1)" * 200
    assert is_deep(source)
    assert program(check(source, parse(source), {})).evaluate({})[0] == 201
    assert sys.getrecursionlimit() == before


def test_the_last_who_is_done_takes_the_allowance_back() -> None:
    before = sys.getrecursionlimit()
    entered, leave = threading.Event(), threading.Event()

    def walk() -> None:
        with room(True):
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=walk)
    with room(True):
        raised = sys.getrecursionlimit()
        other.start()
        assert entered.wait(10)
    assert sys.getrecursionlimit() == raised > before
    leave.set()
    other.join()
    assert sys.getrecursionlimit() == before
    with room(False):
        assert sys.getrecursionlimit() == before
