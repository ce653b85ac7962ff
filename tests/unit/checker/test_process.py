"""What is left of clients when a check ends, however it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakekube.checker.process import CommandStarter, _state_of, _threads_of, fatal_line, starter_of

#: Connects to a port and stays; as a daemon it leaves the process group of the check's client, as a child it outlives its parent.
CLIENT = """
import os, socket, sys, time
if sys.argv[2] == "child" and os.fork():
    sys.exit(3)
if sys.argv[2] == "daemon":
    if os.fork():
        time.sleep(1000)
    os.setsid()
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(b"here")
time.sleep(1000)
"""

#: A check that is killed while its client runs.
CHECK = """
import os, signal, socket, sys
from pathlib import Path
from fakekube.checker.process import CommandStarter
folder = Path(sys.argv[1])
CommandStarter(sys.argv[2:]).start(folder / "kubeconfig", folder / "1", folder)
sys.stdin.read(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(300)
        yield made


def client(listener: socket.socket, how: str = "plain") -> list[str]:
    return [sys.executable, "-c", CLIENT, str(listener.getsockname()[1]), how]


def arrival(listener: socket.socket) -> socket.socket:
    connection, _ = listener.accept()
    connection.settimeout(300)
    assert connection.recv(4) == b"here"
    return connection


def is_gone(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "how", ["plain", pytest.param("daemon", marks=pytest.mark.skipif(sys.platform != "linux", reason="/proc"))]
)
def test_a_client_dies_with_a_check_that_is_killed(listener: socket.socket, tmp_path: Path, how: str) -> None:
    folder = tmp_path / "check"
    folder.mkdir()
    command = [sys.executable, "-c", CHECK, str(folder), *client(listener, how)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as check, arrival(listener) as connection:
        check.communicate(b"x")
        assert is_gone(connection)
    assert check.returncode == -signal.SIGKILL


def test_what_has_left_its_group_ends_with_the_check(listener: socket.socket, tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("/proc")
    folder = tmp_path / "check"
    folder.mkdir()
    starter = CommandStarter(client(listener, "daemon"))
    process = starter.start(folder / "kubeconfig", folder / "1", folder)
    with arrival(listener) as connection:
        process.kill()
        starter.close()
        assert is_gone(connection)
    assert not folder.exists()


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -TERM $$", -signal.SIGTERM)])
def test_the_group_of_a_client_that_has_ended_belongs_to_it_until_it_is_killed(script: str, code: int, tmp_path: Path) -> None:
    """Another process may have the number by then, and would be killed in its place."""
    starter = CommandStarter(["sh", "-c", script])
    process = starter.start(tmp_path / "kubeconfig", tmp_path / "1", tmp_path)
    try:
        while process.exit_code() is None:
            time.sleep(0.01)
        assert process.exit_code() == code
        os.kill(process.process_id, 0)
        process.kill()
        with pytest.raises(ProcessLookupError):
            os.kill(process.process_id, 0)
        process.kill()
        assert process.exit_code() == code
    finally:
        starter.close()


@pytest.mark.parametrize("knows_waitid", [True, False])
def test_the_children_of_a_client_that_has_ended_die_when_it_is_killed(
    knows_waitid: bool, listener: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not knows_waitid:  # as Python on macOS, until 3.13
        monkeypatch.delattr(os, "waitid", raising=False)
    starter = CommandStarter(client(listener, "child"))
    process = starter.start(tmp_path / "kubeconfig", tmp_path / "1", tmp_path)
    try:
        with arrival(listener) as connection:
            while process.exit_code() is None:
                time.sleep(0.01)
            assert process.exit_code() == 3
            process.kill()
            assert is_gone(connection)
    finally:
        starter.close()


def test_what_is_beside_the_folder_of_a_check_is_left_alone(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.touch()
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(["sleep", "1000"], env=environment) as other:
        try:
            starter = CommandStarter(["sleep", "1000"])
            starter.start(tmp_path / "kubeconfig", tmp_path / "check", tmp_path / "check").kill()
            starter.close()
            assert (other.poll(), beside.exists(), (tmp_path / "check").exists()) == (None, True, False)
        finally:
            other.kill()


def test_a_client_that_prints_much_fills_no_disk(tmp_path: Path) -> None:
    folder = tmp_path / "check"
    folder.mkdir()
    starter = CommandStarter(["sh", "-c", "head -c 6000000 /dev/zero | tr '\\0' x; echo last"])
    process = starter.start(folder / "kubeconfig", folder / "1", folder)
    try:
        while process.exit_code() is None:
            starter.tidy()
        starter._tidied_at = 0.0
        starter.tidy()
        assert (folder / "1" / "output.txt").stat().st_size < 5 << 20
        assert process.output().endswith("xlast")
    finally:
        process.kill()
        starter.close()


@pytest.mark.parametrize(
    ("command", "source"),
    [
        (["python", "operator.py", "-v"], "operator.py"),
        (["./deep/run"], "deep/run"),
        (["/usr/bin/python", "-m", "operator"], "python"),
        (["sh", "-c", "exec operator " * 200], "sh"),
        (["./interpreter", "operator.py"], "operator.py"),
    ],
)
def test_the_source_of_a_client_is_a_file_below_the_working_directory(
    command: list[str], source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "run").touch()
    (tmp_path / "operator.py").touch()
    (tmp_path / "interpreter").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert CommandStarter(command).source == source


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_thread_that_reads_its_own_state_is_runnable() -> None:
    assert _state_of(Path("/proc/thread-self/stat")) == "R"
    assert _state_of(Path("/proc/none/stat")) == "S"


def test_the_threads_of_a_client_are_those_of_all_processes_that_it_has_started(tmp_path: Path) -> None:
    for process, thread, children in ((5, 5, "7 "), (5, 6, ""), (7, 7, "8 9"), (8, 8, ""), (4, 4, "5")):
        folder = tmp_path / str(process) / "task" / str(thread)
        folder.mkdir(parents=True)
        (folder / "children").write_text(children)
    assert {int(thread.name) for thread in _threads_of(5, tmp_path)} == {5, 6, 7, 8}


def test_the_source_of_a_function_is_its_file() -> None:
    assert starter_of(client).source.endswith("test_process.py")


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", ""),
        ('Traceback (most recent call last):\n  File "a.py", line 1\nValueError: no\n', "ValueError: no"),
        (
            "x.js:3\n  bad\n  ^\n\nTypeError: no\n    at Object.<anonymous> (/x.js:3:1)\n    at node:internal/x:2\n\nNode.js v20.1.0",
            "TypeError: no",
        ),
        (
            "Caused by: java.io.IOException: no\n\tat checked.Operator.main(Operator.java:37)\n\t... 3 more\n",
            "Caused by: java.io.IOException: no",
        ),
        ("panic: no\n\ngoroutine 1 [running]:\nmain.main()\n", "panic: no"),
        ("    at x (y.js:1)\n", "at x (y.js:1)"),
    ],
)
def test_the_line_that_explains_an_end(output: str, line: str) -> None:
    assert fatal_line(output) == line
