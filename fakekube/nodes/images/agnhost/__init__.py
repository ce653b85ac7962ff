"""The image agnhost of Kubernetes' tests: one program with many subcommands.

Specified by: test/images/agnhost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from fakekube.nodes.runtime.program import Program

__all__ = ["agnhost"]

_Commands = Mapping[str, Callable[[Program], Awaitable[int]]]


def _load_basics() -> _Commands:
    from fakekube.nodes.images.agnhost.basics import COMMANDS

    return COMMANDS


def _load_netexec() -> _Commands:
    from fakekube.nodes.images.agnhost.netexec import COMMANDS

    return COMMANDS


def _load_web() -> _Commands:
    from fakekube.nodes.images.agnhost.web import COMMANDS

    return COMMANDS


def _load_nettest() -> _Commands:
    from fakekube.nodes.images.agnhost.nettest import COMMANDS

    return COMMANDS


def _load_webhook() -> _Commands:
    from fakekube.nodes.images.agnhost.webhook import COMMANDS

    return COMMANDS


def _load_mtls() -> _Commands:
    from fakekube.nodes.images.agnhost.mtls import COMMANDS

    return COMMANDS


def _load_resource_consumer_controller() -> _Commands:
    from fakekube.nodes.images.agnhost.resource_consumer_controller import COMMANDS

    return COMMANDS


_NAMES: Final[Mapping[Callable[[], _Commands], str]] = {
    _load_basics: "entrypoint-tester pause dns-suffix dns-server-list etc-hosts nonewprivs logs-generator"
    " connect inclusterclient test-service-account-issuer-discovery mounttest",
    _load_netexec: "netexec",
    _load_web: "test-webserver serve-hostname liveness porter port-forward-tester grpc-health-checking tcp-reset guestbook",
    _load_nettest: "nettest",
    _load_mtls: "mtlsclient mtlsserver",
    _load_resource_consumer_controller: "resource-consumer-controller",
    _load_webhook: "webhook crd-conversion-webhook",
}
#: Subcommand → the function that imports its module.
_HOMES: Final = {name: load for load, names in _NAMES.items() for name in names.split()}


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
    return await _HOMES[name]()[name](program)
