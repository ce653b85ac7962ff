"""The garbage collector: objects go when the last of their owners has gone.

`graph` knows which objects depend on which, from the changes of all resources; `collector` asks it what to look at, and
deletes, orphans and finalizes through the API.
"""

from __future__ import annotations

from fakekube.controllers.garbagecollector.collector import GarbageCollector

__all__ = ["GarbageCollector"]
