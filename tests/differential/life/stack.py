"""Starts the reference of living clusters: API server, controller manager and scheduler, with kwok as the kubelets.

    python -m tests.differential.life.stack --oracle ORACLE --kwok KWOK --dir DIR --port 22000

ORACLE is built by `python -m tests.reference build`, KWOK by `go install sigs.k8s.io/kwok/cmd/kwok@v0.8.0`. It uses the given
port and the two after it, prints its URL when it is ready, and ends with all its processes on Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.differential.certificates import Authority, write
from tests.differential.life.cluster import BareClient
from tests.differential.life.manifests import SILENT
from tests.differential.transports import HttpTransport

#: What kwok does with nodes and pods, of its folder kustomize/stage.
STAGES = (
    "node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml", "pod/fast/pod-delete.yaml",
)  # fmt: skip
KWOK_STAGES = "sigs.k8s.io/kwok@v0.8.0/kustomize/stage"
CERTIFICATE = "-----BEGIN CERTIFICATE-----"


class Stack:
    """The processes, each with a log in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *command: str) -> None:
        """Start a process."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(["nice", "-n", "5", *command], stdout=log, stderr=log, start_new_session=True)
        self.processes.append(process)

    def ready(self, port: int, path: str) -> None:
        """Wait until a port answers. Raises SystemExit after a minute."""
        client = BareClient(HttpTransport(f"https://admin-token@127.0.0.1:{port}"))
        for _ in range(300):
            if client.get(path).status == 200:
                return
            time.sleep(0.2)
        raise SystemExit(f"port {port} does not become ready, see {self.folder}")

    def alive(self) -> bool:
        """All processes run."""
        return all(process.poll() is None for process in self.processes)

    def stop(self) -> None:
        """End all processes, the last one first."""
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def start(stack: Stack, options: argparse.Namespace) -> None:
    """Start the processes in their order."""
    folder, port = stack.folder, options.port
    config = f"--kubeconfig={folder}/kubeconfig"
    stack.start("apiserver", options.oracle, "serve", "--profile", "cluster", "--dir", str(folder), "--port", str(port))
    stack.ready(port, "/readyz")
    chain = (folder / "certs" / "apiserver.crt").read_text()
    (folder / "root-ca.crt").write_text(CERTIFICATE + chain.split(CERTIFICATE)[-1])
    signer = Authority("signer")
    write(folder, "signer", signer.certificate, signer.key)
    stack.start(
        "controller-manager", options.oracle, "kube-controller-manager", config, "--leader-elect=false", "--controllers=*",
        f"--service-account-private-key-file={folder}/service-account.key", f"--root-ca-file={folder}/root-ca.crt",
        f"--cluster-signing-cert-file={folder}/signer.crt", f"--cluster-signing-key-file={folder}/signer.key",
        "--bind-address=127.0.0.1", f"--secure-port={port + 1}", f"--cert-dir={folder}/controller-manager",
        "--kube-api-qps=400", "--kube-api-burst=800",
        # shortened, so that a scenario need not wait: nothing but when things happen depends on them
        "--horizontal-pod-autoscaler-sync-period=2s", "--pvclaimbinder-sync-period=1s", "--node-monitor-period=1s",
    )  # fmt: skip
    stack.start(
        "scheduler", options.oracle, "kube-scheduler", config, "--leader-elect=false", "--bind-address=127.0.0.1",
        f"--secure-port={port + 2}", f"--cert-dir={folder}/scheduler", "--kube-api-qps=400", "--kube-api-burst=800",
    )  # fmt: skip
    stages = Path(options.stages) if options.stages else _module_cache() / KWOK_STAGES
    stack.start(
        "kwok", options.kwok, config, f"--manage-nodes-with-label-selector=!{SILENT}", "--cidr=10.64.0.1/16",
        "--node-ip=10.0.0.1", "--node-lease-duration-seconds=40", *(f"--config={stages / stage}" for stage in STAGES),
    )  # fmt: skip
    stack.ready(port + 1, "/healthz")
    stack.ready(port + 2, "/healthz")


def _module_cache() -> Path:
    found = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip())


def main() -> int:
    """The command; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--kwok", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--port", type=int, default=22000)
    parser.add_argument("--stages", default="", help="kwok's kustomize/stage; by default that of the Go module cache")
    options = parser.parse_args()
    folder = Path(options.dir).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    stack = Stack(folder)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        try:
            start(stack, options)
            print(f"ready: https://admin-token@127.0.0.1:{options.port}", flush=True)
            while stack.alive():
                time.sleep(0.5)
            print(f"a process ended, see {folder}", flush=True)
            return 1
        finally:
            stack.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
