"""Protocols with many streams on one connection: WebSocket channels, SPDY/3.1, exec and attach, port forwarding.

Nothing here uses sockets or threads: a tunnel gets bytes through `receive` and returns bytes from `take` (see
`fakekube.net.streams.Tunnel`), and is connected to processes and ports of containers by `fakekube.net.pipes`.

```
 client ─→ net.websocket → channels ─┬→ remotecommand, portforward ─→ net.pipes ─→ kubelet_api.Kubelet
        └→ net.spdy ────────────────┘   (negotiation: the upgrade, and SPDY inside a WebSocket)
```

Specified by: k8s.io/streaming/pkg/httpstream, k8s.io/cri-streaming/pkg/streaming, k8s.io/apiserver/pkg/util/proxy.
"""
