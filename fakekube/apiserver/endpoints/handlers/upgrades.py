"""Handles exec, attach and portforward: the checks of the API server and of the kubelet, and the upgrade.

A WebSocket with v5.channel.k8s.io ends at the API server, which translates: what is wrong behind it is told on the
error channel. One that tunnels SPDY ends there, too. All others go through to the kubelet, whose answers come back as
they are.

Specified by: pkg/registry/core/pod/rest/subresources.go; pkg/registry/core/pod/strategy.go (streamParams);
k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go; pkg/kubelet/server/server.go (getExec, getAttach, getPortForward).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NoReturn

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import status
from fakekube.apiserver.endpoints.connection_info import (
    ConnectionInfo,
    connection_info,
    container_of,
    format_refused_dial,
    pod_of,
    require_running,
    require_running_pod,
    sandbox_of,
    spec_of,
)
from fakekube.apiserver.endpoints.handlers.watch import is_web_socket
from fakekube.apiserver.endpoints.negotiation import PLAIN_TEXT
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object
from fakekube.net import websocket
from fakekube.net.streaming import negotiation
from fakekube.net.streaming.channels import UnsupportedProtocolError, handshake
from fakekube.net.streaming.kubelet_api import Connection, Kubelet, KubeletError
from fakekube.net.streaming.remotecommand import Action, Options

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


_NO_STREAMS = "you must specify at least 1 of stdin, stdout, stderr"
_TTY_AND_STDERR = "rpc error: code = InvalidArgument desc = tty and stderr cannot both be true"
_PARAMETERS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}


def _execute(scope: Scope, options: Object) -> Response:
    """Runs a command in a container. Raises StatusError."""
    return _remote_command(scope, options, attaches=False)


def _attach(scope: Scope, options: Object) -> Response:
    """Attaches to the main process of a container. Raises StatusError."""
    return _remote_command(scope, options, attaches=True)


def _port_forward(scope: Scope, options: Object) -> Response:
    """Forwards ports of a pod. Raises StatusError."""
    _require_create(scope)
    pod, info = _locate_pod(scope)
    request, headers = scope.request, scope.request.headers
    tunnels = is_web_socket(request) and any(map(_is_tunnelling, headers.get("sec-websocket-protocol", "").split(",")))
    if tunnels and not negotiation.offered_protocols(headers):
        return _text(400, "unable to upgrade: no tunneling spdy protocols provided")
    kubelet = _dial_kubelet(request, info)
    ports: Sequence[int] = ()
    try:
        if is_web_socket(request) and not tunnels:
            from fakekube.net.streaming.portforward import ports_of

            told = ",".join(str(port) for port in options.get("ports") or ())
            try:
                ports = ports_of([told] if told else [])
            except ValueError as error:
                raise KubeletError(400, str(error)) from None
        require_running_pod(pod)
    except KubeletError as error:
        return _kubelet_answer(error)
    return _forward_ports(scope, kubelet, pod, ports, tunnels=tunnels)


#: Subresource → its handler.
HANDLERS: Final[Mapping[str, Callable[[Scope, Object], Response]]] = {
    "exec": _execute,
    "attach": _attach,
    "portforward": _port_forward,
}


# --- The checks of all three ------------------------------------------------------------------------------------------


def _require_create(scope: Scope) -> None:
    """Checks that the user of a GET may also create. Raises StatusError 403."""
    checks = features.current().enabled("AuthorizePodWebsocketUpgradeCreatePermission")
    if scope.request.info.verb == "create" or not checks:
        return
    allowed, reason = scope.backend.may_create(scope.request)
    if not allowed:
        raise status.forbidden("", scope.resource.plural, scope.name, reason)


def _locate_pod(scope: Scope, wanted: str | None = None) -> tuple[Object, ConnectionInfo]:
    """Returns the pod, whose container is checked if one is wanted ("" the only one), and its kubelet. Raises StatusError."""
    pod = pod_of(scope)
    if wanted is not None:
        container_of(pod, wanted)
    node = pod["spec"].get("nodeName", "")
    if not node:
        raise status.bad_request(f"pod {scope.name} does not have a host assigned")
    return pod, connection_info(scope, node)


def _dial_kubelet(request: Request, info: ConnectionInfo) -> Kubelet:
    """Returns the kubelet for an upgrade. Raises StatusError."""
    if "upgrade" not in request.headers.get("connection", "").lower():
        raise status.bad_request("Upgrade request required")
    if info.kubelet is None:
        raise status.generic(500, "", f"error dialing backend: {format_refused_dial(info.host)}")
    return info.kubelet


def _forwarded_headers(request: Request) -> dict[str, str]:
    """Returns the headers of an upgrade as the kubelet gets them: names in lower case."""
    from fakekube.apiserver.aggregator.headers import request_headers

    found = {name.lower(): value for name, value in request_headers(request.headers, upgrade=True)}
    if "content-length" in request.headers:
        found["content-length"] = request.headers["content-length"]
    return {"user-agent": "Go-http-client/1.1", **found, "x-forwarded-for": request.address}


def _is_tunnelling(name: str) -> bool:
    return name.strip().startswith(negotiation.PREFIX) and name.strip().endswith(".k8s.io")


def _text(code: int, text: str, headers: Sequence[tuple[str, str]] = ()) -> Response:
    """Returns an answer as net/http writes errors; it ends the connection, as it does behind an upgrade."""
    from fakekube.apiserver.aggregator.proxy import text_error

    response = text_error(code, text)
    response.headers += [*headers, ("Connection", "close")]
    return response


def _kubelet_answer(error: KubeletError) -> Response:
    """Returns what a kubelet has answered instead of an upgrade."""
    headers = [("Content-Type", PLAIN_TEXT), ("Connection", "close")]
    return Response(error.code, headers, error.text.encode())


def _refuse_protocol() -> NoReturn:
    raise websocket.Refused("403 Forbidden", field="Connection: close\r\n") from None


# --- exec, attach -----------------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class _Command:
    """What is asked of a container: a command to run, or none to attach."""

    pod: Object
    container: str
    words: Sequence[str] | None
    streams: Options

    @property
    def path(self) -> str:
        """The path at the kubelet's server."""
        metadata = self.pod["metadata"]
        return f"/{'attach' if self.words is None else 'exec'}/{metadata['namespace']}/{metadata['name']}/{self.container}"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query at the kubelet's server."""
        asked = [(parameter, "1") for name, parameter in _PARAMETERS.items() if getattr(self.streams, name)]
        return [*asked, *(("command", word) for word in self.words or ())]


