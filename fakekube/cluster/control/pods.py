"""The endpoints of the control API for pods, images, and Services whose servers run outside of the cluster.

    GET, POST, DELETE pods/rules; DELETE pods/rules/ID
    GET, POST pods/NAMESPACE/NAME/log
    POST pods/NAMESPACE/NAME/exec
    GET, POST images; DELETE images?name=NAME
    GET    services/forward
    POST   services/forward      {"service": "default/webhook", "port": 9443, "host": "127.0.0.1"}
    DELETE services/forward?service=default/webhook
    POST   services/certificate  {"service": "default/webhook"}

A rule is {"on": {"labels": …, "namespace": …, "name": …, "node": …, "container": …, "image": …},
"do": {METHOD: {argument: value}}}.
The methods are those of `cluster.pods.on(…)`; where they take functions, there are fixed responses. An image is

    {"name": "ghcr.io/me/app", "entrypoint": ["app"], "command": [], "environment": {}, "user": "1000",
     "programs": {"app": {"stdout": "…", "stderr": "", "code": 0}}, "forever": false,
     "serves": {"8080": "127.0.0.1:9000"}, "files": {"/etc/app.yaml": "…"}}

A program writes its output and exits; with `forever` it then runs until it is killed. Ports are those of this machine. Files with
the same content are those of `serve --rules FILE` and `serve --images FILE`. The paths of Services offer what `cluster.services`
has in Python (`cluster.testing.services`).

Invariants: a rule or an image is not set if one of its members is invalid. Only Services in the form `namespace/name` are
forwarded, only to TCP ports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.selectors import SelectorError
from fakekube.apiserver.endpoints.negotiation import PLAIN_TEXT
from fakekube.cluster.control.members import Answer, BadMembers, Members
from fakekube.cluster.control.powers import Raw
from fakekube.net.streaming.kubelet_api import KubeletError
from fakekube.nodes.images.image import Image

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.nodes.rules import PodRule
    from fakekube.nodes.runtime.behaviour import Context
    from fakekube.nodes.runtime.program import Program


_SELECTION: Final = frozenset({"labels", "namespace", "name", "node", "container", "image"})
_PLAIN: Final = frozenset(
    {
        "run",
        "exits",
        "oom",
        "unhealthy",
        "forever",
        "starts",
        "ready",
        "never_ready",
        "terminates",
        "pulls",
        "image_pull_back_off",
        "fails",
        "evicted",
        "logs",
        "uses",
        "refuse",
        "runs_command",
    }
)
"""Methods of `PodRule` whose arguments are JSON values."""


def _answer_with(answer: Any) -> Callable[[Context], int]:
    """Returns a handler for exec that always writes the same output and exits with the same code."""
    if not isinstance(answer, dict) or answer.keys() - {"stdout", "stderr", "code"}:
        raise BadMembers('a response of exec is {"stdout": string, "stderr": string, "code": number}')
    code, stdout, stderr = answer.get("code", 0), answer.get("stdout", ""), answer.get("stderr", "")
    if not isinstance(stdout, str) or not isinstance(stderr, str) or not isinstance(code, int) or not 0 <= code <= 255:
        raise BadMembers("stdout and stderr of a response are strings, code is a number from 0 to 255")

    def handler(context: Context) -> int:
        context.write(stdout)
        context.stderr.write_all(stderr.encode())
        return code

    return handler


def _exec(rule: PodRule, arguments: Mapping[str, Any]) -> None:
    """Adds handlers from {"PROGRAM": response}; "*" is any program."""
    for command, answer in arguments.items():
        rule.exec(_answer_with(answer), command=None if command == "*" else command)


def _serve(rule: PodRule, arguments: Mapping[str, Any]) -> None:
    """Adds ports from {"PORT": "HOST:PORT"}, addresses of this machine."""
    for port, target in arguments.items():
        host, colon, number = str(target).rpartition(":")
        if not (str(port).isdigit() and colon and number.isdigit()):
            raise BadMembers('serve is {"PORT": "HOST:PORT"}')
        rule.serve(int(port), (host, int(number)))


_WORDS: Final[Mapping[str, Callable[[PodRule, Mapping[str, Any]], None]]] = {"exec": _exec, "serve": _serve}


def _describe_rule(rule: PodRule) -> dict[str, Any]:
    return {"id": rule.id, "on": rule.selection, "do": rule.defined}


def list_rules(cluster: Cluster, members: Members) -> Answer:
    return 200, {"items": [_describe_rule(rule) for rule in cluster.pods]}


def create_rule(cluster: Cluster, members: Members) -> Answer:
    on, do = members["on"], members["do"]
    if not isinstance(on, dict) or on.keys() - _SELECTION:
        raise BadMembers(f"'on' is an object with {', '.join(sorted(_SELECTION))}")
    if not isinstance(do, dict) or not do or not all(isinstance(one, dict) for one in do.values()):
        raise BadMembers("'do' is an object with one or more methods, each with an object of its arguments")
    unknown = sorted(do.keys() - _PLAIN - _WORDS.keys())
    if unknown:
        raise BadMembers(f"unknown method {unknown[0]!r}; known are {', '.join(sorted(_PLAIN | _WORDS.keys()))}")
    if "file" in do.get("logs", {}):
        raise BadMembers("logs does not accept a file here")
    try:
        rule = cluster.pods.on(**on)
    except (SelectorError, TypeError, AttributeError) as problem:
        raise BadMembers(str(problem)) from None
    try:
        for word, arguments in do.items():
            if word in _WORDS:
                _WORDS[word](rule, arguments)
            else:
                getattr(rule, word)(**arguments)
    except (TypeError, ValueError) as problem:
        rule.remove()
        raise BadMembers(f"{problem}") from None
    rule.defined = do
    return 201, _describe_rule(rule)


def delete_rule(cluster: Cluster, members: Members) -> Answer:
    found = next((rule for rule in cluster.pods if rule.id == members["id"]), None)
    if found is None:
        raise LookupError(f"there is no rule {members['id']}")
    found.remove()
    return 200, {}


def clear_rules(cluster: Cluster, members: Members) -> Answer:
    cluster.pods.clear()
    return 200, {}


def write_log(cluster: Cluster, members: Members) -> Answer:
    lines = members["lines"]
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise BadMembers("lines is a list of strings")
    stream = members.get("stream", "stdout")
    if stream not in ("stdout", "stderr"):
        raise BadMembers("stream is stdout or stderr")
    with _refusing():
        cluster.pods.get(members["name"], members["namespace"]).log(*lines, container=members.get("container"), stream=stream)
    return 200, {}


def read_log(cluster: Cluster, members: Members) -> Answer:
    with _refusing():
        return 200, _text(cluster.pods.get(members["name"], members["namespace"]).logs(members.get("container")))


def _text(text: str) -> Raw:
    raw = Raw(text.encode())
    raw.content_type = PLAIN_TEXT
    return raw


def exec_in_pod(cluster: Cluster, members: Members) -> Answer:
    command = members["command"]
    words = command if isinstance(command, list) else [command]
    if not words or not all(isinstance(word, str) for word in words):
        raise BadMembers("command is a string for sh, or a list of strings")
    stdin = members.get("stdin", "")
    inside = cluster.pods.get(members["name"], members["namespace"])
    with _refusing():
        found = inside.exec(command, stdin=stdin, container=members.get("container"), timeout=members.get("timeout", 10.0))
    return 200, {"code": found.code, "stdout": found.stdout, "stderr": found.stderr}


class _refusing:
    """A context manager that converts errors of a kubelet into errors of the control API."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, KubeletError):
            raise BadMembers(error.text) from None
        if isinstance(error, TimeoutError):
            raise RuntimeError(str(error)) from None


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


