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
    from fakekube.checker import check
    from fakekube.client import ApiError, Client, UnknownResource
    from fakekube.clock import Clock
    from fakekube.cluster import Cluster
    from fakekube.options import OptionError
    from fakekube.store import Snapshot
    from fakekube.test_case import IsolatedAsyncioTestCase, TestCase
    from fakekube.testing.manifests import ManifestError

    __version__: str

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

_HOMES = {
    "ApiError": "fakekube.client",
    "Client": "fakekube.client",
    "Clock": "fakekube.clock",
    "Cluster": "fakekube.cluster",
    "IsolatedAsyncioTestCase": "fakekube.test_case",
    "ManifestError": "fakekube.testing.manifests",
    "OptionError": "fakekube.options",
    "Snapshot": "fakekube.store",
    "TestCase": "fakekube.test_case",
    "UnknownResource": "fakekube.client",
    "check": "fakekube.checker",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("fakekube")
    raise AttributeError(f"module 'fakekube' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
