"""Reads single objects and collections: revision, selectors, and pages with continue tokens.

resourceVersion, resourceVersionMatch, limit and continue determine how a list is read (`_view` implements that table).
Resources with a watch cache differ from those without (events) in two points: a list at revision "0" ignores the limit, and a
read waits for some time for a revision in the future.

Selectors are applied while reading, and a page ends when it is full. A requirement that a label or field has one of some
values is a condition of the store, which has an index for each attribute that was selected by; several requirements, other ones
(`!=`, `notin`, `exists` …), and those of reads at an old revision are evaluated on each object.

Specified by: "Resource versions" and "Retrieving large results sets in chunks" in Kubernetes API Concepts;
k8s.io/apiserver/pkg/storage (selection_predicate.go, cacher, cacher/delegator, etcd3).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apis.rest.field_labels import FieldReader
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.registry.generic import continue_token, conversion
from fakekube.apiserver.registry.request_options import EXACT, NOT_OLDER_THAN, ListOptions, parse_resource_version
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.golang.strconv import MAX_INT64
from fakekube.base.objects import Object
from fakekube.store import Compacted, Condition, FutureRevision, Page, Record, Selection

if TYPE_CHECKING:
    from fakekube.apiserver.registry.sharding import ShardSelector

Matches = Callable[[Document], bool]
"""Reports whether a stored document matches."""


def matcher(resource: Resource, options: ListOptions) -> Matches | None:
    """Returns the predicate of the selectors; None if there are none.

    Custom resources are matched in the version of the request.
    """
    labels, fields = options.labels, options.fields
    if not options.selects:
        return None
    read, shards = resource.read_field, options.shards
    if fields.empty and shards is None and not resource.converts_by_call:
        return lambda document: labels.matches(document.labels)

    def matches(document: Document) -> bool:
        obj = conversion.to_version(resource, document).tree if resource.custom else document.tree
        is_chosen = labels.matches(obj["metadata"].get("labels")) and fields.matches(lambda name: read(name, obj))
        return is_chosen and (shards is None or shards.matches(obj))

    return matches


@dataclass(frozen=True, slots=True)
class _Label:
    """Reads one label of a stored document."""

    key: str

    def __call__(self, document: Document) -> str | None:
        labels = document.labels
        return labels.get(self.key) if labels else None


@dataclass(frozen=True, slots=True)
class _Field:
    """Reads one field of a stored document."""

    read: FieldReader

    def __call__(self, document: Document) -> str:
        return self.read(document.tree)


def candidates(scope: Scope, options: ListOptions) -> Callable[..., Page[Document] | Selection[Document]]:
    """Returns the store's read (`page` or `select`) that finds all matching objects, and few others."""
    return _read_by(scope, _conditions(scope.resource, options))


def _read_by(scope: Scope, conditions: list[Condition[Document]]) -> Callable[..., Page[Document] | Selection[Document]]:
    return partial(scope.bucket.select, conditions, scope.prefix) if conditions else partial(scope.bucket.page, scope.prefix)


def _conditions(resource: Resource, options: ListOptions) -> list[Condition[Document]]:
    """Returns the conditions that every matching stored document meets; may be empty.

    There are none for documents that a webhook converts; for custom resources only those of labels.
    """
    if resource.converts_by_call:
        return []
    labels = [Condition(_Label(one.key), one.allowed_values) for one in options.labels.requirements if one.allowed_values]
    if resource.custom:
        return labels
    readers = resource.field_readers
    fields = [
        Condition(_Field(readers[one.field]), (one.value,))
        for one in options.fields.requirements
        if one.operator == "=" and one.field in readers
    ]
    return [*labels, *fields]


def _are_all_requirements(conditions: Sequence[Condition[Document]], options: ListOptions) -> bool:
    """Reports whether what the store finds now is what matches: the only requirement is a condition, which its index decides."""
    requirements = len(options.labels.requirements) + len(options.fields.requirements)
    return len(conditions) == requirements == 1 and options.shards is None


_TOO_OLD_LIST = "The resourceVersion for the provided list is too old."
_TOO_OLD_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
    "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing "
    "with the provided token results in an inconsistent list - objects that were created, modified, or deleted between "
    "the time the first chunk was returned and now may show up in the list."
)


V = TypeVar("V")


@dataclass(slots=True)
class Listing:
    """A page of a collection: records in key order, and the list metadata."""

    records: Sequence[Record[Document]]
    revision: int
    token: str = ""
    remaining: int | None = None
    shards: ShardSelector | None = None
    """The shard selector that chose the records."""
    encodings: dict[Hashable, Any] = field(default_factory=dict)
    """Cached results of `encoding`; shared by all listings of the same state, if they contain the whole collection."""

    @property
    def documents(self) -> list[Document]:
        return [record.value for record in self.records]

    def encoding(self, key: Hashable, make: Callable[[], V]) -> V:
        """Returns the result of `make`, computed once per key."""
        try:
            return self.encodings[key]  # type: ignore[no-any-return]
        except KeyError:
            return self.encodings.setdefault(key, make())  # type: ignore[no-any-return]


