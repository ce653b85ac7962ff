"""When the replacement for kube-apiserver exits."""

from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.cli.envtest import kube_apiserver


def wait(monkeypatch: pytest.MonkeyPatch, ended: threading.Event, *, connected: Any = False) -> bool:
    """Whether the wait ended by itself."""
    monkeypatch.setattr(kube_apiserver, "ORPHAN_SECONDS", 0.005)
    monkeypatch.setattr(kube_apiserver, "_LOOK_SECONDS", 0.001)
    waiting = threading.Thread(target=kube_apiserver._wait, args=(ended, connected))
    waiting.start()
    waiting.join(0.1)
    alone = not waiting.is_alive()
    ended.set()
    waiting.join()
    return alone


def test_orphaned_server_exits_without_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = itertools.chain([7], itertools.repeat(1))
    monkeypatch.setattr("os.getppid", lambda: next(parents))
    assert wait(monkeypatch, threading.Event(), connected=SimpleNamespace(is_connected=False))


@pytest.mark.parametrize(("parents", "connected"), [([7, 1], True), ([7, 7], False)])
def test_server_with_parent_or_connections_keeps_running(
    monkeypatch: pytest.MonkeyPatch, parents: list[int], connected: bool
) -> None:
    parent_ids = itertools.chain(parents, itertools.repeat(parents[-1]))
    monkeypatch.setattr("os.getppid", lambda: next(parent_ids))
    assert not wait(monkeypatch, threading.Event(), connected=SimpleNamespace(is_connected=connected))


@pytest.mark.parametrize("argument", ["--secure-port=0", "--secure-port", "--fakekube-profile=none"])
def test_invalid_command_line_is_a_one_line_error(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert kube_apiserver.main([argument]) == 1
    assert capsys.readouterr().err.count("\n") == 1
