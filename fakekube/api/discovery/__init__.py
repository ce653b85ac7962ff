"""What is served: the discovery documents, derived from the registry.

`documents` makes them for one state of the registry, `endpoints` serves them; `versions` knows which
version of a custom group comes first.
"""

from __future__ import annotations

from fakekube.api.discovery.documents import Documents
from fakekube.api.discovery.endpoints import DiscoveryEndpoints
from fakekube.api.discovery.registrations import Registrations

__all__ = ["DiscoveryEndpoints", "Documents", "Registrations"]
