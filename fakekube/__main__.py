"""The command `fakekube`, and `python -m fakekube`."""

from __future__ import annotations

import signal
import sys

__all__ = ["main"]


def main() -> int:
    """Runs the command line and returns the exit code. Until the commands are imported, Ctrl-C ends the process at once."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # it would end an import with a traceback
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fakekube.cli import main as run

    signal.signal(signal.SIGINT, handler)
    return run()


if __name__ == "__main__":
    sys.exit(main())
