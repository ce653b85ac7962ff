"""agnhost's resource-consumer-controller: spreads what is to be consumed over the pods of a Service.

Specified by: test/images/agnhost/resource-consumer-controller/controller.go, test/images/resource-consumer/common.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode

from fakekube.nodes.images.programs import ARGUMENT_INCORRECT, ARGUMENT_MISSING, NOT_POST, UNKNOWN_FUNCTION, flags, wait
from fakekube.nodes.images.servers import Answer, Request, fetch, listen_http
from fakekube.nodes.runtime.program import Command, Program

_FLAGS: Final = {
    "port": "8080",
    "consumer-port": "8080",
    "consumer-service-name": "resource-consumer",
    "consumer-service-namespace": "default",
}


#: The maximum number of equal requests to the consumers for one request to the controller.
_MAX_REQUESTS: Final = 1000


class _Kind(NamedTuple):
    """What one path of the controller distributes."""

    amount: str
    """The parameter with the whole amount."""
    size: str
    """The parameter with the amount of each request to a consumer."""
    sending: str
    """What the response says that the requests do, with their amount."""
    sent: str
    """What it says of each request that was answered."""
    names: tuple[str, ...] = ()
    """Further parameters, which are passed on."""


_KINDS: Final = {
    "/ConsumeCPU": _Kind("millicores", "requestSizeMillicores", "consume {} millicores", "Consumed {} millicores"),
    "/ConsumeMem": _Kind("megabytes", "requestSizeMegabytes", "consume {} MB", "Consumed {} megabytes"),
    "/BumpMetric": _Kind("delta", "requestSizeMetrics", "bump custom metric by {}", "Bumped metric by {}", ("metric",)),
}


async def _resource_consumer_controller(program: Program) -> int:
    given, _ = flags(program, _FLAGS)
    host = f"{given['consumer-service-name']}.{given['consumer-service-namespace']}.svc.cluster.local"
    consumers = f"http://{host}:{given['consumer-port']}"

    def handle(request: Request) -> Answer:
        if request.method != "POST":
            return NOT_POST
        kind = _KINDS.get(request.path)
        return UNKNOWN_FUNCTION if kind is None else _distribute(program, consumers + request.path, kind, request.form)

    with listen_http(program, int(given["port"]), handle):
        return await wait(program)


def _distribute(program: Program, url: str, kind: _Kind, form: Mapping[str, str]) -> Answer:
    """Sends requests to the consumers, one after the other, and returns the response about them."""
    if not all(form.get(name) for name in (kind.amount, kind.size, "durationSec", *kind.names)):
        return ARGUMENT_MISSING
    try:
        amount, size, seconds = (int(form[name]) for name in (kind.amount, kind.size, "durationSec"))
    except ValueError:
        return ARGUMENT_INCORRECT
    if size <= 0:
        return ARGUMENT_INCORRECT
    count, rest = divmod(amount, size)
    each, one = kind.sending.format(size), kind.sending.format(rest)
    lines = [f"RC manager: sending {count} requests to {each} each and 1 request to {one}"]
    common = {name: form[name] for name in kind.names}
    for part in [size] * min(count, _MAX_REQUESTS) + [rest] * (rest > 0):
        query = urlencode({**common, kind.amount: part, "durationSec": seconds})
        try:
            fetch(program, f"{url}?{query}", b"")
            lines.append(kind.sent.format(part))
        except OSError as error:
            lines.append(f"Failed to connect to consumer: {error}")
    return Answer("".join(f"{line}\n" for line in lines))


COMMANDS: Final[dict[str, Command]] = {"resource-consumer-controller": _resource_consumer_controller}
