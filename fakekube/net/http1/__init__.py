"""HTTP/1.1 without sockets and threads, of both roles: requests as net/http's server reads them, responses as its client does.

`requests` and `responses` parse what is fed to them; `messages` has the header blocks and bodies of both. `ResponseReader`
reads responses from a blocking source.
"""

from fakekube.net.http1.messages import BodyError
from fakekube.net.http1.requests import (
    HEADER_TOO_LARGE,
    MAX_HEAD_BYTES,
    Fields,
    ProtocolError,
    Request,
    RequestParser,
    is_valid_target,
)

__all__ = [
    "HEADER_TOO_LARGE",
    "MAX_HEAD_BYTES",
    "BodyError",
    "Fields",
    "ProtocolError",
    "Request",
    "RequestParser",
    "is_valid_target",
]
