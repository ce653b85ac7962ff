"""What programs of known images have in common: flags and durations of Go, their log; and small programs.

Flags are `--port=80`, `--port 80`, `--http`, `-t 5`.

Specified by: github.com/spf13/pflag; k8s.io/kubernetes/test/images (nonewprivs, resource-consumer).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fakekube.base.golang.strconv import TRUE_TEXTS
from fakekube.base.golang.timestamps import parse_duration
from fakekube.nodes.images.servers import Answer, Request, listen_http
from fakekube.nodes.runtime.commands import command
from fakekube.nodes.runtime.program import Program, Usage
from fakekube.nodes.runtime.scheduling import serve

#: The token of the pod's service account.
SERVICE_ACCOUNT_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"
#: Nanoseconds of a second.
_SECOND: Final = 1e9


def flags(
    program: Program, defaults: Mapping[str, str], short: Mapping[str, str] | None = None, *, first: int = 1
) -> tuple[dict[str, str], list[str]]:
    """Returns the flags of a subcommand, by name, and its operands.

    Args:
        program: the program.
        defaults: name → default; a flag whose default is `true` or `false` takes a value only after `=`.
        short: letter → name.
        first: the number of the argument from which on they stand; that of a subcommand comes before.

    Raises:
        Usage: a flag is unknown.
    """
    found, operands, rest = dict(defaults), list[str](), list(program.args[first:])
    while rest:
        word = rest.pop(0)
        if word == "--":
            return found, operands + rest
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = (short or {}).get(name, name)
        if name == "v":
            rest = rest if equals else rest[1:]
            continue
        if name in ("logtostderr", "alsologtostderr"):
            continue
        if name not in defaults:
            raise Usage(f"unknown flag: --{name}")
        if not equals:
            value = "true" if defaults[name] in ("true", "false") else _take_value(rest, name)
        found[name] = value
    return found, operands


def _take_value(rest: list[str], name: str) -> str:
    """Removes and returns the value of a flag. Raises Usage."""
    if not rest:
        raise Usage(f"expected argument for flag --{name}")
    return rest.pop(0)


def is_true(value: str) -> bool:
    """Parses a boolean flag (strconv.ParseBool); what is no boolean is false."""
    return value in TRUE_TEXTS


def duration(text: str) -> float:
    """Parses a duration of Go, and returns seconds; "" is 0. Raises ValueError."""
    return parse_duration(text or "0") / _SECOND


def log(program: Program, text: str) -> None:
    """Writes a line to the container's log, as Go's package log does."""
    program.host.write_log(f"{text}\n", "stderr")


#: The call of Perl's bignum for π with so many digits.
_PI: Final = re.compile(r"bpi\((\d+)\)")


async def wait(program: Program) -> int:
    """Waits until a signal stops it."""
    return await serve()


#: The version of nginx in an image whose tag is none.
_NGINX: Final = "1.29.3"
_TESTED: Final = (
    "nginx: the configuration file /etc/nginx/nginx.conf syntax is ok\n"
    "nginx: configuration file /etc/nginx/nginx.conf test is successful\n"
)


async def nginx(program: Program) -> int:
    """Runs until it is killed, as the server of the container's port 80; or does what -v, -V, -t, -T or -s asks for."""
    for number, word in enumerate(program.args):
        if word in ("-v", "-V"):
            await program.stderr.write(f"nginx version: nginx/{_version(program.host.spec, _NGINX)}\n".encode())
            return 0
        if word in ("-t", "-T"):
            await program.stderr.write(_TESTED.encode())
            return 0
        if word == "-s":
            return await _signal_nginx(program, "".join(program.args[number + 1 : number + 2]))
    return await wait(program)


async def _signal_nginx(program: Program, signal: str) -> int:
    """Lets the server stop; it has no other signals that change something here."""
    if signal in ("stop", "quit"):
        return await program.run_other(["kill", "1"], program)
    if signal not in ("reload", "reopen"):
        return await program.complain(f'invalid option: "-s {signal}"')
    now, pid = f"{program.task_time():%Y/%m/%d %H:%M:%S}", program.task.pid
    await program.stderr.write(f"{now} [notice] {pid}#{pid}: signal process started\n".encode())
    return 0


def _version(container: Mapping[str, Any], default: str) -> str:
    """Returns the version in the tag of a container's image, e.g. 1.27.0 of nginx:1.27.0-alpine."""
    found = re.search(r":(\d+(\.\d+)*)(-|$)", container.get("image") or "")
    return found[1] if found else default


async def nonewprivs(program: Program) -> int:
    """Prints its effective user: root if the program may gain privileges, as its file has the set-user-id bit."""
    security = program.host.spec.get("securityContext") or {}
    uid = program.host.uid if security.get("allowPrivilegeEscalation") is False else 0
    await program.write(f"Effective uid: {uid}\n")
    return 0


async def curl_entrypoint(program: Program) -> int:
    """Runs the program that the arguments name, or else curl with them."""
    words = program.args
    is_program = bool(words) and not words[0].startswith("-") and command(words[0].rpartition("/")[2]) is not None
    return await program.run_other(words if is_program else ["curl", *words], program)


async def perl(program: Program) -> int:
    """Prints digits of π, which is what the Job of Kubernetes' documentation asks for; other scripts do nothing."""
    found = _PI.search(" ".join(program.args))
    if found is not None:
        await program.write(f"{_print_pi(min(int(found[1]), 10_000))}\n")
    return 0


def _print_pi(digits: int) -> str:
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


#: The milliseconds of CPU time that a request to hpa-example needs, and the seconds over which they are spread in the metrics.
_REQUEST_CPU: Final = 50
_CPU_WINDOW: Final = 15


async def hpa_example(program: Program) -> int:
    """Serves port 80, and needs CPU time for each request, as the PHP page of the walkthrough of horizontal autoscaling does."""

    def handle(_request: Request) -> Answer:
        program.host.use("cpu", _REQUEST_CPU / _CPU_WINDOW, _CPU_WINDOW)
        return Answer("OK!", headers={"Content-Type": "text/html; charset=UTF-8"})

    with listen_http(program, 80, handle):
        return await wait(program)


#: Path → (argument of the amount, resource of the container, unit).
_CONSUMED: Final = {"/ConsumeCPU": ("millicores", "cpu", 1), "/ConsumeMem": ("megabytes", "memory", 1024 * 1024)}


#: What the servers of resource-consumer answer to requests that they refuse.
NOT_POST: Final = Answer("Bad request. Not a POST request\n", 400)
UNKNOWN_FUNCTION: Final = Answer("unknown function\n", 404)
ARGUMENT_MISSING: Final = Answer("not given function argument\n", 400)
ARGUMENT_INCORRECT: Final = Answer("incorrect function argument\n", 400)


async def resource_consumer(program: Program) -> int:
    """Serves /ConsumeCPU and /ConsumeMem."""
    given, _ = flags(program, {"port": "8080"}, first=0)

    def handle(request: Request) -> Answer:
        if request.method != "POST":
            return NOT_POST
        if request.path not in _CONSUMED:
            return UNKNOWN_FUNCTION
        name, resource, unit = _CONSUMED[request.path]
        try:
            amount, seconds = int(request.form[name]), float(request.form["durationSec"])
        except KeyError:
            return ARGUMENT_MISSING
        except ValueError:
            return ARGUMENT_INCORRECT
        program.host.use(resource, amount * unit, seconds)
        return Answer(f"{request.path[1:]}\n{amount} {name}\n{seconds:g} durationSec\n")

    with listen_http(program, int(given["port"]), handle):
        return await wait(program)
