"""The OpenAPI document of the control API, from which clients can be generated.

Paths, parameters and members come from the table of endpoints; here are the types of the members, the bodies of the responses,
and the schemas of the actions of faults, which come from their classes.

Invariant: every member of every body has a type, and every `$ref` resolves (tests/unit/cluster/control/test_openapi.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from fakekube.cluster.control.members import PREFIX
from fakekube.powers.fault_forms import actions, frequency

Schema = dict[str, Any]

#: A variable in a path.
_PART: Final = re.compile(r"<(int:)?(\w+)>")


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _type(name: str) -> Schema:
    return {"type": name}


STRING: Final = _type("string")
NUMBER: Final[Schema] = {"type": "number", "format": "double"}
INTEGER: Final[Schema] = {"type": "integer", "format": "int64"}
BOOLEAN: Final = _type("boolean")
#: JSON's types of numbers → the schemas, with formats: generated clients use 64 bits.
_SCALARS: Final = {"number": NUMBER, "integer": INTEGER}
OBJECT: Final[Schema] = {"type": "object", "additionalProperties": True}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    found: Schema = {"type": "object", "properties": dict(properties)}
    return {**found, "required": list(required)} if required else found


#: Name of a member → its type, in all bodies but for those of `_MEMBERS_OF`.
_MEMBERS: Final[Mapping[str, Schema]] = {
    "timeout": NUMBER,
    "horizon": NUMBER,
    "seconds": NUMBER,
    "factor": NUMBER,
    "cold": NUMBER,
    "name": STRING,
    "text": STRING,
    "yaml": STRING,
    "dryRun": BOOLEAN,
    "force": BOOLEAN,
    "redact": BOOLEAN,
    "kinds": _array(STRING),
    "namespace": STRING,
    "container": STRING,
    "stream": STRING,
    "lines": _array(STRING),
    "command": _array(STRING),
    "stdin": STRING,
    "times": INTEGER,
    "after": INTEGER,
    "every": INTEGER,
    "probability": NUMBER,
    "lasts": NUMBER,
    "label": STRING,
    "from": {"oneOf": [{"type": "string", "enum": ["fork"]}, _ref("ClusterOrigin")], "nullable": True},
    "flags": OBJECT,
    "feature_gates": {"type": "object", "additionalProperties": BOOLEAN},
    "load": STRING,
    "version": STRING,
    "profile": {"type": "string", "enum": ["apiserver", "envtest", "cluster"]},
    "nodes": INTEGER,
    "seed": INTEGER,
    "entrypoint": _array(STRING),
    "environment": {"type": "object", "additionalProperties": STRING},
    "user": STRING,
    "programs": {"type": "object", "additionalProperties": OBJECT},
    "forever": BOOLEAN,
    "serves": {"type": "object", "additionalProperties": STRING},
    "files": {"type": "object", "additionalProperties": STRING},
    "missing": BOOLEAN,
    "service": STRING,
    "host": STRING,
    "port": INTEGER,
}
#: Path → the types of members that differ.
_MEMBERS_OF: Final[Mapping[str, Mapping[str, Schema]]] = {
    "faults": {"on": _ref("FaultSelector"), "do": _ref("FaultAction")},
    "faults/preview": {"on": _ref("FaultSelector"), "do": _ref("FaultAction")},
    "pods/rules": {"on": _ref("PodSelector"), "do": {"type": "object", "additionalProperties": OBJECT}},
}
#: Method and path → the schema of the response, and its code if that is not 200.
_RESPONSES: Final[Mapping[tuple[str, str], tuple[Schema, int]]] = {
    ("POST", "settle"): (_ref("Settled"), 200),
    ("GET", "clock"): (_ref("Clock"), 200),
    ("POST", "clock/hold"): (_ref("Clock"), 200),
    ("POST", "clock/release"): (_ref("Clock"), 200),
    ("POST", "clock/advance"): (_ref("Clock"), 200),
    ("POST", "clock/next"): (_ref("Clock"), 200),
    ("POST", "clock/scale"): (_ref("Clock"), 200),
    ("GET", "faults"): (_object({"items": _array(_ref("Fault"))}, ["items"]), 200),
    ("POST", "faults"): (_ref("Fault"), 201),
    ("DELETE", "faults"): (_object({"items": _array(_ref("Fault"))}, ["items"]), 200),
    ("GET", "faults/<int:id>"): (_ref("Fault"), 200),
    ("DELETE", "faults/<int:id>"): (_ref("Fault"), 200),
    ("GET", "requests"): (_object({"cursor": INTEGER, "items": _array(_ref("Exchange"))}, ["cursor", "items"]), 200),
    ("GET", "snapshots"): (_object({"items": _array(_ref("Snapshot"))}, ["items"]), 200),
    ("POST", "snapshots"): (_ref("Snapshot"), 201),
    ("GET", "clusters"): (_object({"items": _array(_ref("Cluster"))}, ["items"]), 200),
    ("POST", "clusters"): (_ref("NewCluster"), 201),
    ("GET", "clusters/<name>"): (_ref("Cluster"), 200),
    ("POST", "marks"): (OBJECT, 201),
    ("POST", "recording"): (OBJECT, 201),
    ("POST", "replay"): (OBJECT, 201),
    ("POST", "pods/rules"): (OBJECT, 201),
    ("POST", "images"): (OBJECT, 201),
    ("GET", "services/forward"): (_object({"items": _array(_ref("Forward"))}, ["items"]), 200),
    ("POST", "services/forward"): (_ref("Forward"), 201),
    ("DELETE", "services/forward"): (_object({"items": _array(_ref("Forward"))}, ["items"]), 200),
    ("POST", "services/certificate"): (_ref("ServingCertificate"), 201),
}

_SELECTOR: Final[Mapping[str, Schema]] = {
    "verbs": STRING,
    **dict.fromkeys(("resource", "namespace", "name", "user", "agent", "path"), STRING),
    "own": BOOLEAN,
}
_CLUSTER: Final[Mapping[str, Schema]] = {
    **dict.fromkeys(("name", "url", "version", "profile", "created", "kubeconfig", "token", "control"), STRING),
    "idle": NUMBER,
    "objects": INTEGER,
    "revision": {"oneOf": [INTEGER, STRING]},
}
_EXCHANGE: Final[Mapping[str, Schema]] = {
    "number": INTEGER,
    **dict.fromkeys(("verb", "group", "resource", "subresource", "namespace", "name", "user", "agent", "method", "path"), STRING),
    "query": {"type": "object", "additionalProperties": STRING},
    "headers": {"type": "object", "additionalProperties": STRING},
    "body": {"nullable": True},
    "status": {**INTEGER, "nullable": True},
    "answer": {"nullable": True},
    "revision": {**INTEGER, "nullable": True},
    "started": STRING,
    "seconds": {**NUMBER, "nullable": True},
    "fault": {**STRING, "nullable": True},
    "faults": _array(STRING),
    "events": {**INTEGER, "nullable": True},
    "last_revision": {**INTEGER, "nullable": True},
    "ended": {**STRING, "nullable": True},
}


class Described(Protocol):
    """The part of an endpoint that the document shows."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def members(self) -> Mapping[str, Any]: ...

    @property
    def required(self) -> tuple[str, ...]: ...

    @property
    def parameters(self) -> tuple[str, ...]: ...

    @property
    def raw(self) -> bool: ...


