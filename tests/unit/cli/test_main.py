"""The commands as processes: output, exit codes and signals."""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import fakekube
from fakekube import __main__, cli
from fakekube.cli import main
from fakekube.cli.arguments import UsageError, parse
from fakekube.net import busy_poll

COMMAND = [sys.executable, "-m", "fakekube"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


def serve(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """A server, and its URL."""
    process = subprocess.Popen([*COMMAND, "serve", *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, line.split(" at ")[1].split(" ")[0]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_serve_exits_on_a_signal_with_open_watches(number: signal.Signals, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    ready = tmp_path / "ready"
    process, url = serve("--kubeconfig", str(config), "--ready-file", str(ready), "--ready-message", "it is ready")
    try:
        assert process.stdout is not None
        assert next(line for line in process.stdout if line.startswith("it is"))
        assert stat.S_IMODE(config.stat().st_mode) == 0o600
        assert yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"] == url
        with urllib.request.urlopen(f"{url}/api/v1/namespaces?watch=1", timeout=60) as watch:
            assert json.loads(watch.readline())["type"] == "ADDED"
            assert ready.read_text() == f"{url}\n"
            process.send_signal(number)
            assert process.wait(60) == 0
        assert not ready.exists()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_scenario_ends_on_a_signal_with_its_result(number: signal.Signals) -> None:
    process = subprocess.Popen([*COMMAND, "scenario", "crash-loop"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert next(line for line in process.stderr if "Ctrl-C" in line)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert json.loads(output)["passed"] is False


def test_run_sets_kubeconfig_and_passes_the_exit_code_on(tmp_path: Path) -> None:
    manifest = tmp_path / "map.yaml"
    manifest.write_text("{kind: ConfigMap, apiVersion: v1, metadata: {name: loaded}}")
    script = "import os, sys, yaml; print(yaml.safe_load(open(os.environ['KUBECONFIG']))['kind']); sys.exit(7)"
    found = run("run", "--load", str(manifest), "--", sys.executable, "-c", script)
    assert (found.returncode, found.stdout) == (7, "Config\n")


def test_run_exit_code_of_a_command_killed_by_a_signal() -> None:
    found = run("run", "--profile", "apiserver", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 15)")
    assert found.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM])
def test_run_passes_signals_on_to_its_command(number: signal.Signals) -> None:
    command = "import signal; print('started', flush=True); signal.pause()"
    arguments = [sys.executable, "-m", "fakekube", "run", "--profile", "apiserver", "--", sys.executable, "-c", command]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "started\n"
        process.send_signal(number)
        assert process.wait(60) == 128 + number


DEEP = ("[" * 5000, "a: " + "- " * 5000, "{a: " * 3000)
FILES = ("--authentication-config", "--authorization-config", "--audit-policy-file", "--admission-control-config-file", "--load")
UNLOADABLE = {
    "a: [": "while parsing",
    "just: text": "kind and apiVersion are missing",
    "{kind: Nope, apiVersion: v1}": "no resource is called 'Nope' in v1",
    "{kind: ConfigMap, apiVersion: v1, metadata: {name: BAD}}": "is invalid: metadata.name",
}
#: Runs commands that are refused, one after the other.
REFUSED = """
import contextlib, io, json, sys
from fakekube.cli import main
for arguments in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = main(arguments)
    print(json.dumps([code, said.getvalue()]))
"""
Refused = Callable[[str, str], tuple[int, str, Path]]


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Refused:
    """Returns the exit code and the error of `serve` with a flag whose file has a text, and the file. One process runs all."""
    folder = tmp_path_factory.mktemp("refused")
    cases = [*itertools.product(FILES, DEEP), *(("--load", text) for text in UNLOADABLE)]
    files = {case: folder / f"{number}.yaml" for number, case in enumerate(cases)}
    for (_, text), file in files.items():
        file.write_text(text)
    commands = json.dumps([["serve", "--port", "0", flag, str(file)] for (flag, _), file in files.items()])
    done = subprocess.run(
        [sys.executable, "-c", REFUSED], input=commands, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = dict(zip(cases, map(json.loads, done.stdout.splitlines()), strict=True))
    return lambda flag, text: (*found[flag, text], files[flag, text])


@pytest.mark.parametrize("text", DEEP)
@pytest.mark.parametrize("flag", FILES)
def test_a_deeply_nested_file_is_a_one_line_error_with_code_2(flag: str, text: str, refused: Refused) -> None:
    code, error, path = refused(flag, text)
    assert code == 2
    assert error.count("\n") == 1
    assert str(path) in error


def test_port_in_use_is_a_one_line_error_with_code_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = run("serve", "--port", str(taken.getsockname()[1]))
        address = "{}:{}".format(*taken.getsockname())
    assert found.returncode == 2
    assert found.stderr == f"fakekube: cannot listen on {address}: Address already in use\n"


_RESULTS = [("run", "--trace"), *(("check", option) for option in ("--report", "--junit", "--sarif", "--summary"))]


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        *((arguments, place) for arguments in _RESULTS for place in ("", "file/report.xml")),
        *((("check", "--keep"), place) for place in ("file", "file/traces", "/proc/traces")),
        (("check", "--summary"), "/proc/summary.md"),
    ],
)
def test_results_that_cannot_be_written_are_told_before_the_command_runs(
    arguments: tuple[str, str], place: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    found = run(*arguments, str(tmp_path / place), "--", "touch", str(tmp_path / "ran"))
    assert (found.returncode, found.stderr) == (
        2,
        f"fakekube: argument {arguments[1]}: {str(tmp_path / place)!r} cannot be written\n",
    )
    assert not (tmp_path / "ran").exists()


def test_an_address_of_another_machine_is_a_one_line_error_with_code_2() -> None:
    """Even if the first use of the address is to write the kubeconfig."""
    found = run("serve", "--host", "fe80::1", "--profile", "apiserver", "--kubeconfig", "/dev/null")
    assert found.returncode == 2
    assert found.stderr.startswith("fakekube: cannot listen on fe80::1:0: ")
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize(("text", "words"), UNLOADABLE.items())
def test_unloadable_manifest_is_a_one_line_error_with_code_2(text: str, words: str, refused: Refused) -> None:
    code, error, path = refused("--load", text)
    assert code == 2, error
    assert error.count("\n") == 1
    assert str(path) in error
    assert words in error


def test_unwritable_kubeconfig_is_a_one_line_error_with_code_2(tmp_path: Path) -> None:
    found = run("serve", "--kubeconfig", str(tmp_path))
    assert found.returncode == 2
    assert "Is a directory" in found.stderr


def test_run_with_a_missing_command_exits_with_2() -> None:
    found = run("run", "--", "/no-such-command-anywhere")  # a path: a folder of PATH may be one that this user cannot read
    assert (found.returncode, found.stderr) == (2, "fakekube: /no-such-command-anywhere: No such file or directory\n")


def test_run_passes_the_environment_to_the_command() -> None:
    found = subprocess.run(
        [*COMMAND, "run", "--", sys.executable, "-c", "import os; print(os.environ['MARK'])"],
        env={**os.environ, "MARK": "here"}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert found.stdout == "here\n"


def test_no_arguments_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "serve" in capsys.readouterr().out


def test_version_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"fakekube {fakekube.__version__} (Kubernetes 1.37)\n"


@pytest.mark.parametrize("tls", [False, True])
def test_exported_objects_can_be_loaded_into_another_cluster(
    tls: bool, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}}
    with fakekube.Cluster(profile="apiserver", tls=tls) as cluster:
        cluster.create(secret)
        path = tmp_path / "kubeconfig"
        cluster.write_kubeconfig(path)
        assert main(["export", "--kubeconfig", str(path), "-n", "default", "--kinds", "secrets"]) == 0
        redacted = yaml.safe_load(capfdbinary.readouterr().out)
        assert (redacted["metadata"]["name"], redacted["data"]) == ("s", {"k": ""})
        assert main(["export", "--kubeconfig", str(path), "--secrets", "--format", "json"]) == 0
        exported = json.loads(capfdbinary.readouterr().out)
        assert {one["kind"] for one in exported["items"]} >= {"Namespace", "Secret", "ClusterRole"}
        assert main(["export", "--kubeconfig", str(path), "--context", "none"]) == 2
    with fakekube.Cluster(profile="apiserver") as other:
        other.load(exported)
        assert other.get("secrets", "s")["data"] == {"k": "dg=="}


# ---------------------------------------------------------------- the page and trace files


def test_serve_prints_and_opens_the_address_of_its_page(tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n', encoding="utf-8")
    browser.chmod(0o700)
    command = [*COMMAND, "serve", "--profile=apiserver", "--open"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "BROWSER": str(browser)}
    )
    assert process.stdout is not None
    assert process.stderr is not None
    line = next(line for line in process.stdout if "page" in line)
    assert "opened" in process.stderr.readline()
    process.terminate()
    assert process.wait(60) == 0
    process.communicate()
    assert line.split()[-1] == opened.read_text(encoding="utf-8").strip()
    assert line.split()[-1].endswith("/fakekube/")


def test_serve_without_a_page() -> None:
    process, url = serve("--profile=apiserver", "--page=false")
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        urllib.request.urlopen(f"{url}/fakekube/", timeout=60)
    refused.value.close()
    process.terminate()
    text, _ = process.communicate(timeout=60)
    assert "page" not in text


def test_run_writes_a_trace_file_that_show_opens_and_serve_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "traces" / "run.html"
    done = run("run", "--profile=apiserver", f"--trace={trace}", "--", "sh", "-c", "exit 3")
    assert (done.returncode, done.stderr) == (3, f"fakekube: the trace of the command is {trace}\n")
    assert "exit code 3" in trace.read_text(encoding="utf-8")
    assert main(["show", str(trace)]) == 0
    assert main(["show", str(trace), "-o", str(tmp_path / "other.html")]) == 2
    assert trace.as_uri() in capsys.readouterr().err
    assert run("run", "--profile=apiserver", f"--load={trace}", "--", "true").returncode == 0


def test_show_makes_a_trace_file_of_a_state_and_of_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fakekube.Cluster(profile="apiserver", version="1.35") as cluster:
        with cluster.record(tmp_path / "recording.yaml", kinds=["configmaps"]):
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}})
        cluster.save(tmp_path / "state.yaml")
    for name in ("state", "recording"):
        shown = tmp_path / f"{name}.html"
        assert main(["show", str(tmp_path / f"{name}.yaml"), "-o", str(shown)]) == 0
        assert shown.as_uri() in capsys.readouterr().err
        assert "kept" in shown.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["hello", "<!doctype html><script type='application/json' id=\"trace\">{", ""])
def test_show_of_something_else_is_a_one_line_error_with_code_2(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    path.write_text(text, encoding="utf-8")
    assert main(["show", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"fakekube: {path}: ")
    assert error.count("\n") == 1
    assert main(["show", str(tmp_path / "none")]) == 2


def test_an_interrupt_while_commands_are_imported_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a traceback; the commands have the handler that was there."""
    handlers: list[object] = []

    class Commands(ModuleType):
        def __getattr__(self, name: str) -> Callable[[], int]:
            if name != "main":
                raise AttributeError(name)
            handlers.append(signal.getsignal(signal.SIGINT))
            return lambda: handlers.append(signal.getsignal(signal.SIGINT)) or 3

    monkeypatch.setitem(sys.modules, "fakekube.cli", Commands("fakekube.cli"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert __main__.main() == 3
    finally:
        signal.signal(signal.SIGINT, before)
    assert handlers == [signal.SIG_DFL, signal.default_int_handler]


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, ""),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "fakekube: standard output: No space left on device\n"),
        (TimeoutError("still at work"), 2, "fakekube: still at work\n"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), 2, "fakekube: x: No space left on device\n"),
    ],
)
def test_what_ends_a_command_is_at_most_one_line(
    error: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_options: object) -> int:
        raise error

    monkeypatch.setitem(cli._COMMANDS, "export", fail)
    assert main(["export"]) == code
    assert capsys.readouterr().err == words


@pytest.mark.parametrize("place", ["fifo", "folder", "folder/missing/ready"])
def test_a_ready_file_never_replaces_what_is_no_file(place: str, tmp_path: Path) -> None:
    """As a device would be, whatever an administrator may do."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    path = tmp_path / place
    if place != "fifo":
        with pytest.raises(UsageError, match=str(path)), cli._ready_file(path, "http://there"):
            pass
        return
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with cli._ready_file(path, "http://there"):
        assert os.read(reader, 100) == b"http://there\n"
    os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


def _kubeconfig(**members: Any) -> str:
    """A kubeconfig with one of each, and other members."""
    given: dict[str, Any] = {"server": "http://127.0.0.1:1", "cluster": "c", "user": {}, "contexts": None, **members}
    contexts = given["contexts"] or [{"name": "x", "context": {"cluster": given["cluster"], "user": "u"}}]
    clusters = [{"name": "c", "cluster": {"server": given["server"]}}]
    return json.dumps(
        {"contexts": contexts, "clusters": clusters, "users": [{"name": "u", "user": given["user"]}], "current-context": "x"}
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_kubeconfig(contexts=[None]), "the kubeconfig has no context 'x'"),
        (_kubeconfig(contexts="x"), "the kubeconfig has no context 'x'"),
        (_kubeconfig(contexts=[{"name": "x", "context": []}]), "the kubeconfig has no cluster ''"),
        (_kubeconfig(contexts=[{"name": "x", "context": "y"}]), "the context 'x' of the kubeconfig is not an object"),
        (_kubeconfig(cluster=["c"]), "the context 'x' of the kubeconfig has cluster ['c'], which is not a string"),
        (_kubeconfig(server="http://[::1"), "the server of the kubeconfig is 'http://[::1': Invalid IPv6 URL"),
        (_kubeconfig(server="http://a:99999"), "the server of the kubeconfig is 'http://a:99999': Port out of range 0-65535"),
        (_kubeconfig(user={"token": 5}), "the user 'u' of the kubeconfig has token 5, which is not a string"),
        (_kubeconfig(user={"tokenFile": "missing"}), "the token of the kubeconfig cannot be read: [Errno 2] No such file"),
    ],
)
@pytest.mark.parametrize("command", ["export", "record"])
def test_a_malformed_kubeconfig_is_a_one_line_error_with_code_2(
    command: str, text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    assert main([command, "--kubeconfig", str(path)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_full_disk_is_a_one_line_error_with_code_2() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        found = subprocess.run([*COMMAND, "scenario", "list"], check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (found.returncode, found.stderr) == (2, "fakekube: standard output: No space left on device\n")


def test_threads_of_a_served_cluster_may_look_before_they_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(busy_poll, "allow", lambda: done.append("allow"))
    monkeypatch.setattr(cli, "collect_seldom", lambda: done.append("collect_seldom"))  # not in the process of the tests
    monkeypatch.setattr("fakekube.cli.logs.log_to_stderr", lambda: done.append("log_to_stderr"))
    with cli._cluster(parse(["serve", "--profile=apiserver", "--port=0"])):
        assert "allow" in done
