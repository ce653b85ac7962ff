"""The garbage collector: deletes objects whose owners do not exist any more.

`graph` holds which objects depend on which, from the changes of all resources; `collector` deletes objects, orphans
dependents and removes finalizers through the API.

Specified by: pkg/controller/garbagecollector.
"""

from __future__ import annotations

from fakekube.controllers.garbagecollector.collector import GarbageCollector

__all__ = ["GarbageCollector"]
