"""OpenAPI of what is served, derived from the registry, the types, and the definitions of custom resources.

* `operations` and `sources` say what can be asked of each path, `schemas` and `custom` what is sent.
* `v3` and `v2` render both as JSON, `gnostic` as Protobuf; `documents` keeps the results.
* `endpoints` serves them; it brings the rest in with the first request.

Documents hold no descriptions: those are prose, and what clients depend on are names, types and rules.
"""

from __future__ import annotations

from fakekube.api.openapi.endpoints import OpenAPIEndpoints

__all__ = ["OpenAPIEndpoints"]
