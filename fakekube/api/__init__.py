"""The HTTP side of the API server: a WSGI application in front of the verbs, and what a server says of
itself.
"""

from __future__ import annotations

from fakekube.api.application import Application

__all__ = ["Application"]
