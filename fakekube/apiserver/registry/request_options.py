"""Decodes and validates the options of each verb from a query or a body.

Each kind of options has one dataclass, a function `…_options(query)`, and a validation that raises a 422 of
`<Kind>Options.meta.k8s.io`. Values that cannot be converted are a 400 with Go's message. Unknown parameters are ignored;
of repeated ones the first counts (dryRun takes all).

Specified by: k8s.io/apimachinery/pkg/apis/meta/v1 (types, conversion, validation) and internalversion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fakekube.apimachinery import features, selectors
from fakekube.apimachinery.errors import FieldError, status
from fakekube.apimachinery.errors import field as fields
from fakekube.apimachinery.selectors import FieldSelector, LabelSelector
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.endpoints.request import Query
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.strconv import UINT64, go_quote, parse_int, parse_uint
from fakekube.base.golang.strings import bytes_of, readable

if TYPE_CHECKING:
    from fakekube.apiserver.registry.sharding import ShardSelector

META_GROUP = "meta.k8s.io"
EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"
FIELD_MANAGER_MAX_LENGTH = 128
_REVISION_DIGITS = 40

V = TypeVar("V")


# --- Conversion of single values --------------------------------------------------------------------------------------


def _text(values: Sequence[str]) -> str:
    return values[0] if values else ""


def boolean(values: Sequence[str]) -> bool:
    """Parses a boolean: only "0" and "false" in any case are false; every other value is true."""
    return bool(values) and values[0] != "0" and values[0].lower() != "false"


def int64(values: Sequence[str]) -> int:
    """Parses an integer. Raises StatusError 400 with the message of strconv.ParseInt."""
    try:
        return parse_int(values[0])
    except ValueError as problem:
        raise status.bad_request(str(problem)) from None


def convert_option(query: Query, name: str, convert: Callable[[Sequence[str]], V]) -> V | None:
    values = query.all(name)
    return convert(values) if values else None


def parse_revision(text: str, newest: int) -> int:
    """Parses a revision: an unsigned integer of 64 bits, or of any size if the revisions of the cluster have more.

    Args:
        text: the number.
        newest: the revision of the cluster; `Cluster(first_revision=…)` begins at a large one.

    Raises ValueError with the message of the real server.
    """
    try:
        return parse_uint(text)
    except ValueError:
        if newest in UINT64 or not (text.isascii() and text.isdigit()) or len(text) > _REVISION_DIGITS:
            raise
        return int(text)


def parse_resource_version(text: str, newest: int) -> int:
    """Parses a resourceVersion; "" is 0. See `parse_revision`.

    Raises ValueError with the message of the real server (without the prefix, which differs between verbs).
    """
    if text in ("", "0"):
        return 0
    try:
        return parse_revision(text, newest)
    except ValueError as problem:
        raise ValueError(f"resourceVersion: Invalid value: {go_quote(text)}: {problem}") from None


# --- Lists and watches ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ListOptions:
    """The options of list, watch and deletecollection; selectors are parsed, field labels are supported by the kind."""

    labels: LabelSelector
    fields: FieldSelector
    watch: bool = False
    allow_bookmarks: bool = False
    resource_version: str = ""
    match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    token: str = ""
    send_initial_events: bool | None = None
    shards: ShardSelector | None = None

    @property
    def selects(self) -> bool:
        """Whether there is any selector."""
        return not (self.labels.empty and self.fields.empty and self.shards is None)

    @property
    def is_watch_list(self) -> bool:
        """Whether it is a watch that begins with the state and marks its end (isListWatchRequest)."""
        return bool(self.send_initial_events and self.allow_bookmarks)


def list_options(query: Query, resource: Resource, *, name: str = "", watch: bool = False) -> ListOptions:
    """Decodes and validates the options of a list or watch.

    `name` is the one in the request's path or field selector; `watch`: the path is a /watch/ path.
    Raises StatusError 400 or 422, and 500 for a shard selector that is none.
    """
    options = decode_list_options(query)
    options.fields = options.fields.transform(resource.field_label)
    if name:
        _restrict_to_name(options, name)
    options.watch = options.watch or watch
    if query.raw and (text := query.get("shardSelector")) and features.current().enabled("ShardedListAndWatch"):
        options.shards = _shard_selector(text)
    return options


def _shard_selector(text: str) -> ShardSelector:
    from fakekube.apiserver.registry.sharding import ShardSelectorError, parse_shard_selector  # and CEL

    try:
        return parse_shard_selector(text)
    except ShardSelectorError as problem:
        raise status.generic(500, "", f"invalid shard selector: {problem}") from None


def decode_list_options(query: Query) -> ListOptions:
    """Decodes and validates what the query says, for any resource. Raises StatusError 400 or 422."""
    if not query.raw:
        options = ListOptions(selectors.parse_labels(""), selectors.parse_fields(""))
    else:
        options = _list_options(query)
    _default_initial_events(options)
    errors = _watch_errors(options) if options.watch else _list_errors(options)
    if errors:
        raise status.invalid(META_GROUP, "ListOptions", "", errors)
    return options


def _list_options(query: Query) -> ListOptions:
    watch, bookmarks = boolean(query.all("watch")), boolean(query.all("allowWatchBookmarks"))
    timeout_seconds = convert_option(query, "timeoutSeconds", int64)
    limit = convert_option(query, "limit", int64) or 0
    initial = convert_option(query, "sendInitialEvents", boolean)
    try:
        labels = selectors.parse_labels(_text(query.all("labelSelector")))
        chosen = selectors.parse_fields(_text(query.all("fieldSelector")))
    except selectors.SelectorError as problem:
        raise status.bad_selector(str(problem)) from None
    return ListOptions(
        labels,
        chosen,
        watch,
        bookmarks,
        _text(query.all("resourceVersion")),
        _text(query.all("resourceVersionMatch")),
        timeout_seconds,
        limit,
        _text(query.all("continue")),
        initial,
    )


def _default_initial_events(options: ListOptions) -> None:
    """Sets sendInitialEvents of a watch without a start revision (SetListOptionsDefaults)."""
    if not features.current().enabled(_WATCH_LIST):
        return
    if options.watch and options.send_initial_events is None and not options.match and options.resource_version in ("", "0"):
        options.send_initial_events = True
        options.match = NOT_OLDER_THAN


_MATCH = "resourceVersionMatch"
_NO_CONTINUE = fields.forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")


def _list_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    if options.match:
        if not options.resource_version:
            errors.append(fields.forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.token:
            errors.append(_NO_CONTINUE)
        if options.match not in (EXACT, NOT_OLDER_THAN):
            errors.append(fields.not_supported(_MATCH, options.match, (EXACT, NOT_OLDER_THAN, "")))
        if options.match == EXACT and options.resource_version == "0":
            errors.append(fields.forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        errors.append(fields.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    if options.send_initial_events is not None and options.match != NOT_OLDER_THAN:
        errors.append(fields.forbidden(_MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if options.send_initial_events is not None and not features.current().enabled(_WATCH_LIST):
        text = f"sendInitialEvents is forbidden for watch unless the {_WATCH_LIST} feature gate is enabled"
        errors.append(fields.forbidden("sendInitialEvents", text))
    if options.match:
        if options.send_initial_events is None:
            problem = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(fields.forbidden(_MATCH, problem))
        if options.match != NOT_OLDER_THAN:
            errors.append(fields.not_supported(_MATCH, options.match, (NOT_OLDER_THAN,)))
        if options.token:
            errors.append(_NO_CONTINUE)
    return errors


def _restrict_to_name(options: ListOptions, name: str) -> None:
    """Adds the name in the path as a requirement; a field selector for another name is an error."""
    if options.fields.empty:
        options.fields = selectors.field_equals("metadata.name", name)
    elif options.fields.exact("metadata.name") != name:
        raise status.bad_request("fieldSelector metadata.name doesn't match requested name")


# --- Writes -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class WriteOptions:
    """The options of create, update and patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None
    raw: dict[str, Any] = field(default_factory=dict)
    """The options as an object for admission, as the client sent them; must not be changed."""