@dataclass(slots=True)
class View:
    """The state that a list reads: an exact or the current revision, the start key, and the limit."""

    revision: int | None = None
    start: str = ""
    limit: int = 0


# --- Single objects ---------------------------------------------------------------------------------------------------


def get(scope: Scope, resource_version: str) -> Record[Document]:
    """Returns the current object; a resourceVersion is the minimum revision of the read.

    Raises StatusError: 404, 500 for a revision that is not a number, 504 for a revision that is not reached in time.
    """
    wanted = 0
    if resource_version:
        try:
            wanted = parse_resource_version(resource_version, scope.backend.store.revision)
        except ValueError as problem:
            raise _unreadable_revision(scope, str(problem)) from None
        wait_for_revision(scope, wanted, cached=scope.resource.strategy.cached)
    if scope.resource.computed is not None:
        return _find_computed(scope, scope.resource.computed(scope.backend.services))
    record = scope.bucket.get(scope.key, stale_revision(scope, wanted) if resource_version else None)
    if record is None:
        raise scope.not_found()
    return record


def stale_revision(scope: Scope, wanted: int) -> int | None:
    """Returns the revision for a read that accepts any state from `wanted` on; None: the current one."""
    as_of = scope.request.as_of
    return None if as_of is None else max(as_of, wanted)


def _unreadable_revision(scope: Scope, problem: str) -> StatusError:
    """Returns the error for a malformed revision; without a watch cache, the storage adds details."""
    if scope.resource.strategy.cached:
        return status.generic(500, "", problem)
    return status.bad_request(f"invalid resource version: {problem}")


def _find_computed(scope: Scope, objects: Sequence[Object]) -> Record[Document]:
    for obj in objects:
        if obj["metadata"]["name"] == scope.name:
            return Record(scope.name, Document(obj), 0, 0)
    raise status.not_found(scope.resource.group, scope.resource.singular, scope.name)


def wait_for_revision(scope: Scope, wanted: int, *, cached: bool) -> None:
    """Waits until the store reaches a revision, in real time, since a stopped clock must not block a client.

    Raises StatusError 504 after the timeout of the watch cache (immediately for resources without one).
    """
    store = scope.backend.store
    if wanted <= store.revision:
        return
    if not cached:
        raise status.too_large_resource_version(wanted, store.revision, retry_after=0)
    if not store.wait(wanted, scope.backend.settings.too_large_resource_version_wait):
        raise status.too_large_resource_version(wanted, store.revision)


# --- Collections ------------------------------------------------------------------------------------------------------


_FUTURE_REVISIONS_REFUSED_SINCE: Final = 34
"""The first minor with an error of its own for an exact revision that etcd does not have yet; before, clients see etcd's."""


def list_objects(scope: Scope, options: ListOptions) -> Listing:
    """Returns a page of the collection.

    Raises StatusError: 400 for malformed revisions and tokens, 410 for revisions that are no longer in the history, 504
    for a revision that is not reached in time.
    """
    if scope.resource.computed is not None:
        matches = matcher(scope.resource, options) or (lambda _document: True)
        documents = map(Document, scope.resource.computed(scope.backend.services))
        return Listing([Record("", document, 0, 0) for document in documents if matches(document)], 0)
    view = _view(scope, options)
    try:
        return _page(scope, options, view)
    except Compacted:
        if options.token:
            start = view.start.removeprefix(scope.prefix)
            again = continue_token.encode(start, continue_token.INCONSISTENT, leading_slash=False)
            raise status.expired_token(_TOO_OLD_TOKEN, again) from None
        raise status.expired(_TOO_OLD_LIST) from None
    except FutureRevision as future:
        assert view.revision is not None
        is_told_by_etcd = view.revision <= MAX_INT64  # a larger one is negative for etcd, which takes the latest one instead
        if scope.resource.emulation.minor < _FUTURE_REVISIONS_REFUSED_SINCE and is_told_by_etcd:
            raise status.StatusError(500, "", "etcdserver: mvcc: required revision is a future revision") from None
        raise status.too_large_resource_version(view.revision, future.current, retry_after=0) from None


