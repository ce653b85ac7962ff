"""The image agnhost of Kubernetes' tests: one program with many subcommands.

Specified by: test/images/agnhost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Final

from fakekube.nodes.runtime.program import Program

__all__ = ["agnhost"]

_MODULES: Final[Mapping[str, str]] = {
    "basics": "entrypoint-tester pause dns-suffix dns-server-list etc-hosts nonewprivs logs-generator"
    " connect inclusterclient test-service-account-issuer-discovery mounttest",
    "netexec": "netexec",
    "web": "test-webserver serve-hostname liveness porter port-forward-tester grpc-health-checking tcp-reset guestbook",
    "nettest": "nettest",
    "webhook": "webhook crd-conversion-webhook",
}
_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names.split()}


async def agnhost(program: Program) -> int:
    """Runs the subcommand that the first argument names."""
    name = program.args[0] if program.args else ""
    if name in ("", "help", "--help", "-h"):
        await program.write("Usage:\n  app [command]\n\nAvailable Commands:\n" + "".join(f"  {one}\n" for one in sorted(_HOMES)))
        return 0
    if name == "--version":
        await program.write("app version 2.63.0\n")
        return 0
    if name not in _HOMES:
        await program.stderr.write(f'Error: unknown command "{name}" for "app"\nRun \'app --help\' for usage.\n'.encode())
        return 1
    commands: Mapping[str, Callable[[Program], Awaitable[int]]] = import_module(f"{__name__}.{_HOMES[name]}").COMMANDS
    return await commands[name](program)
