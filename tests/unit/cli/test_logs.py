"""The package is quiet; the command line writes its warnings and errors to stderr."""

from __future__ import annotations

import subprocess
import sys

WARN = "import logging; logging.getLogger('fakekube.net.connection').warning('a client %s', 'left')"


def stderr_of(program: str) -> str:
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return run.stderr


def test_the_package_is_quiet_without_a_configuration() -> None:
    assert stderr_of(f"import fakekube.cluster; {WARN}") == ""


def test_a_configuration_of_the_root_logger_shows_messages() -> None:
    program = f"import logging, fakekube.cluster; logging.basicConfig(format='%(name)s: %(message)s'); {WARN}"
    assert stderr_of(program) == "fakekube.net.connection: a client left\n"


def test_the_command_line_writes_warnings_to_stderr() -> None:
    program = f"import fakekube.cluster; from fakekube.cli.logs import log_to_stderr; log_to_stderr(); {WARN}"
    assert stderr_of(program) == "fakekube: warning: a client left (fakekube.net.connection)\n"
