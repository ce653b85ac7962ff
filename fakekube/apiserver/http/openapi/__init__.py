"""OpenAPI documents, derived from the registry, the types, and the definitions of custom resources.

* `operations` describes the operations of each path, `documents` what the documents are made of; it caches them and merges those
  of other servers.
* `v3` and `v2` render them as JSON, `gnostic` as Protobuf.
* `endpoints` serves the documents; it imports the other modules on the first request.

Documents have no descriptions unless an installed package provides them.
"""

from __future__ import annotations

from fakekube.apiserver.http.openapi.endpoints import OpenAPIEndpoints

__all__ = ["OpenAPIEndpoints"]
