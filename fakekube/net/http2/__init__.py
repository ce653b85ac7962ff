"""HTTP/2: many requests and watches on one connection.

```
 socket ─→ connection_socket (the loop's thread) ─→ protocol ─→ exchange (a worker thread): environ → the application
    └ loop                     │                       ↑             └ its answer ─→ protocol ─→ connection ─→ socket
        └ pump ─→ the transport of a watch ────────────┘
```

`frames`, `header_blocks`, `stream` (flow control, the state of a stream and of a connection) and `protocol` use no
sockets and threads; `connection` has the threads of requests. Behaviour that clients can observe, including errors, is that of
golang.org/x/net/http2 with the settings of kube-apiserver. The package hpack decompresses header blocks (HPACK). These modules
are imported when the first client negotiates the protocol.
"""

from __future__ import annotations