def _remote_command(scope: Scope, options: Object, *, attaches: bool) -> Response:
    _require_create(scope)
    wanted = options.get("container") or ""
    pod, info = _locate_pod(scope, wanted)
    streams = Options(**{name: bool(options.get(name)) for name in _PARAMETERS})
    command = _Command(pod, container_of(pod, wanted), None if attaches else list(options.get("command") or ()), streams)
    request, clock = scope.request, scope.backend.clock
    if is_web_socket(request) and _offers_v5(request):
        return _translate(request, info, command, clock)
    kubelet = _dial_kubelet(request, info)
    try:
        streams, action = _begin(kubelet, command)
    except KubeletError as error:
        return _kubelet_answer(error)
    if is_web_socket(request):
        from fakekube.net.streaming.remotecommand import KUBELET_PROTOCOLS, WebSocketCommand

        try:
            protocol, headers = handshake(request.method, request.headers, KUBELET_PROTOCOLS)
        except UnsupportedProtocolError:
            _refuse_protocol()
        return Response(101, headers, WebSocketCommand(protocol, streams, action, clock))
    from fakekube.net.streaming.remotecommand import SPDY_PROTOCOLS, SPDYCommand

    try:
        protocol = negotiation.negotiate(_forwarded_headers(request), SPDY_PROTOCOLS)
    except negotiation.HandshakeError as error:
        return _text(error.code, error.text, error.headers)
    return Response(101, negotiation.switching_headers(protocol), SPDYCommand(protocol, streams, action, clock))


