"""Container images: their programs, entry point, ports and files; the images of a cluster, and those that every cluster knows.

A container whose image is known, and whose command is a program of the image or an applet of its shell, runs that program and
ends with it. A container of another image runs for ever, or succeeds at once if it is an init container or belongs to a Job; but
in a pod that is meant to end, a command that needs nothing of the image (`sh -c "sleep 5; exit 3"`) decides.
The module of a known image's programs is imported when a container first runs one of them.

Invariant: an image is immutable; one that the user sets takes precedence over a known one.

Specified by: the OCI image configuration (Entrypoint, Cmd, Env, User, WorkingDir); pkg/kubelet/images/image_manager.go
(EnsureImageExists); the Dockerfiles of busybox, alpine, nginx, httpd; test/images of Kubernetes (agnhost, nonewprivs, kitten …).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fakekube.base.objects import StoredObject
from fakekube.nodes.images.names import base_name, is_matched, names_of
from fakekube.nodes.plans import ContainerPlan, PodPlan

if TYPE_CHECKING:
    from fakekube.net.streaming.kubelet_api import Destination
    from fakekube.nodes.runtime.behaviour import Handler, PortHandler
    from fakekube.nodes.runtime.program import Command, Program


@dataclass(slots=True, frozen=True)
class Image:
    """A container image."""

    programs: Mapping[str, Handler | Command | Callable[..., Any]] = field(default_factory=dict)
    """Name or path → program: a function of a `Context`, or a coroutine of a `Program`."""
    serves: Mapping[int, Destination | PortHandler | None] = field(default_factory=dict)
    """Port → its server: a WSGI application, a function of two pipes, or host and port of this machine."""
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    """`UID` or `UID:GID`; root if it is empty."""
    working_directory: str = ""
    files: Mapping[str, bytes | str | Callable[[], str]] = field(default_factory=dict)
    """Path → content, or a function that returns it."""
    lacks: frozenset[str] = frozenset()
    """Applets that its shell does not have."""
    shell: bool = True
    """Whether it has a shell with its applets."""
    system: str = ""
    """The name of the system in /etc/os-release."""
    daemon: bool = False
    """Whether its entry point runs for ever and needs no process: it only serves ports."""
    complete: bool = False
    """Whether it has no other commands than `programs` and those of a base system: a container with another one cannot start."""

    def user_ids(self) -> tuple[int, int]:
        """Returns user and group of `user`."""
        user, _, group = self.user.partition(":")
        return int(user or 0), int(group or 0)

    def groups_of(self, uid: int) -> tuple[int, list[int]]:
        """Returns the group of a user, and its supplementary groups, in /etc/passwd and /etc/group of the image."""
        users = [line.split(":") for line in self._lines("/etc/passwd")]
        name, gid = next(((one[0], int(one[3])) for one in users if one[2] == str(uid)), ("", 0))
        groups = [line.split(":") for line in self._lines("/etc/group")] if name else []
        return gid, [int(one[2]) for one in groups if name in one[3].split(",")]

    def _lines(self, path: str) -> list[str]:
        content = self.files.get(path, "")
        return content.splitlines() if isinstance(content, str) else []

    def program(self, name: str) -> Any:
        """Returns the program with a name or path; None if it has none."""
        return self.programs.get(name) or self.programs.get(posixpath.basename(name))

    def argv(self, container: StoredObject) -> list[str]:
        """Returns the words of the main program of a container: its command and args, or those of the image."""
        command, args = list(container.get("command") or ()), list(container.get("args") or ())
        if command:
            return command + args
        return [*self.entrypoint, *(args or self.command)]

    def runs(self, container: StoredObject, *, completes: bool = False) -> bool:
        """Reports whether the main program of a container is known, so that it decides how the container ends.

        Args:
            container: an item of a pod's spec.
            completes: whether the container would succeed at once if its program were not known.
        """
        given = container.get("command") or container.get("args")
        argv = self.argv(container)
        if not argv:
            return False
        if not given and (self.daemon or not self.program(argv[0])):
            return self.daemon and (completes or _is_observed(container))
        return self.program(argv[0]) is not None or (self.shell and self._has_applet(argv[0]))

    def find_start_error(self, container: StoredObject) -> str:
        """Returns the error of the container runtime if the image lacks the main program of a container; "" if it may have it.

        Args:
            container: an item of a pod's spec.
        """
        if not self.complete or not (container.get("command") or container.get("args")) or self.runs(container):
            return ""
        from fakekube.nodes.images.missing_programs import is_base_command, start_error

        name = self.argv(container)[0]
        may_have = self.shell and is_base_command(name) and posixpath.basename(name) not in self.lacks
        return "" if may_have or "$(" in name or _may_be_mounted(name, container) else start_error(name)

    def _has_applet(self, name: str) -> bool:
        from fakekube.nodes.runtime.commands import APPLETS

        base = posixpath.basename(name)
        return base in APPLETS and base not in self.lacks


def _may_be_mounted(name: str, container: StoredObject) -> bool:
    """Reports whether a program may be in a volume of its container."""
    path = posixpath.normpath(posixpath.join(container.get("workingDir") or "/", name))
    mounts = [posixpath.join(one["mountPath"].rstrip("/"), "") for one in container.get("volumeMounts") or ()]
    searched = "/" not in name and any(one["name"] == "PATH" for one in container.get("env") or ())
    return searched or ("/" in name and any(f"{path}/".startswith(mount) for mount in mounts))


def _is_observed(container: StoredObject) -> bool:
    """Reports whether something asks a container that runs for ever: a probe or a hook."""
    return any(container.get(one) for one in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"))


# --- The programs of known images, whose modules are imported when they first run ------------------------------------


async def _wait(program: Program) -> int:
    from fakekube.nodes.images.programs import wait

    return await wait(program)


async def _nginx(program: Program) -> int:
    from fakekube.nodes.images.programs import nginx

    return await nginx(program)


async def _nonewprivs(program: Program) -> int:
    from fakekube.nodes.images.programs import nonewprivs

    return await nonewprivs(program)


async def _perl(program: Program) -> int:
    from fakekube.nodes.images.programs import perl

    return await perl(program)


async def _curl(program: Program) -> int:
    from fakekube.nodes.images.programs import curl_entrypoint

    return await curl_entrypoint(program)


async def _resource_consumer(program: Program) -> int:
    from fakekube.nodes.images.programs import resource_consumer

    return await resource_consumer(program)


async def _hpa_example(program: Program) -> int:
    from fakekube.nodes.images.programs import hpa_example

    return await hpa_example(program)


async def _agnhost(program: Program) -> int:
    from fakekube.nodes.images.agnhost import agnhost

    return await agnhost(program)


async def _sample_apiserver(program: Program) -> int:
    from fakekube.nodes.images.sample_apiserver import sample_apiserver

    return await sample_apiserver(program)


async def _etcd(program: Program) -> int:
    from fakekube.nodes.images.sample_apiserver import etcd

    return await etcd(program)


#: The users and groups of agnhost.
_USERS: Final = "root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n"
_GROUPS: Final = "root:x:0:root\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"
_ALPINE: Final = "Alpine Linux"
_NOT_IN_BUSYBOX: Final = frozenset({"bash", "dash", "curl", "dig"})
_NOT_IN_ALPINE: Final = frozenset({"bash", "dash", "dig"})


def _certificate() -> str:
    from fakekube.net.certificates import credentials

    return credentials("localhost").server_certificate


def _key() -> str:
    from fakekube.net.certificates import credentials

    return credentials("localhost").server_key


def _web_server(name: str, program: Command) -> Image:
    """Returns an image that serves ports and needs no process."""
    return Image(programs={name: program, "/docker-entrypoint.sh": _wait}, entrypoint=(name,), daemon=True, complete=True)


def _picture(name: str) -> Image:
    """Returns an image of the update demo: agnhost's web server with the name of a picture."""
    return Image(
        programs={"/agnhost": _agnhost},
        entrypoint=("/agnhost", "test-webserver"),
        files={"/data.json": f'{{"image":"{name}.jpg"}}\n'},
        system=_ALPINE,
    )


