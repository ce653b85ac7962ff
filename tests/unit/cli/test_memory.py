"""The memory of processes that serve."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fakekube import cli

#: Threads that take much memory at the same time; prints the number of arenas.
_PROGRAM = """
import ctypes, re, tempfile, threading
from fakekube.cli import _use_one_arena

print(_use_one_arena())
together = threading.Barrier(4)
def take():
    together.wait()
    taken = [bytes(1000) for _ in range(100)]
    together.wait()
threads = [threading.Thread(target=take) for _ in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
library = ctypes.CDLL(None)
with tempfile.NamedTemporaryFile() as file:
    library.fopen.restype = ctypes.c_void_p
    library.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
    library.fclose.argtypes = [ctypes.c_void_p]
    stream = library.fopen(file.name.encode(), b"w")
    library.malloc_info(0, stream)
    library.fclose(stream)
    print(len(re.findall(b"<heap nr=", file.read())))
"""


def run(**variables: str) -> list[str]:
    environ = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"} | variables
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environ, check=True, capture_output=True, text=True, timeout=60
    ).stdout.split()


@pytest.mark.skipif(not cli._has_arenas(), reason="the C library has no arenas")
def test_threads_of_a_server_share_an_arena() -> None:
    assert run() == ["True", "1"]


@pytest.mark.skipif(not cli._has_arenas(), reason="the C library has no arenas")
def test_the_users_number_of_arenas_stays() -> None:
    changed, arenas = run(MALLOC_ARENA_MAX="3")
    assert (changed, int(arenas) > 1) == ("False", True)


def test_other_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> str:
        raise ValueError(f"unrecognized configuration name {name}")

    monkeypatch.setattr(os, "confstr", refuse, raising=False)
    assert not cli._use_one_arena()
