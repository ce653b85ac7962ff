"""What a signal does to a command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fakekube.cli.process import StopChannel

#: Timers interrupt the main thread some thousand times within the methods of a channel; SIGALRM ends it if it hangs.
_INTERRUPTED = """
import signal
from fakekube.cli.process import StopChannel

channel = StopChannel()
signal.signal(signal.SIGVTALRM, lambda *_: channel.close())
signal.setitimer(signal.ITIMER_VIRTUAL, 0.0001, 0.0001)
signal.alarm(50)
for _ in range(20_000):
    channel = StopChannel()
    channel.wait(0)
    channel.wait(0)
signal.setitimer(signal.ITIMER_VIRTUAL, 0)
print("done")
"""


def test_a_channel_is_closed_once_and_for_all() -> None:
    channel = StopChannel()
    assert not channel.wait(0.0)
    channel.close()
    channel.close()
    assert [channel.wait(), channel.wait(), channel.wait(0.0), channel.closed] == [True] * 4


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no interval timers")
def test_a_signal_may_close_a_channel_at_any_point() -> None:
    found = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout) == (0, "done\n")
