"""The endpoints of the control API for images, and files with the same content (`serve --images FILE`).

    GET, POST images; DELETE images?name=NAME

    {"name": "ghcr.io/me/app", "entrypoint": ["app"], "command": [], "environment": {}, "user": "1000",
     "programs": {"app": {"stdout": "…", "stderr": "", "code": 0}}, "forever": false,
     "serves": {"8080": "127.0.0.1:9000"}, "files": {"/etc/app.yaml": "…"}}

A program writes its output and exits; with `forever` it then runs until it is killed. Ports are those of this machine.

Invariant: an image is not set if one of its fields is invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.cluster.control.members import BadMembers
from fakekube.nodes.images.image import Image

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.nodes.runtime.program import Program

Answer = tuple[int, Any]
Members = Mapping[str, Any]

FIELDS: Final = ("name", "programs", "serves", "entrypoint", "command", "environment", "files", "user", "forever")


def _program(answer: Any, *, forever: bool) -> Callable[[Program], Any]:
    """Returns a program that always writes the same output, and then exits with the same code or runs on."""
    if not isinstance(answer, dict) or answer.keys() - {"stdout", "stderr", "code"}:
        raise BadMembers('a program is {"stdout": string, "stderr": string, "code": number}')
    code, stdout, stderr = answer.get("code", 0), answer.get("stdout", ""), answer.get("stderr", "")
    if not isinstance(stdout, str) or not isinstance(stderr, str) or not isinstance(code, int) or not 0 <= code <= 255:
        raise BadMembers("stdout and stderr of a program are strings, code is a number from 0 to 255")

    async def run(program: Program) -> int:
        from fakekube.nodes.images.programs import wait

        await program.write(stdout)
        await program.stderr.write(stderr.encode())
        return await wait(program) if forever else int(code)

    return run


def _mapping_of(members: Members, name: str) -> Mapping[str, Any]:
    found = members.get(name, {})
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise BadMembers(f"{name} is an object")
    return found


def _words_of(members: Members, name: str) -> tuple[str, ...]:
    found = members.get(name, [])
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise BadMembers(f"{name} is a list of strings")
    return tuple(found)


def _texts_of(members: Members, name: str) -> dict[str, str]:
    found = _mapping_of(members, name)
    if not all(isinstance(value, str) for value in found.values()):
        raise BadMembers(f"the values of {name} are strings")
    return dict(found)


def image_of(members: Members) -> Image:
    """Returns the image that a body describes. Raises BadMembers."""
    unknown = sorted(members.keys() - set(FIELDS))
    if unknown:
        raise BadMembers(f"unknown member {unknown[0]!r}; known are {', '.join(sorted(FIELDS))}")
    serves: dict[int, tuple[str, int]] = {}
    for port, target in _mapping_of(members, "serves").items():
        host, colon, number = str(target).rpartition(":")
        if not (port.isdigit() and colon and number.isdigit()):
            raise BadMembers('serves is {"PORT": "HOST:PORT"}')
        serves[int(port)] = (host, int(number))
    forever, user = members.get("forever", False), members.get("user", "")
    if not isinstance(forever, bool) or not isinstance(user, str):
        raise BadMembers("forever is true or false, user is a string")
    programs = {name: _program(answer, forever=forever) for name, answer in _mapping_of(members, "programs").items()}
    return Image(
        programs=programs,
        serves=dict(serves),
        entrypoint=_words_of(members, "entrypoint") or tuple(programs)[:1],
        command=_words_of(members, "command"),
        environment=_texts_of(members, "environment"),
        files=dict(_texts_of(members, "files")),
        user=user,
    )


def list_images(cluster: Cluster, members: Members) -> Answer:
    """Returns the images that were set, by name."""
    return 200, {"items": [{"name": name, "programs": sorted(cluster.images[name].programs)} for name in cluster.images]}


def set_image(cluster: Cluster, members: Members) -> Answer:
    """Sets an image. Raises BadMembers."""
    name = members.get("name")
    if not isinstance(name, str) or not name:
        raise BadMembers("name is a string")
    image = image_of(members)
    cluster.images[name] = image
    return 201, {"name": name, "programs": sorted(image.programs)}


def delete_image(cluster: Cluster, members: Members) -> Answer:
    """Removes an image that was set. Raises LookupError."""
    name = members.get("name", "")
    if name not in list(cluster.images):
        raise LookupError(f"there is no image {name!r}")
    del cluster.images[name]
    return 200, {}
