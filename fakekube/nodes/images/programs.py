"""Small programs of known images."""

from __future__ import annotations

import re
from typing import Final

from fakekube.nodes.images.agnhost.flags import flags
from fakekube.nodes.images.servers import Answer, Request, listen_http
from fakekube.nodes.runtime.program import Program
from fakekube.nodes.runtime.scheduling import until

_PI = re.compile(r"bpi\((\d+)\)")


async def wait(program: Program) -> int:
    """Waits until it is killed."""
    code: int = await until(lambda: None)
    return code


async def nonewprivs(program: Program) -> int:
    """Prints its effective user: root if the program may gain privileges, as its file has the set-user-id bit."""
    security = program.host.spec.get("securityContext") or {}
    uid = program.host.uid if security.get("allowPrivilegeEscalation") is False else 0
    await program.write(f"Effective uid: {uid}\n")
    return 0


async def perl(program: Program) -> int:
    """Prints digits of π, which is what the Job of Kubernetes' documentation asks for; other scripts do nothing."""
    found = _PI.search(" ".join(program.args))
    if found is not None:
        await program.write(f"{_pi(min(int(found[1]), 10_000))}\n")
    return 0


def _pi(digits: int) -> str:
    """Returns π with so many digits (Machin's formula)."""
    one: int = 10 ** (digits + 10)

    def arctan(inverse: int) -> int:
        term = total = one // inverse
        number, sign = 3, -1
        while term:
            term //= inverse * inverse
            total += sign * (term // number)
            number, sign = number + 2, -sign
        return total

    text = str((4 * (4 * arctan(5) - arctan(239))) // 10**10)
    return f"{text[0]}.{text[1:digits]}"


#: Path → (argument of the amount, resource of the container, unit).
_CONSUMED: Final = {"/ConsumeCPU": ("millicores", "cpu", 1), "/ConsumeMem": ("megabytes", "memory", 1024 * 1024)}


async def resource_consumer(program: Program) -> int:
    """Serves /ConsumeCPU and /ConsumeMem."""
    given, _ = flags(program, {"port": "8080"})

    def handle(request: Request) -> Answer:
        if request.method != "POST":
            return Answer("Bad request. Not a POST request\n", 400)
        if request.path not in _CONSUMED:
            return Answer("unknown function\n", 404)
        name, resource, unit = _CONSUMED[request.path]
        try:
            amount, seconds = int(request.form[name]), float(request.form["durationSec"])
        except KeyError:
            return Answer("not given query\n", 400)
        except ValueError:
            return Answer("incorrect function argument\n", 400)
        program.host.use(resource, amount * unit, seconds)
        return Answer(f"{request.path[1:]}\n{amount} {name}\n{seconds:g} durationSec\n")

    with listen_http(program, int(given["port"]), handle):
        return await wait(program)
