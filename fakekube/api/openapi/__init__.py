"""OpenAPI: what is served, as schemas and paths."""

from __future__ import annotations

from fakekube.api.openapi.endpoints import OpenAPIEndpoints

__all__ = ["OpenAPIEndpoints"]
