"""How long a control plane takes to start as envtest starts it, beside the real binaries; and what many starts leave behind.

    python -m tests.benchmarks.envtest_bench [--starts 20] [--oracle-command 'COMMAND --dir {dir} --port {port}']
    python -m tests.benchmarks.envtest_bench --assets DIR      # the folder of real binaries, as the other side
    python -m tests.benchmarks.envtest_bench --leaks 200

A start is everything from `etcd --help` to the answer of /readyz. A suite is so many starts, each with a definition that is
waited for, 20 custom resources and the stop. The two sides take turns. With `--leaks`, half of the pairs end by SIGTERM
and half by SIGKILL, eight at once in one folder of certificates; then the processes, sockets and files are counted.
Only the last part asserts something.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fakekube.cli.envtest.folder import write_folder
from tests.benchmarks.sides import Side, await_ready, free_port, theirs
from tests.benchmarks.wire import RequestFailed

TOKEN = "benchmark"
GROUP, PLURAL = "benchmark.example", "things"
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}

Start = Callable[[], AbstractContextManager[Side]]


@contextmanager
def pair(assets: Path, certificates: Path | None = None, number: int = signal.SIGTERM) -> Iterator[Side]:
    """Starts etcd and kube-apiserver as envtest does, and ends them with a signal."""
    with ExitStack() as stack:
        folder = certificates or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-"))
        tokens = folder / "tokens.csv"
        if not tokens.exists():
            tokens.write_text(f'{TOKEN},admin,1,"system:masters"\n', encoding="ascii")
        client, peer, port = free_port(), free_port(), free_port()
        begin = time.perf_counter()
        url = f"http://127.0.0.1:{client}"
        _help(assets / "etcd")
        etcd = [f"--listen-client-urls={url}", f"--advertise-client-urls={url}", f"--data-dir={data}"]
        processes = [_run(assets / "etcd", *etcd, f"--listen-peer-urls=http://127.0.0.1:{peer}", "--unsafe-no-fsync=true")]
        try:
            await_ready(url, TOKEN, processes[0], path="/health")
            _help(assets / "kube-apiserver")
            processes.append(_run(assets / "kube-apiserver", *_server_flags(url, port, folder, stack)))
            await_ready(f"https://127.0.0.1:{port}", TOKEN, processes[1])
            yield Side("ours", f"https://127.0.0.1:{port}", TOKEN, time.perf_counter() - begin, processes[1].pid)
        finally:
            for process in reversed(processes):
                os.killpg(process.pid, number)
                process.wait(30)


def _server_flags(etcd: str, port: int, folder: Path, stack: ExitStack) -> list[str]:
    from fakekube.net.certificates import authority

    keys = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
    issued = authority().issue_server("127.0.0.1")
    for name, text in {"sa.key": issued.key_pem, "sa.crt": issued.pem, "ca.crt": authority().pem}.items():
        (keys / name).write_text(text, encoding="ascii")
    return [
        "--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1", f"--cert-dir={folder}",
        f"--client-ca-file={keys}/ca.crt", "--disable-admission-plugins=ServiceAccount", f"--etcd-servers={etcd}",
        f"--secure-port={port}", f"--service-account-issuer=https://127.0.0.1:{port}/", f"--token-auth-file={folder}/tokens.csv",
        f"--service-account-key-file={keys}/sa.crt", f"--service-account-signing-key-file={keys}/sa.key",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]  # fmt: skip


def _help(binary: Path) -> None:
    subprocess.run([binary, "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _run(*command: Path | str) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


# ---------------------------------------------------------------- what is measured


def suite(start: Start) -> tuple[float, float]:
    """One part of a suite: returns seconds to ready, and seconds in all."""
    begin = time.perf_counter()
    with start() as side:
        _work(side)
    assert side.ready is not None
    return side.ready, time.perf_counter() - begin


def _work(side: Side) -> None:
    with side.connect() as connection:
        connection.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        path = f"/apis/{GROUP}/v1/namespaces/default/{PLURAL}"
        for number in range(20):
            thing = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": f"thing-{number}"}, "spec": {"n": number}}
            _patiently(partial(connection.request, "POST", path, thing))
        connection.request("GET", path)


def _patiently(call: Callable[[], Any]) -> None:
    """Calls until it works: a definition is served a little after it is stored."""
    end = time.perf_counter() + 30
    while time.perf_counter() < end:
        try:
            call()
            return
        except RequestFailed:
            time.sleep(0.1)  # as often as envtest asks for a new resource
    call()


def compare(starts: int, sides: dict[str, Start]) -> None:
    """Prints the medians of starts, the sums of suites, and the ratios of the first side to each other."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(starts):
        for name, start in sides.items():
            measured[name].append(suite(start))
    ready = {name: statistics.median(one for one, _ in found) for name, found in measured.items()}
    whole = {name: sum(one for _, one in found) for name, found in measured.items()}
    for name in sides:
        print(f"{name}: ready after {ready[name]:.3f} s (median), {starts} starts with their work {whole[name]:.2f} s")
    first, *others = sides
    for name in others:
        print(f"{first} / {name}: ready {ready[first] / ready[name]:.3f}, suite {whole[first] / whole[name]:.3f}")


# ---------------------------------------------------------------- what is left behind


def leaks(starts: int, assets: Path) -> None:
    """Starts so many pairs, ends them, and asserts that no process, socket or file of them is left."""
    with (
        tempfile.TemporaryDirectory(prefix="benchmark-") as shared,
        tempfile.TemporaryDirectory(prefix="benchmark-") as temporary,
    ):
        os.environ["TMPDIR"] = tempfile.tempdir = temporary
        signals = [signal.SIGTERM if number % 2 else signal.SIGKILL for number in range(starts)]

        def once(number: int) -> int:
            with pair(assets, Path(shared), number) as side:
                assert side.process is not None
                return side.process

        with ThreadPoolExecutor(8) as pool:
            processes = list(pool.map(once, signals))
        left = [number for number in processes if Path(f"/proc/{number}").exists()]
        left_files = sorted(str(path) for folder in (shared, temporary) for path in Path(folder).rglob("*"))
        expected = [f"{shared}/{name}" for name in ("apiserver.crt", "apiserver.key", "tokens.csv")]
        assert not left, left
        assert left_files == sorted(expected), left_files
        tempfile.tempdir = None
    print(f"{starts} pairs, half of them killed: no process, socket or file is left")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--oracle-command", metavar="COMMAND", help="starts the reference; {dir} and {port} are replaced")
    parser.add_argument("--token", default="admin-token", help="an administrator's token of the reference")
    parser.add_argument("--assets", type=Path, metavar="DIR", help="a folder of real binaries")
    parser.add_argument("--leaks", type=int, default=0, metavar="N", help="only look for what N starts leave behind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        assets = Path(folder)
        write_folder(assets, version="v1.36.3")
        with pair(assets):
            pass  # compiles
        if options.leaks:
            leaks(options.leaks, assets)
            return
        sides: dict[str, Start] = {"ours": partial(pair, assets)}
        if options.oracle_command:
            sides["theirs"] = partial(theirs, options.oracle_command, options.token)
        if options.assets:
            sides["binaries"] = partial(pair, options.assets)
        compare(options.starts, sides)


if __name__ == "__main__":
    sys.exit(main())
