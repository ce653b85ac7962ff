"""OpenAPI documents, derived from the registry, the types, and the definitions of custom resources.

* `operations` and `sources` describe the operations of each path, `schemas` and `custom` the schemas of bodies.
* `v3` and `v2` render both as JSON, `gnostic` as Protobuf; `documents` caches the results.
* `endpoints` serves the documents; it imports the other modules on the first request.

Documents have no descriptions unless an installed package provides them (`descriptions`).
"""

from __future__ import annotations

from fakekube.apiserver.http.openapi.endpoints import OpenAPIEndpoints

__all__ = ["OpenAPIEndpoints"]
