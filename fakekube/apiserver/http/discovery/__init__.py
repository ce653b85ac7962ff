"""Discovery: the documents derived from the registry and the APIServices.

`documents` makes the documents for one state of both, `endpoints` serves them; `registrations` provides the APIServices.
"""

from __future__ import annotations

from fakekube.apiserver.http.discovery.documents import Documents, Registrations
from fakekube.apiserver.http.discovery.endpoints import DiscoveryEndpoints

__all__ = ["DiscoveryEndpoints", "Documents", "Registrations"]
