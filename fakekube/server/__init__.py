"""The bundled server for HTTP/1.1 and HTTP/2: runs any WSGI application, and serves its streams without a thread each.

```
 accept ─→ connection (a thread) ─→ http1 → environ → the application → response ─→ client
    └ loop (one thread)                                     │ a stream (fakekube.streams)
         └ pump ←───────────────────────────────────────────┘ ─→ framing ─→ client
```

A client that negotiates HTTP/2 is handed to `http2`. The server knows bytes and WSGI, nothing of Kubernetes. `http1`,
`response`, `environ` and `framing` are free of sockets; `transport` (and `tls`) are the sockets; `loop`, `workers` and
`server` are the threads.
Where behaviour could be seen by a client it is that of Go's net/http, on which kube-apiserver stands.
"""

from __future__ import annotations

from fakekube.server.server import DEFAULT_MAX_STREAMS, Server

__all__ = ["DEFAULT_MAX_STREAMS", "Server"]
