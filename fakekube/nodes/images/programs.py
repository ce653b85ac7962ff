"""Small programs of known images."""

from __future__ import annotations

import re

from fakekube.nodes.runtime.program import Program
from fakekube.nodes.runtime.scheduling import until

_PI = re.compile(r"bpi\((\d+)\)")


async def wait(program: Program) -> int:
    """Waits until it is killed."""
    code: int = await until(_never)
    return code


def _never() -> int | None:
    return None


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
