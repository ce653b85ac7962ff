"""The interpreter's switch interval is short while servers run, and then what it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from fakekube.base.clock import Clock
from fakekube.net import Server
from fakekube.net.leader_followers import SwitchInterval


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No other server is known, and the process gets its interval back."""
    monkeypatch.setattr("fakekube.net.server.SWITCH_INTERVAL", SwitchInterval())
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def server(clock: Clock) -> Server:
    return Server(lambda environ, start_response: [], clock=clock)


@pytest.mark.parametrize(("interval", "expected"), [(0.005, 1e-4), (1e-5, 1e-5)])
def test_switch_interval_is_short_while_a_server_runs(clock: Clock, interval: float, expected: float) -> None:
    sys.setswitchinterval(interval)
    with server(clock):
        assert sys.getswitchinterval() == pytest.approx(expected, rel=0.05)
    assert sys.getswitchinterval() == pytest.approx(interval, rel=0.05)


def test_switch_interval_is_restored_by_the_last_server(clock: Clock) -> None:
    sys.setswitchinterval(0.005)
    first, second = server(clock), server(clock)
    first.start()
    second.start()
    first.stop()
    first.stop()
    assert sys.getswitchinterval() < 0.001
    second.stop()
    assert sys.getswitchinterval() == pytest.approx(0.005)


def test_switch_interval_changed_by_others_is_not_restored(clock: Clock) -> None:
    sys.setswitchinterval(0.005)
    with server(clock):
        sys.setswitchinterval(0.002)
    assert sys.getswitchinterval() == pytest.approx(0.002)
