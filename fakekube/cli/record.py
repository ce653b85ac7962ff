"""`fakekube record`: records the changes in another cluster, until a signal arrives or --duration has passed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fakekube.base.private_files import open_private
from fakekube.cli.arguments import UsageError
from fakekube.cli.process import setup_signal_handler
from fakekube.controllers.client import ApiError, UnknownResource
from fakekube.controllers.client.remote import KubeconfigError, RemoteClient
from fakekube.powers.recording import RemoteRecorder

if TYPE_CHECKING:
    from fakekube.cli.arguments import Options


def kubeconfig_to_read(options: Options) -> Path:
    """Returns the path of the kubeconfig: of --kubeconfig, else the first of KUBECONFIG, else ~/.kube/config."""
    return options.kubeconfig or Path(os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or "~/.kube/config").expanduser()


def record(options: Options) -> int:
    """Records the cluster of the kubeconfig; returns the exit code. Raises UsageError."""
    stop = setup_signal_handler()
    try:
        client = RemoteClient.of_kubeconfig(kubeconfig_to_read(options), options.context)
        with _output(options) as file:
            recorder = RemoteRecorder(client, file, kinds=options.kinds, namespace=options.namespace, redact=not options.secrets)
            print("recording; Ctrl-C ends it", file=sys.stderr, flush=True)
            stop.wait(options.duration)
            recorder.stop()
    except (KubeconfigError, ApiError, UnknownResource) as problem:
        raise UsageError(str(problem)) from None
    except OSError as error:
        raise UsageError(f"{options.output or 'standard output'}: {error.strerror}") from None
    print(f"{recorder.changes} changes were recorded", file=sys.stderr)
    return 0


@contextmanager
def _output(options: Options) -> Iterator[IO[bytes]]:
    """Yields the file of --output, by default the standard output."""
    if options.output is None:
        yield sys.stdout.buffer
        return
    with open_private(options.output) as file:
        yield file
