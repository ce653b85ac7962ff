"""Subcommands of agnhost without a network: what they print is what tests look at."""

from __future__ import annotations

import random
from typing import Final

from fakekube.nodes.images.agnhost.flags import duration, flags
from fakekube.nodes.images.programs import nonewprivs, wait
from fakekube.nodes.runtime.program import Command, Program, Usage
from fakekube.nodes.runtime.scheduling import SIGINT, Killed, sleep


async def _entrypoint_tester(program: Program) -> int:
    await program.write(f"[{' '.join([program.argv0, *program.args])}]\n")
    return 0


async def _pause(program: Program) -> int:
    await program.write("Paused\nSignals registered\n")
    try:
        return await wait(program)
    except Killed as killed:
        return 1 if killed.signal == SIGINT else 2


def _words(program: Program, keyword: str) -> list[str]:
    for line in program.files.read("/etc/resolv.conf").decode().split("\n"):
        if line.startswith(keyword):
            return line.split(" ")[1:]
    raise Usage("Could not find DNS search list!", 2)


async def _dns_suffix(program: Program) -> int:
    await program.write(",".join(_words(program, "search")) + "\n")
    return 0


async def _dns_server_list(program: Program) -> int:
    await program.write(",".join(_words(program, "nameserver")) + "\n")
    return 0


async def _etc_hosts(program: Program) -> int:
    await program.write(program.files.read("/etc/hosts") + b"\n")
    return 0


async def _logs_generator(program: Program) -> int:
    given, _ = flags(program, {"log-lines-total": "0", "run-duration": "0"}, {"t": "log-lines-total", "d": "run-duration"})
    total, seconds = int(given["log-lines-total"]), duration(given["run-duration"])
    if total <= 0 or seconds <= 0:
        raise Usage(f"Invalid total number of lines: {total}" if total <= 0 else f"Invalid duration: {seconds:g}s", 255)
    chosen = random.Random(program.host.hostname)
    for number in range(total):
        now = program.task.scheduler.now()
        head = f"I{now:%m%d %H:%M:%S.%f}       1 logs_generator.go:76]"
        name = "".join(chosen.choices("bcdfghjklmnpqrstvwxz2456789", k=chosen.randrange(3, 5)))
        namespace, method = chosen.choice(("kube-system", "default", "ns")), chosen.choice(("GET", "POST", "PUT"))
        line = f"{head} {number} {method} /api/v1/namespaces/{namespace}/pods/{name} {chosen.randrange(200, 600)}\n"
        await program.stderr.write(line.encode())
        await sleep(seconds / total)
    return 0


COMMANDS: Final[dict[str, Command]] = {
    "entrypoint-tester": _entrypoint_tester,
    "pause": _pause,
    "dns-suffix": _dns_suffix,
    "dns-server-list": _dns_server_list,
    "etc-hosts": _etc_hosts,
    "nonewprivs": nonewprivs,
    "logs-generator": _logs_generator,
}
