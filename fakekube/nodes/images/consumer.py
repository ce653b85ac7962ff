"""The image resource-consumer: a server that is asked to use CPU and memory, and then uses them by the cluster's metrics."""

from __future__ import annotations

from typing import Final

from fakekube.nodes.images.agnhost.flags import flags
from fakekube.nodes.images.programs import wait
from fakekube.nodes.images.servers import Answer, Request, listen_http
from fakekube.nodes.runtime.program import Program

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
