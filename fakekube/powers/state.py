"""The whole state of a cluster as a document: readable YAML or a compact form, optionally with its history.

    apiVersion: fakekube.dev/v1
    kind: ClusterState
    version: "1.36"
    revision: 260
    resources:
      configmaps:
        - {key: default/a, created: 240, revision: 251, object: {…}}
    history:                      # if it was saved
      since: 200
      resources:
        configmaps:
          floor: 200
          before: []              # the versions before the first event of each key
          events:
            - {key: default/a, created: 240, revision: 240, age: 12.5, object: {…}}   # without an object: deleted

The compact form is the same document as JSON, compressed by gzip.

A state that a cluster of another minor saved becomes one of this minor, as with an upgrade or a downgrade of an API server that
keeps its etcd: fields that the minor does not know are dropped, and kinds that it does not know are refused.

Invariant: loading a saved document results in objects with the same uids and revisions, and the same history. Keys, uids and
revisions stay in another minor, too, and a custom resource stays as it is.

Specified by: how kube-apiserver decodes what it reads from etcd (k8s.io/apiserver/pkg/storage/etcd3); a kind that is not
registered cannot be read.
"""

from __future__ import annotations

import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery import data
from fakekube.apimachinery.codecs import DecodeError, json, yaml
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.features import emulating
from fakekube.apimachinery.schema import defaults
from fakekube.apimachinery.schema.decode import decode
from fakekube.apimachinery.schema.model import Type
from fakekube.apis.rest.resource import Resource
from fakekube.apis.well_known import AUTO_REGISTER_MANAGED_LABEL
from fakekube.base.objects import Object
from fakekube.store import Bucket, Contents, Event, Record, Snapshot, rebuilt

if TYPE_CHECKING:
    from fakekube.apiserver.registry.scope import Backend


API_VERSION, KIND = "fakekube.dev/v1", "ClusterState"

_Record = Record[Document]

_GZIP = b"\x1f\x8b"
#: The maximum size of a state, in bytes; of a compact one uncompressed.
LIMIT = 128 << 20
#: The maximum number of values in a state: each takes a hundred bytes of memory.
MAX_VALUES = 6_000_000
#: The maximum depth of a state.
MAX_DEPTH = 1_000
_CHUNK = 1 << 20
_INT64 = 1 << 63
#: The largest number of a float64.
_LARGEST = sys.float_info.max
#: Of a revision: those of a fake cluster may exceed an int64.
_MAX_DIGITS = 40
#: Seconds.
_MAX_AGE = 1e10
_HEAD = re.compile(rb'^kind: ClusterState\s*$|^\s*\{.*"kind":\s*"ClusterState"', re.MULTILINE | re.DOTALL)


class StateError(ValueError):
    """A document is not a valid state of a cluster of this minor version; the text is the reason."""


class StateTooLargeError(StateError):
    """A document exceeds `LIMIT` or `MAX_VALUES`."""


@dataclass(slots=True, frozen=True)
class SavedState:
    """A state that was read from a document."""

    snapshot: Snapshot[Document]
    since: int | None
    """The revision at which its history begins; None if it has none."""
    version: str = ""
    """The minor of the cluster that saved it."""


# --- Writing ----------------------------------------------------------------------------------------------------------


def state_of(backend: Backend, *, history: bool = False) -> Object:
    """Returns the state of a cluster as plain data."""
    store = backend.store
    buckets = store.buckets()
    state: Object = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "version": backend.settings.version,
        "revision": _number(store.revision),
        "resources": {bucket.name: [*map(_row, bucket.page().records)] for bucket in buckets if bucket.has_keys()},
    }
    if history:
        now = backend.clock.monotonic()
        pasts = {bucket.name: past for bucket in buckets if (past := _describe_past(bucket, now))}
        state["history"] = {"since": _number(store.compacted), "resources": pasts}
    return state


def _number(revision: int) -> int | str:
    """Returns a revision as a number, or as a string if it does not fit into an int64."""
    return revision if revision < _INT64 else str(revision)


def _row(record: _Record) -> Object:
    return {
        "key": record.key,
        "created": _number(record.created),
        "revision": _number(record.revision),
        "object": record.value.object,
    }


def _describe_past(bucket: Bucket[Document], now: float) -> Object:
    """Returns the events of a bucket that are not compacted; an empty object if the bucket was never used."""
    events, floor = bucket.all_events()
    return past_of(events, floor, now) if events or bucket.has_keys() else {}


def past_of(events: Iterable[Event[Document]], floor: int, now: float) -> Object:
    """Returns events as plain data.

    Args:
        events: oldest first.
        floor: the revision after which they are complete.
        now: the present time of the clock, to which their ages are relative.
    """
    before: dict[str, _Record | None] = {}
    rows = []
    for event in events:
        before.setdefault(event.key, event.previous)
        age = round(max(now - event.time, 0.0), 6)
        if event.record is not None:
            rows.append({**_row(event.record), "age": age})
        else:
            rows.append({"key": event.key, "revision": _number(event.revision), "age": age})
    return {"floor": _number(floor), "before": [_row(record) for record in before.values() if record is not None], "events": rows}


