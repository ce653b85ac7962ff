"""The bundled HTTP/1.1 server: runs any WSGI application, and serves its streams without a thread each.

```
 accept ─→ connection (a thread) ─→ http1 → environ → the application → response ─→ client
    └ loop (one thread)                                     │ a stream (fakekube.streams)
         └ pump ←───────────────────────────────────────────┘ ─→ framing ─→ client
```

It knows bytes and WSGI, nothing of Kubernetes. `http1`, `response`, `environ` and `framing` are
free of sockets; `transport` (and `tls`) are the sockets; `loop`, `workers` and `server` are the threads.
Where behaviour could be seen by a client it is that of Go's net/http, on which kube-apiserver stands.
"""

from __future__ import annotations

from fakekube.server.server import Server

__all__ = ["Server"]
