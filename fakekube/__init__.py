"""fakekube: an in-memory Kubernetes API server for tests.

```python
with fakekube.Cluster() as cluster:
    cluster.load("deploy/")
    cluster.get("deployments", "web")
```

Importing the package is cheap: its public names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.apiserver.options import OptionError
    from fakekube.base.clock import Clock
    from fakekube.checker import check
    from fakekube.cluster import Cluster
    from fakekube.cluster.test_case import IsolatedAsyncioTestCase, TestCase
    from fakekube.cluster.testing.manifests import ManifestError
    from fakekube.controllers.client import ApiError, Client, UnknownResource
    from fakekube.store import Snapshot

__all__ = [
    "ApiError",
    "Client",
    "Clock",
    "Cluster",
    "IsolatedAsyncioTestCase",
    "ManifestError",
    "OptionError",
    "Snapshot",
    "TestCase",
    "UnknownResource",
    "__version__",
    "check",
]

#: The version of the distribution, too: pyproject.toml reads it from here.
__version__ = "0.1.0"

_HOMES = {
    "ApiError": "fakekube.controllers.client",
    "Client": "fakekube.controllers.client",
    "Clock": "fakekube.base.clock",
    "Cluster": "fakekube.cluster",
    "IsolatedAsyncioTestCase": "fakekube.cluster.test_case",
    "ManifestError": "fakekube.cluster.testing.manifests",
    "OptionError": "fakekube.apiserver.options",
    "Snapshot": "fakekube.store",
    "TestCase": "fakekube.cluster.test_case",
    "UnknownResource": "fakekube.controllers.client",
    "check": "fakekube.checker",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fakekube' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