def write_state(state: Object, *, compact: bool = False) -> bytes:
    """Encodes a state as YAML, or in the compact form."""
    return gzip.compress(json.dumps(state), compresslevel=6, mtime=0) if compact else yaml.dumps(state)


# --- Reading ----------------------------------------------------------------------------------------------------------


def is_state_text(text: bytes) -> bool:
    """Reports whether a text looks like a saved state in either form."""
    return text.startswith(_GZIP) or (b"ClusterState" in text and _HEAD.search(text) is not None)


def read_state(text: bytes, version: str, now: float = 0.0, resources: Iterable[Resource] = ()) -> SavedState:
    """Reads a saved state.

    Args:
        text: YAML, or the compact form.
        version: the minor version of the cluster that loads it.
        resources: the built-in resources that it serves, for a state of another minor.
        now: the present time of its clock, to which the ages of saved events are relative.

    Raises StateError.
    """
    value = _value_of(text)
    if not isinstance(value, Mapping) or (value.get("apiVersion"), value.get("kind")) != (API_VERSION, KIND):
        raise StateError(f"no {KIND} of {API_VERSION}")
    try:
        check_depth(value)
        state = _state(value if value.get("version") == version else _adapt(value, version, resources), now)
        return replace(state, version=value["version"])
    except StateError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise StateError(f"the state is damaged: {problem!r}") from None


def _adapt(value: Mapping[str, Any], version: str, resources: Iterable[Resource]) -> Mapping[str, Any]:
    try:
        return adapt_state(value, version, resources)
    except OtherMinorError as problem:
        raise StateError(str(problem)) from None


def state_version(text: bytes) -> str:
    """Returns the minor version of a saved state; "" if it has none. Raises StateError."""
    value = _value_of(text)
    version = value.get("version") if isinstance(value, Mapping) else None
    return version if isinstance(version, str) else ""


