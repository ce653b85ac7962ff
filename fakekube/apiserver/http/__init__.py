"""The HTTP side of the API server: a WSGI application in front of the endpoints' handlers, and the non-resource paths
(discovery, OpenAPI, health, metrics).
"""

from __future__ import annotations

from fakekube.apiserver.http.application import Application

__all__ = ["Application"]