_MAX_QUERIES: Final = 250
_MAX_QUERY_LENGTH: Final = 500
_known_options: BoundedCache[tuple[str, str, bool], WriteOptions] = BoundedCache(_MAX_QUERIES)
"""The valid options by query, kind of options, and whether the write is an apply, since clients have few queries of writes."""


def create_options(query: Query) -> WriteOptions:
    """Decodes the options of POST. Raises StatusError 422."""
    return _write_options(query, "CreateOptions")


def update_options(query: Query) -> WriteOptions:
    """Decodes the options of PUT. Raises StatusError 422."""
    return _write_options(query, "UpdateOptions")


def patch_options(query: Query, *, apply: bool) -> WriteOptions:
    """Decodes the options of PATCH; an apply requires fieldManager, other patches forbid force. Raises StatusError 422."""
    return _write_options(query, "PatchOptions", apply=apply)


def _write_options(query: Query, kind: str, *, apply: bool = False) -> WriteOptions:
    key = query.raw, kind, apply
    known = _known_options.get(key)
    if known is not None:
        return known
    options = _decode_write_options(query, kind, apply)
    return _known_options.add(key, options) if len(query.raw) <= _MAX_QUERY_LENGTH else options


def _decode_write_options(query: Query, kind: str, apply: bool) -> WriteOptions:
    force: bool | None = None
    errors: list[FieldError] = []
    if kind == "PatchOptions":
        force = convert_option(query, "force", boolean)
        if apply and not query.get("fieldManager"):
            errors.append(fields.required("fieldManager", "is required for apply patch"))
        if not apply and force is not None:
            errors.append(fields.forbidden("force", "may not be specified for non-apply patch"))
    manager, validation, dry_run = query.get("fieldManager") or "", query.get("fieldValidation") or "", query.all("dryRun")
    errors += [*_field_manager_errors(manager), *_dry_run_errors(dry_run), *_field_validation_errors(validation)]
    if errors:
        raise status.invalid(META_GROUP, kind, "", errors)
    sent = (("dryRun", list(dry_run)), ("fieldManager", manager), ("fieldValidation", validation))
    raw = {name: value for name, value in sent if value}
    return WriteOptions(bool(dry_run), manager, validation or "Warn", force, raw)


