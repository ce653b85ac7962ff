"""The scale subresource of custom resources: replicas at the dotted paths that the definition names.

Specified by: k8s.io/apiextensions-apiserver/pkg/registry/customresource (etcd.go, ScaleREST);
k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go (NestedInt64, NestedString).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError, field, status
from fakekube.apis.rest.strategy import Object, Projection
from fakekube.base.golang.fmt import go_type, plain
from fakekube.base.golang.strconv import MAX_INT32, go_quote

_SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_MAXIMUM = MAX_INT32

#: The value of absent replicas in a scale that is updated.
_UNSET = -(2**31)


def projection(paths: Mapping[str, str]) -> Projection:
    """Returns the scale projection of a kind; `paths` is the scale of the definition's subresources."""
    spec_path, status_path, selector_path = paths["specReplicasPath"], paths["statusReplicasPath"], paths.get("labelSelectorPath")

    def shown(obj: Object, replicas: int) -> Object:
        return {
            "metadata": {name: obj["metadata"][name] for name in _SHOWN_METADATA if name in obj["metadata"]},
            "spec": {"replicas": replicas},
            "status": {
                "replicas": integer_at(obj, status_path) or 0,
                "selector": (string_at(obj, selector_path) or "") if selector_path else "",
            },
        }

    def read(obj: Object) -> Object:
        try:
            replicas = integer_at(obj, spec_path)
            if replicas is None:
                raise status.internal(f"the spec replicas field {go_quote(spec_path)} does not exist")
            return shown(obj, replicas)
        except PathError as error:
            raise status.generic(500, "", str(error)) from None

    def read_leniently(obj: Object, unset: int) -> Object:
        try:
            replicas = integer_at(obj, spec_path)
            return shown(obj, unset if replicas is None else replicas)
        except PathError as error:
            raise status.generic(500, "", str(error)) from None

    def write(obj: Object, scale: Object) -> Object:
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if replicas == _UNSET:
            raise status.bad_request(f"the spec replicas field {go_quote(spec_path)} cannot be empty")
        return with_value(obj, segments(spec_path), replicas)

    return Projection(
        read=read,
        write=write,
        validate=lambda _: [],
        replicas_path=segments(spec_path),
        read_for_update=lambda obj: read_leniently(obj, _UNSET),
        read_written=lambda obj: read_leniently(obj, 0),
    )


def scale_errors(paths: Mapping[str, str], obj: Object) -> Iterator[FieldError]:
    """Validates the replicas in an object's spec."""
    yield from _replicas_errors(paths["specReplicasPath"], obj)


def scale_status_errors(paths: Mapping[str, str], obj: Object) -> Iterator[FieldError]:
    """Validates the replicas in an object's status, and its selector."""
    yield from _replicas_errors(paths["statusReplicasPath"], obj)
    selector_path = paths.get("labelSelectorPath")
    if selector_path is not None:
        try:
            string_at(obj, selector_path)
        except PathError as error:
            yield field.invalid(selector_path, "", str(error))


def _replicas_errors(path: str, obj: Any) -> Iterator[FieldError]:
    try:
        replicas = integer_at(obj, path) or 0
    except PathError as error:
        yield field.invalid(path, 0, str(error))
        return
    if replicas < 0:
        yield field.invalid(path, replicas, "should be a non-negative integer")
    elif replicas > _MAXIMUM:
        yield field.invalid(path, replicas, f"should be less than or equal to {_MAXIMUM}")


class PathError(ValueError):
    """The value at a path has the wrong type; has the error message of the real server."""


def segments(path: str) -> tuple[str, ...]:
    """Returns the field names of a path."""
    return tuple(path.removeprefix(".").split("."))


#: Marks an absent value, as opposed to null.
_NOTHING: Final = object()


def _value_at(obj: Any, path: tuple[str, ...]) -> Any:
    value = obj
    for depth, name in enumerate(path):
        if value is None or value is _NOTHING:
            return _NOTHING
        if not isinstance(value, Mapping):
            raise _misfit(path[: depth + 1], value, "map[string]interface{}")
        value = value.get(name, _NOTHING)
    return value


def _misfit(path: tuple[str, ...], value: Any, wanted: str) -> PathError:
    shown = f".{'.'.join(path)}"
    return PathError(f"{shown} accessor error: {plain(value)} is of the type {go_type(value)}, expected {wanted}")


def integer_at(obj: Any, path: str) -> int | None:
    """Returns the integer at a path, None if it is absent. Raises PathError."""
    value = _value_at(obj, segments(path))
    if value is _NOTHING:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise _misfit(segments(path), value, "int64")
    return value


def string_at(obj: Any, path: str) -> str | None:
    """Returns the string at a path, None if it is absent. Raises PathError."""
    value = _value_at(obj, segments(path))
    if value is _NOTHING:
        return None
    if not isinstance(value, str):
        raise _misfit(segments(path), value, "string")
    return value


def with_value(obj: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Returns the object with a value set at a path; everything beside the path is shared."""
    first, rest = path[0], path[1:]
    if not rest:
        return {**obj, first: value}
    below = obj.get(first)
    return {**obj, first: with_value(below if isinstance(below, Mapping) else {}, rest, value)}