def openapi(endpoints: Iterable[Described]) -> Schema:
    """Returns the OpenAPI document of a table of endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        path = f"{PREFIX}v1/" + _PART.sub(r"{\2}", one.path)
        paths.setdefault(path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.0.3",
        "info": {"title": "fakekube control", "version": "v1"},
        "paths": paths,
        "components": {"schemas": _schemas()},
    }


def _operation(one: Described) -> Schema:
    parameters = [
        *(
            {"name": name, "in": "path", "required": True, "schema": INTEGER if whole else STRING}
            for whole, name in _PART.findall(one.path)
        ),
        *({"name": name, "in": "query", "schema": STRING} for name in one.parameters),
    ]
    schema, code = _RESPONSES.get((one.method, one.path), (None, 200))
    response: Schema = {"description": "done"}
    if schema is not None:
        response["content"] = {"application/json": {"schema": schema}}
    error = {"description": "an error", "content": {"application/json": {"schema": _ref("Error")}}}
    words = re.findall(r"\w+", _PART.sub(r"by_\2", one.path))
    operation: Schema = {
        "operationId": one.method.lower() + "".join(word.title().replace("_", "") for word in words),
        "parameters": parameters,
        "responses": {str(code): response, "default": error},
    }
    if one.raw:
        operation["requestBody"] = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    elif one.members:
        types = {**_MEMBERS, **_MEMBERS_OF.get(one.path, {})}
        body = _object({name: types[name] for name in one.members}, one.required)
        operation["requestBody"] = {"content": {"application/json": {"schema": body}}, "required": bool(one.required)}
    return operation


def _schemas() -> dict[str, Schema]:
    arguments = {f"Fault{_title(action['name'])}": _arguments(action["arguments"]) for action in actions()}
    return {
        **arguments,
        "FaultSelector": _object(_SELECTOR),
        "FaultAction": {
            **_object({action["name"]: _ref(f"Fault{_title(action['name'])}") for action in actions()}),
            "minProperties": 1,
            "maxProperties": 1,
        },
        "Fault": {
            **_object(
                {
                    "id": INTEGER,
                    "label": {**STRING, "nullable": True},
                    "hits": INTEGER,
                    "exhausted": BOOLEAN,
                    "on": OBJECT,
                    "do": OBJECT,
                    **_arguments(frequency())["properties"],
                },
                ["id", "hits", "exhausted", "on", "do"],
            ),
            "additionalProperties": True,
        },
        "Clock": {
            **_object({"now": STRING, "held": BOOLEAN, "moved": {**NUMBER, "nullable": True}}, ["now", "held"]),
            "additionalProperties": True,
        },
        "Settled": _object({"settled": BOOLEAN, "working": _array(STRING)}, ["settled"]),
        "Snapshot": _object({"name": STRING, "revision": INTEGER, "time": STRING}, ["name", "revision", "time"]),
        "Exchange": _object(_EXCHANGE, ["number", "verb", "path"]),
        "PodSelector": _object({**dict.fromkeys(("namespace", "name", "node", "container", "image"), STRING), "labels": {}}),
        "ClusterOrigin": _object({"snapshot": STRING, "cluster": STRING}),
        "NewCluster": _object(
            {name: _CLUSTER[name] for name in ("name", "url", "kubeconfig", "token", "control")},
            ["name", "url", "kubeconfig", "token", "control"],
        ),
        "Cluster": _object(_CLUSTER, ["name", "url", "version", "profile", "created", "idle", "objects", "revision"]),
        "Forward": _object({"service": STRING, "host": STRING, "port": INTEGER}, ["service", "host", "port"]),
        "ServingCertificate": _object(
            dict.fromkeys(("certificate", "key", "caBundle"), STRING), ["certificate", "key", "caBundle"]
        ),
        "Error": _object({"error": STRING}),
    }


def _arguments(found: Iterable[Mapping[str, Any]]) -> Schema:
    """Returns the schema of arguments that `fault_forms` describes."""
    properties = {}
    required = []
    for one in found:
        schema: Schema = {**_SCALARS.get(one["type"], _type(one["type"])), "description": one["description"]}
        if one["default"] is None and not one["required"]:
            schema["nullable"] = True
        properties[one["name"]] = schema
        if one["required"]:
            required.append(one["name"])
    return _object(properties, required)


def _title(name: str) -> str:
    return "".join(word.title() for word in name.split("_"))