_IMAGES: Final[Mapping[str, Image]] = {
    "busybox": Image(command=("sh",), lacks=_NOT_IN_BUSYBOX, complete=True),
    "alpine": Image(command=("/bin/sh",), system=_ALPINE, lacks=_NOT_IN_ALPINE, complete=True),
    "bash": Image(command=("bash",), complete=True),
    "debian": Image(command=("bash",), complete=True),
    "ubuntu": Image(command=("/bin/bash",), complete=True),
    "curl": Image(
        programs={"/entrypoint.sh": _curl},
        entrypoint=("/entrypoint.sh",),
        command=("curl",),
        user="100:101",
        system=_ALPINE,
        lacks=_NOT_IN_ALPINE,
        complete=True,
    ),
    "netshoot": Image(command=("bash",), system=_ALPINE),
    "perl": Image(programs={"perl": _perl}, command=("perl", "-de0")),
    "nginx": _web_server("nginx", _nginx),
    "httpd": _web_server("httpd-foreground", _wait),
    "pause": Image(programs={"/pause": _wait}, entrypoint=("/pause",), shell=False, daemon=True, complete=True),
    "agnhost": Image(
        programs={"/agnhost": _agnhost, "/agnhost-2": _agnhost},
        entrypoint=("/agnhost",),
        command=("pause",),
        files={
            "/uploads/.keep": b"",
            "/localhost.crt": _certificate,
            "/localhost.key": _key,
            "/etc/passwd": _USERS,
            "/etc/group": _GROUPS,
        },
        system=_ALPINE,
        complete=True,
    ),
    "kitten": _picture("kitten"),
    "nautilus": _picture("nautilus"),
    "nonewprivs": Image(programs={"/nnp": _nonewprivs}, entrypoint=("/nnp",), user="1000", shell=False),
    "nonroot": Image(programs={"/nnp": _nonewprivs}, entrypoint=("/nnp",), user="1234", system=_ALPINE, lacks=_NOT_IN_ALPINE),
    "glibc-dns-testing": Image(command=("bash",)),
    "jessie-dnsutils": Image(command=("bash",)),
    "sample-apiserver": Image(programs={"/sample-apiserver": _sample_apiserver}, entrypoint=("/sample-apiserver",), shell=False),
    "etcd": Image(programs={"/usr/local/bin/etcd": _etcd}, command=("/usr/local/bin/etcd",), shell=False),
    "regression-issue-74839": Image(
        programs={"/regression-issue-74839": _wait}, entrypoint=("/regression-issue-74839",), shell=False
    ),
    "hpa-example": Image(programs={"apache2-foreground": _hpa_example}, command=("apache2-foreground",)),
    "resource-consumer": Image(programs={"/consumer": _resource_consumer}, entrypoint=("/consumer",), shell=False),
}


