"""Conversion of the objects of resource.k8s.io from and to v1beta1, whose devices and requests have another shape.

A device has its fields in a member `basic`, and a request for one kind of device has the fields of `exactly` itself.

Specified by: pkg/apis/resource/v1beta1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fakekube.base.objects import Object

Convert = Callable[[Object], Object]

#: The fields of a request that have no counterpart in `exactly`.
_OF_REQUEST: Final = ("name", "firstAvailable")


def _of_devices(convert: Convert, *path: str) -> Convert:
    """Returns what converts each item of a list, which stands at a path; other objects stay as they are."""

    def run(obj: Object) -> Object:
        converted: Object = _map_items(obj, path, convert)
        return converted

    return run


def _map_items(value: Any, path: tuple[str, ...], convert: Convert) -> Any:
    if not path:
        return [convert(item) for item in value]
    name, *rest = path
    if not isinstance(value, dict) or not value.get(name):
        return value
    return {**value, name: _map_items(value[name], tuple(rest), convert)}


def _flat_device(device: Object) -> Object:
    name = {"name": device["name"]} if "name" in device else {}
    return {**name, **(device.get("basic") or {})}


def _basic_device(device: Object) -> Object:
    name = {"name": device["name"]} if "name" in device else {}
    return {**name, "basic": {field: value for field, value in device.items() if field != "name"}}


def _exact_request(request: Object) -> Object:
    own = {field: value for field, value in request.items() if field in _OF_REQUEST}
    exactly = {field: value for field, value in request.items() if field not in _OF_REQUEST}
    if not any(value is False or value not in (None, "", 0) for value in exactly.values()):  # adminAccess is a pointer
        return own
    if exactly.get("deviceClassName"):  # SetDefaults_DeviceRequest
        exactly["allocationMode"] = exactly.get("allocationMode") or "ExactCount"
        if exactly["allocationMode"] == "ExactCount":
            exactly["count"] = exactly.get("count") or 1
    return {**own, "exactly": exactly}


def flat_request(request: Object) -> Object:
    own = {field: value for field, value in request.items() if field != "exactly"}
    name = {"name": own.pop("name")} if "name" in own else {}
    return {**name, "deviceClassName": "", **(request.get("exactly") or {}), **own}


SLICES: Final = (_of_devices(_flat_device, "spec", "devices"), _of_devices(_basic_device, "spec", "devices"))
_REQUESTS: Final = ("spec", "devices", "requests")
CLAIMS: Final = (_of_devices(_exact_request, *_REQUESTS), _of_devices(flat_request, *_REQUESTS))
TEMPLATES: Final = (_of_devices(_exact_request, "spec", *_REQUESTS), _of_devices(flat_request, "spec", *_REQUESTS))
