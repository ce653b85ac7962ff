"""fakekube: an in-memory Kubernetes API server for tests.

```python
with fakekube.Cluster() as cluster:
    cluster.load("deploy/")
    cluster.get("deployments", "web")
```

Importing the package costs next to nothing; what it offers is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.client import ApiError, UnknownResource
    from fakekube.cluster import Cluster
    from fakekube.testing.manifests import ManifestError

__all__ = ["ApiError", "Cluster", "ManifestError", "UnknownResource"]

_HOMES = {
    "ApiError": "fakekube.client", "Cluster": "fakekube.cluster", "ManifestError": "fakekube.testing.manifests",
    "UnknownResource": "fakekube.client",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fakekube' has no attribute {name!r}")
