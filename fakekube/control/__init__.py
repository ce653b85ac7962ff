"""What a cluster offers beside the API, over HTTP: everything under /fakekube/v1.

`prefix` stands in front of the API and sends on what is not for it; `guard` says who may; `endpoints` are the paths, and
`members` reads what is in their bodies. Only `prefix` is imported before the first request.
"""

from __future__ import annotations

from fakekube.control.prefix import WSGI, Control, is_loopback

__all__ = ["WSGI", "Control", "is_loopback"]