def _offers_v5(request: Request) -> bool:
    offered = request.headers.get("sec-websocket-protocol", "")
    return "v5.channel.k8s.io" in [name.strip() for name in offered.split(",")]


def _begin(kubelet: Kubelet, command: _Command) -> tuple[Options, Action]:
    """Checks what the kubelet's server checks; returns the streams and what is to be done with them. Raises KubeletError."""
    pod, container, words, streams = command.pod, command.container, command.words, command.streams
    if streams.tty:
        streams = replace(streams, stderr=False)
    if not (streams.stdin or streams.stdout or streams.stderr):
        raise KubeletError(400, _NO_STREAMS)
    require_running(pod, container, attaches=words is None)
    if words is not None:
        description = f"error executing command [{' '.join(words)}], "
        failure = "error executing command in container"
        return streams, Action(lambda pipes: kubelet.exec(pod, container, words, pipes), failure, description)
    streams = replace(streams, tty=bool(spec_of(pod, container).get("tty")))
    if streams.tty and streams.stderr:
        raise KubeletError(500, _TTY_AND_STDERR)
    return streams, Action(lambda pipes: kubelet.attach(pod, container, pipes), "error attaching to container")


def _translate(request: Request, info: ConnectionInfo, command: _Command, clock: Clock) -> Response:
    """Returns the answer of the API server's translator, which upgrades before it asks the kubelet."""
    from fakekube.net.streaming.channels import V5_CHANNEL
    from fakekube.net.streaming.remotecommand import RefusedCommand, WebSocketCommand

    _, headers = handshake(request.method, request.headers, [V5_CHANNEL])
    if info.kubelet is None:
        url = info.url(command.path, command.parameters)
        problem = f"error sending request: Post {go_quote(url)}: {format_refused_dial(info.host)}"
        return Response(101, headers, RefusedCommand(command.streams, problem))
    try:
        streams, action = _begin(info.kubelet, command)
    except KubeletError as error:
        return Response(101, headers, RefusedCommand(command.streams, f"unable to upgrade connection: {error.text}"))
    return Response(101, headers, WebSocketCommand(V5_CHANNEL, streams, action, clock))


# --- portforward ------------------------------------------------------------------------------------------------------


def _forward_ports(scope: Scope, kubelet: Kubelet, pod: Object, ports: Sequence[int], *, tunnels: bool) -> Response:
    request, clock = scope.request, scope.backend.clock
    where = sandbox_of(pod)

    def connect(port: int) -> Connection:
        return kubelet.port_forward(pod, port)

    if is_web_socket(request) and not tunnels:
        from fakekube.net.streaming.portforward import WEBSOCKET_PROTOCOLS, WebSocketForward

        try:
            protocol, headers = handshake(request.method, request.headers, WEBSOCKET_PROTOCOLS)
        except UnsupportedProtocolError:
            _refuse_protocol()
        return Response(101, headers, WebSocketForward(protocol, ports, where, connect, clock))
    from fakekube.net.streaming.portforward import SPDY_PROTOCOLS, SPDYForward

    asked = _forwarded_headers(request)
    if tunnels:
        asked |= {"upgrade": "SPDY/3.1", "x-stream-protocol-version": ",".join(negotiation.offered_protocols(request.headers))}
    try:
        protocol = negotiation.negotiate(asked, SPDY_PROTOCOLS)
    except negotiation.HandshakeError as error:
        return _text(error.code, error.text, error.headers)
    if not tunnels:
        return Response(101, negotiation.switching_headers(protocol), SPDYForward(where, connect, clock))
    answer = negotiation.handshake(request.method, request.headers, protocol)
    return Response(101, list(answer), negotiation.TunnellingWebSocket(SPDYForward(where, connect, clock)))
