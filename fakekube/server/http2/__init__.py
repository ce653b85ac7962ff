"""HTTP/2: many requests and watches on one connection.

```
 socket ─→ connection (the loop's thread) ─→ protocol ─→ header_blocks ─→ a worker thread: environ → the application
    └ loop                                     │                                └ answer ─→ protocol ─→ connection ─→ socket
        └ pump ─→ stream_transport ────────────┘
```

`frames`, `header_blocks`, `stream` and `protocol` are free of sockets and threads. What a client can see is what Go's
golang.org/x/net/http2 does with the settings of kube-apiserver, errors included. The compression of header blocks (HPACK) is the
package hpack's. Nothing here is imported before the first client negotiates the protocol.
"""

from __future__ import annotations
