"""Protocols with many streams on one connection: WebSocket channels, SPDY/3.1, exec and attach, port forwarding.

Everything here is free of sockets and threads: bytes go in through `receive` and come out of `take` (see
`fakekube.streams.Tunnel`), and what runs in a container is at the other end of `fakekube.pipes`.

```
 client ─→ websocket → channels ─┬→ remotecommand, portforward ─→ pipes ─→ kubelet_api.Kubelet
        └→ spdy.frames → spdy.connection ┘        (SPDY may lie in a WebSocket: tunnelling)
```

Specified by: k8s.io/streaming/pkg/httpstream, k8s.io/cri-streaming/pkg/streaming, k8s.io/apiserver/pkg/util/proxy.
"""