def _field_manager_errors(manager: str) -> list[FieldError]:
    errors = []
    if len(bytes_of(manager)) > FIELD_MANAGER_MAX_LENGTH:
        errors.append(fields.too_long("fieldManager", FIELD_MANAGER_MAX_LENGTH))
    for position, character in enumerate(readable(manager)):
        if not character.isprintable():
            problem = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.append(fields.invalid("fieldManager", manager, problem))
    return errors


def _dry_run_errors(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [fields.not_supported("dryRun", list(values), ("All",))]


def _field_validation_errors(value: str) -> list[FieldError]:
    allowed = ("", "Ignore", "Strict", "Warn")
    return [] if value in allowed else [fields.not_supported("fieldValidation", value, allowed)]


# --- Deletes ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class DeleteOptions:
    """The options of delete and deletecollection, from the query or the body."""

    grace_period_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    """Preconditions; None is no condition, an empty string is one that always fails."""
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: bool = False
    raw: dict[str, Any] = field(default_factory=dict)
    """The options as an object for admission."""


_WATCH_LIST = "WatchList"
"""The gate of watches that begin with the present state."""
UNSAFE_DELETION = "ignoreStoreReadErrorWithClusterBreakingPotential"
"""The option that deletes an object which cannot be read from the storage."""
UNSAFE_DRY_RUN = 37
"""The first minor that takes this option with a dry run, and refuses it as the storage does."""


def delete_options_in_query(query: Query) -> dict[str, Any]:
    """Decodes DeleteOptions in the query. Raises StatusError 400."""
    if not query.raw:
        return {}
    raw: dict[str, Any] = {}
    converters: tuple[tuple[str, Callable[[Sequence[str]], Any]], ...] = (
        ("gracePeriodSeconds", int64),
        ("orphanDependents", boolean),
        ("propagationPolicy", _text),
        ("dryRun", list),
        (UNSAFE_DELETION, boolean),
    )
    for name, convert in converters:
        value = convert_option(query, name, convert)
        if value is not None:
            raw[name] = value
    preconditions = {name: query.get(name) for name in ("uid", "resourceVersion") if query.get(name)}
    if preconditions:
        raw["preconditions"] = preconditions
    return raw


def delete_options_from_body(raw: dict[str, Any]) -> DeleteOptions:
    """Validates DeleteOptions that were decoded by their schema. Raises StatusError 422."""
    policy, orphan, dry_run = raw.get("propagationPolicy"), raw.get("orphanDependents"), raw.get("dryRun") or ()
    errors: list[FieldError] = []
    if orphan is not None and policy is not None:
        problem = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(fields.invalid("propagationPolicy", policy, problem))
    if policy is not None and policy not in ("Foreground", "Background", "Orphan"):
        errors.append(fields.not_supported("propagationPolicy", policy, ("Foreground", "Background", "Orphan", "nil")))
    errors += _dry_run_errors(dry_run)
    if raw.get(UNSAFE_DELETION):
        others = ["propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions"]
        if features.current().minor < UNSAFE_DRY_RUN:
            others.insert(0, "dryRun")
        texts = [f"cannot be set together with .{name}" for name in others if raw.get(name) not in (None, [])]
        errors += [fields.invalid(UNSAFE_DELETION, True, text) for text in texts]
    if errors:
        raise status.invalid(META_GROUP, "DeleteOptions", "", errors)
    preconditions = raw.get("preconditions") or {}
    return DeleteOptions(
        raw.get("gracePeriodSeconds"),
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        orphan,
        policy,
        bool(dry_run),
        raw,
    )
