"""Deep expressions raise the recursion limit temporarily."""

from __future__ import annotations

import sys
import threading

from fakekube.apimachinery.cel.checker import check
from fakekube.apimachinery.cel.evaluation import program
from fakekube.apimachinery.cel.interpretable import is_deep, room
from fakekube.apimachinery.cel.parser import parse


def test_deep_expression_is_evaluated_and_recursion_limit_restored() -> None:
    before = sys.getrecursionlimit()
    source = "(" * 200 + "1" + " + 1)" * 200
    assert is_deep(source)
    assert program(check(source, parse(source), {})).evaluate({})[0] == 201
    assert sys.getrecursionlimit() == before


def test_recursion_limit_is_restored_by_the_last_user() -> None:
    before = sys.getrecursionlimit()
    entered, leave = threading.Event(), threading.Event()

    def walk() -> None:
        with room(True):
            entered.set()
            leave.wait(60)

    other = threading.Thread(target=walk)
    with room(True):
        raised = sys.getrecursionlimit()
        other.start()
        assert entered.wait(60)
    assert sys.getrecursionlimit() == raised > before
    leave.set()
    other.join()
    assert sys.getrecursionlimit() == before
    with room(False):
        assert sys.getrecursionlimit() == before
