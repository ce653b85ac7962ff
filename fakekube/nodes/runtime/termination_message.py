"""The termination message of a container: the end of the file at its terminationMessagePath, or of its log.

Specified by: pkg/kubelet/kuberuntime/kuberuntime_container.go (getTerminationMessage, convertToKubeContainerStatus),
pkg/kubelet/container/runtime.go, pkg/kubelet/status/status_manager.go (normalizeStatus).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fakekube.nodes.runtime.container import Container

__all__ = ["termination_message"]

#: The maximum length of a message, and of all messages of a pod.
_MAX_LENGTH: Final = 4096
_MAX_POD_LENGTH: Final = 12 * 1024
#: The part of the log that is a message.
_LOG_LINES: Final = 80
_LOG_LENGTH: Final = 2048
_FALLBACK: Final = "FallbackToLogsOnError"


def termination_message(container: Container, code: int) -> str:
    """Returns the message of a container whose main program has exited with this code."""
    message = _file_content(container)[-_MAX_LENGTH:]
    if not message and code and container.spec.get("terminationMessagePolicy") == _FALLBACK:
        message = container.log.tail(_LOG_LINES)[-_LOG_LENGTH:]
    spec = container.pod["spec"]
    count = sum(len(spec.get(field) or ()) for field in ("containers", "initContainers", "ephemeralContainers"))
    return message[: _MAX_POD_LENGTH // count].decode("utf-8", "replace")


def _file_content(container: Container) -> bytes:
    path = container.spec.get("terminationMessagePath") or ""
    try:
        return bytes(container.files.read(path)) if path else b""
    except OSError:
        return b""