# --- The endpoints of the control API for Services of webhooks and aggregated APIs that run outside of the cluster ----


def port(value: Any) -> int:
    """Checks a TCP port."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 65536:
        raise ValueError("a number from 1 to 65535")
    return value


def _describe(cluster: Cluster, service: str) -> dict[str, Any]:
    host, port = cluster.services.forwarded[service]
    return {"service": service, "host": host, "port": port}


def list_forwards(cluster: Cluster, _members: Members) -> Answer:
    return 200, {"items": [_describe(cluster, service) for service in cluster.services.forwarded]}


def forward_service(cluster: Cluster, members: Members) -> Answer:
    service = members["service"]
    try:
        cluster.services.forward(service, members["port"], host=members.get("host", "127.0.0.1"))
    except ValueError as problem:
        raise BadMembers(str(problem)) from None
    return 201, _describe(cluster, service)


def end_forward(cluster: Cluster, members: Members) -> Answer:
    """Ends one forwarding, or all without a Service."""
    chosen = [members["service"]] if "service" in members else list(cluster.services.forwarded)
    for service in chosen:
        if service not in cluster.services.forwarded:
            raise LookupError(f"{service} is not forwarded")
        cluster.services.forward(service, None)
    return list_forwards(cluster, members)


def issue_certificate(cluster: Cluster, members: Members) -> Answer:
    """Issues a certificate for a Service, with the files that a webhook server reads and the caBundle of its configuration."""
    try:
        issued = cluster.services.certificate(members["service"])
    except ValueError as problem:
        raise BadMembers(str(problem)) from None
    return 201, {"certificate": issued.certificate, "key": issued.key, "caBundle": issued.ca_bundle}