def _view(scope: Scope, options: ListOptions) -> View:
    """Implements the table of resourceVersion, resourceVersionMatch, limit and continue.

    A list that selects one name (without continue) has no pages: the limit is ignored.
    """
    cached = scope.resource.strategy.cached
    single = _single_name(scope, options) is not None
    whole = options.resource_version == "0" and cached  # from the cache, which has snapshots for the pages that follow
    if options.token and not scope.resource.emulation.enabled("ListFromCacheSnapshot"):
        whole = False
    limit = 0 if single or whole else max(options.limit, 0)
    if options.token:
        place = continue_token.decode(options.token, scope.backend.store.revision)
        if options.resource_version not in ("", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        revision = None if place.revision < 0 else place.revision
        if revision is not None and cached:
            wait_for_revision(scope, revision, cached=True)
        return View(revision, scope.prefix + place.start, limit)
    try:
        wanted = parse_resource_version(options.resource_version, scope.backend.store.revision)
    except ValueError as problem:
        raise status.bad_request(f"invalid resource version: {problem}") from None
    exact = options.match == EXACT or (wanted > 0 and limit > 0 and options.match != NOT_OLDER_THAN)
    if exact:
        if cached and not single and scope.resource.emulation.enabled("ListFromCacheSnapshot"):
            wait_for_revision(scope, wanted, cached=True)
        return View(wanted, scope.prefix, limit)
    asks_storage = single and options.limit > 0 and options.match != NOT_OLDER_THAN
    wait_for_revision(scope, wanted, cached=cached and not asks_storage)
    stale = stale_revision(scope, wanted) if options.resource_version else None
    return View(stale, scope.prefix, limit)


def _page(scope: Scope, options: ListOptions, view: View) -> Listing:
    matches = matcher(scope.resource, options)
    if matches is None:
        return _whole_page(scope, view)
    listing = _selected_page(scope, options, view, matches)
    listing.shards = options.shards
    return listing


def _whole_page(scope: Scope, view: View) -> Listing:
    page = scope.bucket.page(scope.prefix, start=view.start, limit=view.limit, revision=view.revision)
    listing = Listing(page.records, page.revision, encodings=page.encodings)
    if page.more:
        listing.token = _token_after(scope, page.records[-1].key, page.revision)
        listing.remaining = page.remaining
    return listing


#: Records read in one step of a list with selectors, so that a page that is full early costs little.
_STEP = 500
#: The first minor in which a page of shards does not tell how many objects remain.
_SHARDS_NOT_COUNTED_SINCE: Final = 37
#: Records that are compared with selectors before the time is looked at.
_CHECKED = 32


def _selected_page(scope: Scope, options: ListOptions, view: View, matches: Matches) -> Listing:
    name = _single_name(scope, options)
    if name is not None:
        return _list_single(scope, view, name, matches)
    conditions = _conditions(scope.resource, options)
    read, all_match = _read_by(scope, conditions), _are_all_requirements(conditions, options)
    step = _STEP if view.limit else 0
    start, revision = view.start, view.revision
    matching: list[Record[Document]] = []
    while True:
        found = read(start=start, limit=step, revision=revision)
        records = found.records
        matching += records if all_match and revision is None else _select(scope, records, matches)
        revision = found.revision  # all steps read the same revision
        if view.limit and len(matching) >= view.limit:
            del matching[view.limit :]
            listing = Listing(matching, revision, _token_if_more(scope, matching[-1].key, revision))
            if listing.token and _counts_remaining(scope, options):
                listing.remaining = scope.bucket.page(
                    scope.prefix, start=view.start, limit=view.limit, revision=revision
                ).remaining
            return listing
        if not step or len(records) < step:
            return Listing(matching, revision)
        start = records[-1].key + "\0"


def _counts_remaining(scope: Scope, options: ListOptions) -> bool:
    """Reports whether a page of shards tells how many objects remain, of all shards (SelectionPredicate.Empty)."""
    return scope.resource.emulation.minor < _SHARDS_NOT_COUNTED_SINCE and options.labels.empty and options.fields.empty


def _select(scope: Scope, records: Sequence[Record[Document]], matches: Matches) -> list[Record[Document]]:
    """Returns the records that match. Raises StatusError 504 when the time of the request is over: selectors may be very long."""
    matching: list[Record[Document]] = []
    for start in range(0, len(records), _CHECKED):
        matching += [record for record in records[start : start + _CHECKED] if matches(record.value)]
        if time.monotonic() >= scope.request.deadline:
            raise status.allotted_timeout()
    return matching


def _single_name(scope: Scope, options: ListOptions) -> str | None:
    """Returns the name of the only object that can match, if the selectors require a name and its key is known."""
    if options.token or (scope.resource.namespaced and not scope.namespace):
        return None
    return options.fields.exact("metadata.name")


def _list_single(scope: Scope, view: View, name: str, matches: Matches) -> Listing:
    """Reads a collection selected by name as a look-up of one key."""
    key = scope.resource.key(scope.namespace, name)
    page = scope.bucket.page(key, start=max(view.start, key), limit=1, revision=view.revision)
    found = [record for record in page.records if record.key == key and matches(record.value)]
    return Listing(found, page.revision)


def _token_if_more(scope: Scope, key: str, revision: int) -> str:
    """Returns a continue token if any record follows the page, whether it matches the selectors or not."""
    rest = scope.bucket.page(scope.prefix, start=key + "\0", limit=1, revision=revision)
    return _token_after(scope, key, revision) if rest.records else ""


def _token_after(scope: Scope, key: str, revision: int) -> str:
    relative = key.removeprefix(scope.prefix) + "\0"
    return continue_token.encode(relative, revision, leading_slash=scope.resource.strategy.cached)
