"""`agnhost connect`: tries a connection, and names the kind of failure."""

from __future__ import annotations

import errno
from typing import Final

from fakekube.nodes.images.agnhost.flags import flags
from fakekube.nodes.runtime.network import NoSuchHost
from fakekube.nodes.runtime.program import Command, Program


async def _connect(program: Program) -> int:
    given, operands = flags(program, {"timeout": "0", "protocol": "tcp", "udp-data": "hostname", "sctp-data": "hostname"})
    host, _, port = (operands[0] if operands else "").rpartition(":")
    if not port.isdigit():
        return await _fail(program, f"UNKNOWN: address {operands[0] if operands else ''}: missing port in address")
    network, protocol = program.host.network, given["protocol"] or "tcp"
    try:
        if protocol == "udp":
            if not network.send(host.strip("[]"), int(port), given["udp-data"].encode() + b"\n"):
                return await _fail(program, "TIMEOUT: read udp: i/o timeout")
        elif protocol == "tcp":
            connection = network.connect(host.strip("[]"), int(port))
            connection.from_client.close()
            connection.to_client.abandon()
        else:
            return await _fail(program, "OTHER: protocol not supported")
    except NoSuchHost:
        return await _fail(program, f"DNS: lookup {host}: no such host")
    except TimeoutError:
        return await _fail(program, "TIMEOUT")
    except OSError as error:
        kind = "REFUSED" if error.errno == errno.ECONNREFUSED else f"OTHER: {error.strerror}"
        return await _fail(program, "TIMEOUT" if error.errno == errno.ETIMEDOUT else kind)
    return 0


async def _fail(program: Program, text: str) -> int:
    await program.stderr.write(f"{text}\n".encode())
    return 1


COMMANDS: Final[dict[str, Command]] = {"connect": _connect}