def check_depth(value: Any) -> None:
    """Raises ValueError for data that is nested more than `MAX_DEPTH` levels deep, or has numbers that JSON does not have."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
        following: list[Any] = []
        for one in level:
            for inner in one.values() if isinstance(one, dict) else one if isinstance(one, list) else ():
                if isinstance(inner, dict | list):
                    following.append(inner)
                elif isinstance(inner, int | float) and not -_LARGEST <= inner <= _LARGEST:
                    raise ValueError("a number is too large")
        level = following


def _value_of(text: bytes) -> Any:
    try:
        plain = _decompress(text) if text.startswith(_GZIP) else text
        if len(plain) > LIMIT:
            raise StateTooLargeError(f"the state has more than {LIMIT} bytes")
        if plain.count(b",") + plain.count(b"[") + plain.count(b"{") + plain.count(b"\n") > MAX_VALUES:
            raise StateTooLargeError(f"the state has more than {MAX_VALUES} values")
        return yaml.loads(plain)[0] if plain is text else json.reread(plain)
    except StateError:
        raise
    except RecursionError:
        raise StateError("the state is damaged: it is nested too deeply") from None
    except DecodeError as error:
        raise StateError(f"no YAML: {error}") from None
    except ValueError as error:
        raise StateError(f"the state is damaged: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise StateError(f"the state is damaged: {error}") from None


def _decompress(text: bytes) -> bytes:
    """Decompresses up to `LIMIT` bytes, and a little more. Raises the errors of gzip."""
    plain = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(text)) as file:
        while len(plain) <= LIMIT and (part := file.read(_CHUNK)):
            plain += part
    return bytes(plain)


def _state(value: Mapping[str, Any], now: float) -> SavedState:
    history = value.get("history")
    pasts: Mapping[str, Any] = {} if history is None else history["resources"]
    revision = _integer(value["revision"], "revision")
    contents = {}
    for bucket in {**value["resources"], **pasts}:
        rows = value["resources"].get(bucket) or ()
        keys = [row["key"] for row in rows]
        if len(set(keys)) < len(keys):
            raise ValueError(f"{bucket} has two objects with the same key")
        contents[bucket] = _contents(map(_record, rows), pasts.get(bucket), now)
        newest = max((record.revision for record in contents[bucket].versions.heads.values()), default=0)
        if newest > revision:
            raise ValueError(f"{bucket} has the revision {newest}, which is later than that of the state")
    return SavedState(Snapshot(revision, contents), None if history is None else _integer(history["since"], "since"))


def _contents(records: Iterable[_Record], past: Mapping[str, Any] | None, now: float) -> Contents[Document]:
    if past is None:
        return rebuilt(records)
    changes = list(_changes(past["events"], now))
    changed = {record.key for record, _, _ in changes}
    before = [*(record for record in records if record.key not in changed), *map(_record, past["before"])]
    return rebuilt(before, changes, _integer(past["floor"], "floor"))


def _record(row: Mapping[str, Any]) -> _Record:
    created, revision = _integer(row["created"], "created"), _integer(row["revision"], "revision")
    if created > revision:
        raise ValueError(f"an object was created at {created}, after its revision {revision}")
    return Record(_text(row["key"], "key"), Document(_object(row["object"])), created, revision)


def _integer(value: Any, name: str) -> int:
    """Returns a revision, which may be a string. Raises ValueError."""
    if isinstance(value, str) and len(value) <= _MAX_DIGITS and value.isascii() and value.isdigit():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise ValueError(f"{name} is no revision")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is no text")
    return value


def _object(value: Any) -> Object:
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        raise ValueError("an object has no metadata")
    for name in ("name", "uid"):
        if not isinstance(value["metadata"].get(name), str) or not value["metadata"][name]:
            raise ValueError(f"an object has no {name}")
    return value


def _changes(rows: Iterable[Mapping[str, Any]], now: float) -> Iterator[tuple[_Record, bool, float]]:
    last = 0
    for row in rows:
        revision, age = _integer(row["revision"], "revision"), float(row["age"])
        if not 0 <= age < _MAX_AGE:
            raise ValueError(f"the age {age} is none")
        time = now - age
        if revision <= last:
            raise ValueError(f"the events are not in the order of their revisions: {revision} follows {last}")
        last = revision
        if "object" in row:
            yield _record(row), False, time
        else:
            yield Record(_text(row["key"], "key"), Document({}), 0, revision), True, time


# --- Makes a state that a cluster of another minor saved one of this minor --------------------------------------------


Value = Mapping[str, Any]

_SHOWN: Final = 3
"""The largest number of objects of an unknown kind that an error names."""


class OtherMinorError(ValueError):
    """The state is one of an unknown minor, or has objects of kinds that the minor does not know, which the text names."""


def adapt_state(state: Value, version: str, resources: Iterable[Resource]) -> Value:
    """Returns the state as one of a minor.

    Args:
        state: the document of a state.
        version: the minor of the cluster that loads it.
        resources: the built-in resources that it serves.

    Raises OtherMinorError.
    """
    if state.get("version") == version:
        return state
    if state.get("version") not in data.RELEASES:
        raise OtherMinorError(f"the state is one of Kubernetes {state.get('version')}; known: {', '.join(data.RELEASES)}")
    known = list(resources)
    types = {resource.bucket: resource.storage_type for resource in known if not resource.custom}
    stored = {one.bucket: one for one in known if not one.custom and one.storage_type is one.type}
    served = {(resource.group, resource.version) for resource in known}
    rows: Mapping[str, list[dict[str, Any]]] = state["resources"]
    buckets = {resource.plural: resource.bucket for resource in known if not resource.custom}
    custom = {row["key"] for row in rows.get(buckets["customresourcedefinitions"], ())}
    readable = types.keys() | custom
    _refuse_unknown({name: found for name, found in rows.items() if found and name not in readable}, version)
    made = {
        name: [_adapt_row(row, types.get(name), stored.get(name)) for row in found]
        for name, found in rows.items()
        if name in readable
    }
    services_bucket = buckets["apiservices"]
    services = made.get(services_bucket, [])
    stale = {row["key"] for row in services if _is_stale(row["object"], served)}
    made[services_bucket] = [row for row in services if row["key"] not in stale]
    adapted_state = {**state, "version": version, "resources": made}
    if state.get("history") is not None:
        pasts = state["history"]["resources"]
        kept = {
            name: {
                **past,
                **{
                    part: [_adapt_row(row, types.get(name), stored.get(name)) for row in past[part]]
                    for part in ("before", "events")
                },
            }
            for name, past in pasts.items()
            if name in readable and name != services_bucket
        }
        adapted_state["history"] = {**state["history"], "resources": kept}
    return adapted_state


def _refuse_unknown(unknown: Mapping[str, list[dict[str, Any]]], version: str) -> None:
    if unknown:
        texts = [f"{name} ({', '.join(row['key'] for row in rows[:_SHOWN])})" for name, rows in sorted(unknown.items())]
        raise OtherMinorError(f"Kubernetes {version} does not serve {', '.join(texts)}")


def _is_stale(service: Value, served: set[tuple[str, str]]) -> bool:
    """Reports whether an APIService is one that the server makes itself, of a group version that it does not serve."""
    is_own = AUTO_REGISTER_MANAGED_LABEL in (service["metadata"].get("labels") or {})
    return is_own and (service["spec"].get("group", ""), service["spec"]["version"]) not in served


def _adapt_row(row: Value, type_: Type | None, resource: Resource | None) -> dict[str, Any]:
    """Returns a row as the minor reads it: without unknown fields, and with the defaults of the stored version."""
    if type_ is None or "object" not in row:
        return dict(row)
    obj = decode(type_, row["object"])
    if resource is not None:
        with emulating(resource.emulation):
            defaults.apply(resource.emulation.types, resource.group, resource.version, resource.kind, obj)
            resource.strategy.default(obj)
    return {**row, "object": obj}
