"""exec and attach: one process, its streams, and its exit status, over WebSocket channels or SPDY.

Specified by: k8s.io/cri-streaming/pkg/streaming/remotecommand; k8s.io/apiserver/pkg/util/proxy/streamtranslator.go.
"""

from __future__ import annotations

from fakekube.net.streaming.remotecommand.command import Action, Options, RemoteCommand

__all__ = ["Action", "Options", "RemoteCommand"]
