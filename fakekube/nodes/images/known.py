"""The images that every cluster knows: shells, web servers, pause, and those of Kubernetes' own tests.

The module of an image's programs is imported when a container first runs one of them.

Specified by: the Dockerfiles of busybox, alpine, nginx, httpd; test/images of Kubernetes (agnhost, nonewprivs, kitten …).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from fakekube.nodes.images.image import Image

if TYPE_CHECKING:
    from fakekube.nodes.runtime.program import Command, Program


def _import_later(module: str, name: str) -> Command:
    """Returns the program with this name in a module of this package, which is imported when the program first runs."""

    async def run(program: Program) -> int:
        found: Callable[[Any], Awaitable[int]] = getattr(import_module(f"{__package__}.{module}"), name)
        return await found(program)

    return run


_WAIT: Final = _import_later("programs", "wait")
_AGNHOST: Final = _import_later("agnhost", "agnhost")
_NO_NEW_PRIVILEGES: Final = {"/nnp": _import_later("programs", "nonewprivs")}
_ALPINE: Final = "Alpine Linux"
_NOT_IN_BUSYBOX: Final = frozenset({"bash", "dash", "curl", "dig"})
_NOT_IN_ALPINE: Final = frozenset({"bash", "dash", "dig"})


def _certificate() -> str:
    from fakekube.net.certificates import credentials

    return credentials("localhost").server_certificate


def _key() -> str:
    from fakekube.net.certificates import credentials

    return credentials("localhost").server_key


def _web_server(name: str) -> Image:
    return Image(programs={name: _WAIT, "/docker-entrypoint.sh": _WAIT}, entrypoint=(name,), daemon=True)


def _picture(name: str) -> Image:
    """Returns an image of the update demo: agnhost's web server with the name of a picture."""
    return Image(
        programs={"/agnhost": _AGNHOST},
        entrypoint=("/agnhost", "test-webserver"),
        files={"/data.json": f'{{"image":"{name}.jpg"}}\n'},
        system=_ALPINE,
    )


_IMAGES: Final[Mapping[str, Image]] = {
    "busybox": Image(command=("sh",), lacks=_NOT_IN_BUSYBOX),
    "alpine": Image(command=("/bin/sh",), system=_ALPINE, lacks=_NOT_IN_ALPINE),
    "bash": Image(command=("bash",)),
    "debian": Image(command=("bash",)),
    "ubuntu": Image(command=("/bin/bash",)),
    "perl": Image(programs={"perl": _import_later("programs", "perl")}, command=("perl", "-de0")),
    "nginx": _web_server("nginx"),
    "httpd": _web_server("httpd-foreground"),
    "pause": Image(programs={"/pause": _WAIT}, entrypoint=("/pause",), shell=False, daemon=True),
    "agnhost": Image(
        programs={"/agnhost": _AGNHOST, "/agnhost-2": _AGNHOST},
        entrypoint=("/agnhost",),
        command=("pause",),
        files={"/uploads/.keep": b"", "/localhost.crt": _certificate, "/localhost.key": _key},
        system=_ALPINE,
    ),
    "kitten": _picture("kitten"),
    "nautilus": _picture("nautilus"),
    "nonewprivs": Image(
        programs={"/nnp": _import_later("programs", "nonewprivs")}, entrypoint=("/nnp",), user="1000", shell=False
    ),
    "nonroot": Image(programs=_NO_NEW_PRIVILEGES, entrypoint=("/nnp",), user="1234", shell=False),
    "glibc-dns-testing": Image(command=("bash",)),
    "jessie-dnsutils": Image(command=("bash",)),
    "regression-issue-74839": Image(
        programs={"/regression-issue-74839": _WAIT}, entrypoint=("/regression-issue-74839",), shell=False
    ),
    "resource-consumer": Image(
        programs={"/consumer": _import_later("programs", "resource_consumer")}, entrypoint=("/consumer",), shell=False
    ),
}


@cache
def find_known(image: str) -> Image | None:
    """Returns the find_known image with a name; None if there is none."""
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return _IMAGES.get(name)
