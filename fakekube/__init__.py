"""fakekube: an in-memory Kubernetes API server for tests.

```python
with fakekube.Cluster() as cluster:
    cluster.load("deploy/")
    cluster.get("deployments", "web")
```

Importing the package is cheap: its public names are imported when they are first used.

PYTEST_DONT_REWRITE: pytest need not compile the modules of a distribution with a plugin again.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.apiserver.auth.options import OptionError
    from fakekube.base.clock import Clock
    from fakekube.checker import Report, check
    from fakekube.cluster import Cluster
    from fakekube.cluster.test_case import IsolatedAsyncioTestCase, TestCase
    from fakekube.cluster.testing.clients import AsyncCluster
    from fakekube.cluster.testing.manifests import ManifestError
    from fakekube.cluster.testing.object_client import ObjectClient, Response
    from fakekube.cluster_options import ClusterOptions, Object, PluginOptions, ServerFlags, Source
    from fakekube.controllers.client import ApiError, Client, UnknownResource
    from fakekube.nodes.fleet import Nodes
    from fakekube.nodes.images.image import Image
    from fakekube.nodes.rules import Pods
    from fakekube.nodes.stages import StageError
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault
    from fakekube.powers.faults import Faults, FaultSelector
    from fakekube.powers.history import Past, Version
    from fakekube.powers.recording import Recording, RecordingError
    from fakekube.powers.replay import Replay
    from fakekube.powers.requests import Requests
    from fakekube.powers.state import StateError
    from fakekube.store import Snapshot

__all__ = [
    "ApiError",
    "AsyncCluster",
    "Client",
    "Clock",
    "Cluster",
    "ClusterOptions",
    "Exchange",
    "Fault",
    "FaultSelector",
    "Faults",
    "Image",
    "IsolatedAsyncioTestCase",
    "ManifestError",
    "Nodes",
    "Object",
    "ObjectClient",
    "OptionError",
    "Past",
    "PluginOptions",
    "Pods",
    "Recording",
    "RecordingError",
    "Replay",
    "Report",
    "Requests",
    "Response",
    "ServerFlags",
    "Snapshot",
    "Source",
    "StageError",
    "StateError",
    "TestCase",
    "UnknownResource",
    "Version",
    "__version__",
    "check",
]

#: The version of the distribution, too: pyproject.toml reads it from here.
__version__ = "0.1.0"

_HOMES = {
    "ApiError": "fakekube.controllers.client",
    "AsyncCluster": "fakekube.cluster.testing.clients",
    "Client": "fakekube.controllers.client",
    "Clock": "fakekube.base.clock",
    "Cluster": "fakekube.cluster",
    "ClusterOptions": "fakekube.cluster_options",
    "Exchange": "fakekube.powers.exchange",
    "Fault": "fakekube.powers.fault",
    "FaultSelector": "fakekube.powers.faults",
    "Faults": "fakekube.powers.faults",
    "Image": "fakekube.nodes.images.image",
    "IsolatedAsyncioTestCase": "fakekube.cluster.test_case",
    "ManifestError": "fakekube.cluster.testing.manifests",
    "Nodes": "fakekube.nodes.fleet",
    "Object": "fakekube.cluster_options",
    "ObjectClient": "fakekube.cluster.testing.object_client",
    "OptionError": "fakekube.apiserver.auth.options",
    "Past": "fakekube.powers.history",
    "PluginOptions": "fakekube.cluster_options",
    "Pods": "fakekube.nodes.rules",
    "Recording": "fakekube.powers.recording",
    "RecordingError": "fakekube.powers.recording",
    "Replay": "fakekube.powers.replay",
    "Report": "fakekube.checker",
    "Requests": "fakekube.powers.requests",
    "Response": "fakekube.cluster.testing.object_client",
    "ServerFlags": "fakekube.cluster_options",
    "Snapshot": "fakekube.store",
    "Source": "fakekube.cluster_options",
    "StageError": "fakekube.nodes.stages",
    "StateError": "fakekube.powers.state",
    "TestCase": "fakekube.cluster.test_case",
    "UnknownResource": "fakekube.controllers.client",
    "Version": "fakekube.powers.history",
    "check": "fakekube.checker",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fakekube' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
