"""A multi-version store of immutable values: revisions, history, compaction, watch cursors, forks.

The store depends on no other sub-package and has keys, values and revisions, nothing of Kubernetes: it replaces
etcd's mvcc and the watch cache of a real API server. Theory of operation:

* `timeline` owns the lock and the one global revision, compacts, and says which past can still be read.
* `versions` holds the keys of one bucket, sorted: their heads, and an undo log that leads back to any readable
  revision.
* `history` holds the events of one bucket in order, and the two windows in which watches may start. An `Index` finds keys by what
  they hold, a step behind the history, which it catches up with when it is asked.
* `bucket` joins these to compare-and-set writes, reads and cursors; a `Cursor` is the position of one watcher.
* `store` is the set of buckets: snapshots, forks; a `Reflector` is a local copy of a bucket that follows its events,
  and `rebuilt` makes the contents of a bucket that was saved.
* `values` has what the store returns; the cyclic collector does not visit what a large store holds.

Invariants: a revision is given once and never again; a value is never changed; a reader sees one revision,
whole; every event is seen by every cursor once and in order, or the cursor raises `Compacted`.
"""

from __future__ import annotations

from fakekube.store.bucket import Bucket, Contents, Cursor
from fakekube.store.history import Condition
from fakekube.store.store import Reflector, Snapshot, Store, rebuilt
from fakekube.store.timeline import Retention
from fakekube.store.values import Compacted, Conflict, Event, FutureRevision, Page, Record, Selection, StoreError

__all__ = [
    "Bucket",
    "Compacted",
    "Condition",
    "Conflict",
    "Contents",
    "Cursor",
    "Event",
    "FutureRevision",
    "Page",
    "Record",
    "Reflector",
    "Retention",
    "Selection",
    "Snapshot",
    "Store",
    "StoreError",
    "rebuilt",
]