_SHELLS: Final = frozenset({"sh", "ash", "bash", "dash"})
#: The options of a shell, of which the last is followed by the program.
_SCRIPT_FLAG: Final = re.compile("-[eluvx]*c")
#: What is assumed of an image that is not known: it has a shell, and no entry point.
_UNKNOWN: Final = Image()


@lru_cache(256)
def _needs_no_image(argv: tuple[str, ...]) -> bool:
    """Reports whether a command does the same in every image."""
    from fakekube.nodes.runtime.shell.parser import ShellSyntaxError, parse
    from fakekube.nodes.runtime.shell.syntax import is_independent, needs_image

    if len(argv) < 3 or argv[0].rpartition("/")[2] not in _SHELLS or not _SCRIPT_FLAG.fullmatch(argv[1]):
        return is_independent(argv) and _UNKNOWN.runs({"command": argv})
    try:
        return not needs_image(parse(argv[2]))
    except ShellSyntaxError:
        return True


def find_known(image: str) -> Image | None:
    """Returns the image with this name that every cluster knows; None if there is none."""
    return _IMAGES.get(base_name(image))


#: Why an image that does not exist cannot be pulled.
NOT_FOUND: Final = "failed to resolve reference: not found"


class Images(MutableMapping[str, Image]):
    """The images of a cluster: `cluster.images["ghcr.io/me/app"] = Image(…)`.

    A name is that of an image with or without its tag, or its last part. Names that are not set are those of `known`.

    Args:
        changed: called after each change.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._own: dict[str, Image] = {}
        self.missing: list[str] = []
        """Patterns of names of images that do not exist, with `*` and `?`."""

    def __setitem__(self, name: str, image: Image) -> None:
        self._own[name] = image
        self._changed()

    def __delitem__(self, name: str) -> None:
        del self._own[name]
        self._changed()

    def __getitem__(self, name: str) -> Image:
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._own))

    def __len__(self) -> int:
        return len(self._own)

    def find(self, image: str) -> Image | None:
        """Returns the image with this name; None if it is not known."""
        if self._own:
            for name in names_of(image):
                if name in self._own:
                    return self._own[name]
        return find_known(image)

    def runs(self, container: StoredObject, *, completes: bool = False, ends: bool = False) -> bool:
        """Reports whether the main program of a container is known, so that it decides how the container ends.

        In an unknown image it is a program of the shell with input, or, if `ends`, one that needs nothing of the image.

        Args:
            container: an item of a pod's spec.
            completes: see `Image.runs`.
            ends: whether the restart policy of the pod says that it ends.
        """
        found = self.find(container.get("image") or "")
        if found is not None:
            return found.runs(container, completes=completes)
        if container.get("stdin"):
            return _UNKNOWN.runs(container)
        return ends and _needs_no_image((*(container.get("command") or ()), *(container.get("args") or ())))

    def plan_of_failures(self, pod: StoredObject, is_told: Callable[[StoredObject], bool] | None = None) -> PodPlan | None:
        """Returns the plan of a pod of whose images some cannot be pulled, or lack the program; None if all containers start.

        Args:
            pod: the pod.
            is_told: reports whether a rule says how a container behaves, whatever its image has; None if there are no rules.
        """
        plans: dict[str, ContainerPlan] = {}
        for kind in ("initContainers", "containers"):
            for one in pod["spec"].get(kind) or ():
                if self.is_missing(one.get("image") or ""):
                    plans[one["name"]] = ContainerPlan(pull_error=NOT_FOUND)
                elif (error := self.find_start_error(one)) and (is_told is None or not is_told(one)):
                    plans[one["name"]] = ContainerPlan(start_error=error)
        return PodPlan(containers=plans) if plans else None

    def find_start_error(self, container: StoredObject) -> str:
        """See `Image.find_start_error`; "" if the image is not known."""
        image = self.find(container.get("image") or "")
        return image.find_start_error(container) if image is not None else ""

    def is_missing(self, image: str) -> bool:
        """Reports whether an image cannot be pulled: its registry is below `invalid.`, or a pattern of `missing` matches."""
        registry = image.partition("/")[0]
        if "/" in image and (registry.startswith("invalid.") or registry.endswith(".invalid")):
            return True
        return any(is_matched(image, pattern) for pattern in self.missing)


#: The images of a cluster whose user has set none.
DEFAULT: Final = Images()
