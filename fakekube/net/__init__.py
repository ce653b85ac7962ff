"""The HTTP server (HTTP/1.1 and HTTP/2): runs any WSGI application; streams do not need a thread each.

```
 accept ─→ connection (a thread) ─→ http1 → environ → the application → response ─→ client
    └ loop (one thread)                                     │ a stream (streams.Stream)
         └ pump ←───────────────────────────────────────────┘ ─→ transport ─→ client
```

`http2` serves clients that negotiate HTTP/2. The server does not depend on Kubernetes. `http1`, `response` and `environ`
use no sockets; `transport` and `tls` wrap the sockets; `loop`, `server` and `fakekube.base.threads` have the threads.
Behaviour that clients can observe is that of Go's net/http, which kube-apiserver uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.net.server import DEFAULT_MAX_STREAMS, Server

__all__ = ["DEFAULT_MAX_STREAMS", "Server"]


def __getattr__(name: str) -> Any:
    """Imports the server on first use: a test that uses its cluster in process has none."""
    if name not in __all__:
        raise AttributeError(f"module 'fakekube.net' has no attribute {name!r}")
    from fakekube.net import server

    found = globals()[name] = getattr(server, name)
    return found
