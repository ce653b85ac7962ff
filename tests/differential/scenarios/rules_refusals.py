"""What whole families of rules say where few recordings reach them: best matches of schemas, limits of pods with several containers,
values that a policy computes, keys that the storage refuses, what a new server still knows.
"""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

from tests.differential.client import MERGE, STRATEGIC, Client
from tests.differential.definitions import DRY, definition, make, note, obj, served
from tests.differential.registry import scenario
from tests.differential.scenarios.policies import mutating, patched, policed_each
from tests.differential.scenarios.rules_branches import space
from tests.differential.scenarios.rules_metadata import KINDS, WRONG, placed, with_metadata
from tests.differential.steps import config_map, deployment, maps, pod

# fmt: off

Object = dict[str, Any]

NUMBER, TEXT = {"type": "integer"}, {"type": "string"}
#: Of a value with fields of each type.
STRUCTURE: Object = {
    "a": {"type": "array", "items": NUMBER}, "b": {**TEXT, "format": "date"}, "c": {"type": "object", "additionalProperties": NUMBER}, "d": {"type": "number"},
    "e": {"type": "array", "nullable": True, "items": {**TEXT, "nullable": True}}, "f": {"type": "boolean"}, "g": {"type": "object", "properties": {"h": TEXT, "i": {"type": "array", "items": TEXT}}}, "j": {"x-kubernetes-int-or-string": True},
}
BRANCHES: list[Object] = [
    {"required": ["x"]}, {"properties": {"a": {"minItems": 4}}}, {"properties": {"a": {"items": {"minimum": 10}}}}, {"properties": {"b": {"pattern": "^z"}}, "required": ["x"]}, {"properties": {"b": {"format": "date-time"}}},
    {"properties": {"c": {"minProperties": 4}}}, {"properties": {"c": {"maxProperties": 0}}}, {"properties": {"d": {"maximum": 1, "exclusiveMaximum": True}, "f": {"enum": [False]}}}, {"properties": {"e": {"items": {"minLength": 9}}}, "minProperties": 9},
    {"properties": {"g": {"required": ["x"], "properties": {"h": {"maxLength": 0}, "i": {"items": {"enum": ["q"]}}}}}}, {"not": {"required": ["a"]}}, {"properties": {"j": {"enum": ["q", 9]}, "d": {"multipleOf": 7}}},
]
NESTED: list[Object] = [
    *({name: [BRANCHES[first], BRANCHES[second]]} for name in ("allOf", "anyOf", "oneOf") for first, second in ((0, 2), (1, 9), (6, 3))), {"oneOf": [{"required": ["a"]}, {"required": ["d"]}]}, {"anyOf": [{"required": ["a"]}, BRANCHES[0]], "properties": {"d": {"maximum": 0}}},
]
VALUES: list[Object] = [
    {"a": [1, 2, 3], "b": "2026-01-01", "c": {"k": 1, "l": 2}, "d": 2.5, "e": ["t", None], "f": True, "g": {"h": "u", "i": ["v", "w"]}, "j": 1},
    {"a": [], "c": {}, "e": None, "g": {"i": []}, "j": "r"}, {"a": [1], "d": 3}, {"b": "2026-01-01", "d": 1.0, "f": False, "g": {"h": "u"}}, {"e": [None], "c": {"k": 1}, "j": 9},
]


@scenario
def best_matches(c: Client) -> None:
    """Which of several schemas that a value does not match is told: each two of them, in one order (anyOf) and in the other (oneOf), for values of each type."""
    pairs = [*itertools.combinations(BRANCHES, 2), *itertools.product(NESTED, (BRANCHES[0], BRANCHES[5]))]
    fields = {f"f{number}": {"type": "object", "properties": STRUCTURE, "anyOf": list(pair)} for number, pair in enumerate(pairs)}
    fields |= {f"g{number}": {"type": "object", "properties": STRUCTURE, "oneOf": list(reversed(pair))} for number, pair in enumerate(pairs)}
    body = definition(c, obj({"spec": obj(fields)}))
    with served(c, body) as path:
        for value in VALUES:
            c.post(path, make(body, spec=dict.fromkeys(fields, value)), DRY)


#: Numbers beside an integer, and at the bounds of what a float holds exactly.
CLOSE = (1.0, 1.5, -1.5, 0.1, 1.0000000001, 0.9999999999, 1.000000001, 0.999999999, 1 + 2**-40, 2 - 2**-40, -1.0000000001, 4503599627370497.5, 9007199254740991.0, 9007199254740992.0, 9007199254740993, 1e16, 1e300, 2**63 - 1, 2**63, -(2**63), True, "1", None, [], {})


@scenario
def numbers_of_custom_resources(c: Client) -> None:
    """Values beside whole numbers: their type, bounds, multiples, enums, formats."""
    schemas: list[Object] = [
        NUMBER, {**NUMBER, "format": "int32"}, {**NUMBER, "format": "int64"}, {"type": "number", "format": "float"}, {"type": "number", "format": "double"}, {**NUMBER, "enum": [1, 2]}, {"type": "number", "enum": [1, 1.5, 2]}, {"type": "number", "multipleOf": 0.5}, {"type": "number", "multipleOf": 3}, {"type": "number", "minimum": 1, "exclusiveMinimum": True},
        {"type": "number", "minimum": 1.0000000001}, {"type": "number", "maximum": 1}, {"type": "number", "maximum": 9007199254740992, "exclusiveMaximum": True}, {**NUMBER, "maximum": 1, "exclusiveMaximum": True}, {"x-kubernetes-int-or-string": True, "enum": [1, "1"]}, {"x-kubernetes-int-or-string": True, "anyOf": [{"maximum": 1}, {"pattern": "^2"}]}, {"type": "boolean", "enum": [True]}, {"type": "array", "items": NUMBER, "uniqueItems": False, "maxItems": 0}, {"type": "object", "additionalProperties": NUMBER, "maxProperties": 0},
        {"type": "string", "enum": ["1", "\x01", "A"]}, {**NUMBER, "nullable": True, "default": 1}, {"type": "number", "nullable": True, "enum": [1]},
    ]
    body = definition(c, obj({"spec": obj({f"f{number}": schema for number, schema in enumerate(schemas)})}))
    with served(c, body) as path:
        for value in CLOSE:
            c.post(path, make(body, spec={f"f{number}": value for number in range(len(schemas))}), DRY)


LONG = [".".join([*["a" * 63] * count, last]) for count in (3, 4) for last in ("a", "a" * 61, "a" * 62)]
DAY = "2026-01-01T"
#: Formats, and texts that are near their borders.
FORMATS = {
    ("hostname", "k8s-short-name", "k8s-long-name"): ["", "a-b", "a--b", "-a", "a-", "a_b", "A", "a.b", "a.1", "a.b-c", "é.com", "+.ab", "a..b", "a.", "a" * 63, "a" * 64, *LONG],
    ("email", "uri"): ["a", "https://a", "http://a b", "//a", "a:b", "/a", "a@b", "<a@b>", "a b@c", "@b", "a@"],
    ("date", "date-time", "datetime"): [
        *(f"{DAY}{time}" for time in ("23:00:00Z", "24:00:00Z", "23:59:59z", "23:60:00Z", "23:59:60Z", "00:00:00", "00:00:00,1Z", "00:00:00.Z", "00:00:00+1", "00:00:00-99:99", "00:00:00ZT", "0:00:00Z")), "2026-01-01 00:00:00Z", "T00:00:00Z",
        "2026-01-31", "2026-01-32", "2026-02-29", "2024-02-29", "1900-02-29", "0000-02-29", "2026-00-01", "2026-13-01", "2026-12-00", "2026-1-01",
    ],
    ("duration",): ["1h", "1h1m", "1.5h", "1 day", "3w", "1us", "1x", "h", "-1s"],
    ("ipv4", "ipv6", "cidr"): ["1.2.3.4", "1.2.3", "01.2.3.4", "1.2.3.4/24", "1.2.3.4/33", "::", "::1/128", "::1/129", "::ffff:1.2.3.4", "1::2::3", "fe80::1%a"],
    ("mac",): ["00:00:5e:00:53:01", "00-00-5e:00-53-01", "0000.5e00.5301", "00:00:5e:00:53", "02:00:5e:10:00:00:00:01", "00:00:5e:00:53:0g"],
    ("uuid", "uuid3", "uuid4", "uuid5"): [*(f"6ba7b810-9dad-{version}1d1-{variant}0b4-00c04fd430c8" for version, variant in ("18", "38", "48", "58", "47", "5c")), "6ba7b8109dad41d180b400c04fd430c8", "6BA7B810-9DAD-51D1-B0B4-00C04FD430C8", "6ba7b810-9dad-41d1-80b4-00c04fd430c"],
    ("byte", "password"): ["eA==", "eA=", "eA", "e A==", "_-==", "x==="],
    ("isbn", "isbn10", "isbn13"): ["3401013777", "340101319X", "3-401-01319-X", "3401013778", "9783401013190", "978-3-401-01319-0", "9783401013191", "0-8044-2957-x"],
    ("creditcard",): ["4111111111111111", "4111 1111-1111 1111", "4111111111111112", "411111111111", "4222222222222", "5105105105105100", "5605105105105100", "6011111111111117", "6511111111111117", "378282246310005", "358282246310005", "30569309025904", "2131000000000008", "4000050000000000", "4000000000000408"],
    ("ssn",): ["123-45-6789", "123 45 6789", "123456789", "12-345-6789"], ("bsonobjectid",): ["507f1f77bcf86cd799439011", "507F1F77BCF86CD79943901", "507f1f77bcf86cd79943901g"], ("other",): ["a"],
    ("hexcolor", "rgbcolor"): ["#fff", "fff", "#FFFFFF", "#ffff", "#ggg", "rgb(0,0,0)", "rgb(255, 255, 255)", "rgb(256,0,0)", "rgb( 1,2,3 )", "rgb(01,2,3)", "rgb(100%,0,0)"],
}


@scenario
def formats_of_custom_resources(c: Client) -> None:
    """Texts near the borders of each format, in one object."""
    texts = {name: given for names, given in FORMATS.items() for name in names}
    body = definition(c, obj({"spec": obj({f"{name}s": {"type": "array", "items": {**TEXT, "format": name}} for name in texts})}))
    with served(c, body) as path:
        c.post(path, make(body, spec={f"{name}s": given for name, given in texts.items()}), DRY)


@scenario
def metadata_of_embedded_objects(c: Client) -> None:
    """Embedded objects whose kind, apiVersion or metadata are of another type, in fields, lists and maps; in creates, updates and patches."""
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    body = definition(c, obj({"spec": obj({"one": embedded, "list": {"type": "array", "items": embedded}, "map": {"type": "object", "additionalProperties": embedded}})}))
    wrong = ({"kind": 1}, {"kind": None}, {"apiVersion": 1}, {"apiVersion": {}}, {"metadata": {"name": 1}}, {"metadata": {"labels": {"a": 1}}}, {"metadata": {"unknown": 1, "name": "n"}}, {"metadata": {"generation": "x"}})
    with served(c, body) as path:
        c.post(path, make(body, spec={}), silent=True)
        for more in wrong:
            value = {"kind": "K", "apiVersion": "v1", **more}
            for spec in ({"one": value}, {"list": [value]}, {"map": {"k": value}}):
                c.post(path, make(body, "new", spec=spec), DRY)
                c.patch(f"{path}/one", {"spec": spec}, MERGE, DRY)


def asking(requests: str, limits: str = "") -> Object:
    return {"name": f"c{requests}", "image": "i", "resources": {"requests": {"cpu": requests}, **({"limits": {"cpu": limits}} if limits else {})}}


@scenario
def limits_of_several_containers(c: Client) -> None:
    """A LimitRange of pods whose containers together ask for more, or have a lower limit, than one could; and of claims by other resources."""
    for name, limit in (("least", {"min": {"cpu": "2"}}), ("most", {"max": {"cpu": "2"}}), ("ratio", {"maxLimitRequestRatio": {"cpu": "2"}})):
        path = space(c, name)
        c.post(f"{path}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Pod", **limit}]}}, silent=True)
        for containers in ([asking("3"), asking("1", "1")], [asking("1"), asking("1", "1")], [asking("2"), asking("1", "2")], [asking("1", "2"), asking("2", "6")], [asking("1", "2"), asking("1")]):
            c.post(f"{path}/pods", pod(containers=containers), DRY)
            c.post(f"{path}/pods", pod(containers=containers[:1], initContainers=containers[1:]), DRY)
            c.post(f"{path}/pods", pod(containers=containers[:1], initContainers=[{**containers[1], "restartPolicy": "Always"}]), DRY)
        c.delete(path, silent=True)
    path = space(c, "claims")
    c.post(f"{path}/persistentvolumeclaims", claim("held", storage="9", finalizers=["a.b/c"]), silent=True)
    c.post(f"{path}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "PersistentVolumeClaim", "min": {"storage": "2", "example.com/a": "2"}, "max": {"storage": "4", "example.com/b": "4"}}]}}, silent=True)
    for requests in ({}, {"storage": "3"}, *({"storage": "3", "example.com/a": first, "example.com/b": second} for first, second in (("1", "3"), ("2", "4"), ("3", "5"))), {"storage": "1"}, {"storage": "5"}):
        c.post(f"{path}/persistentvolumeclaims", claim("new", **requests), DRY)
    for _ in range(2):
        c.patch(f"{path}/persistentvolumeclaims/held", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY)
        c.patch(f"{path}/persistentvolumeclaims/held/status", {"status": {"phase": "Bound"}}, MERGE, DRY)
        c.delete(f"{path}/persistentvolumeclaims/held", silent=True)
    c.patch(f"{path}/persistentvolumeclaims/held", {"metadata": {"finalizers": None}}, MERGE, silent=True)
    c.delete(path, silent=True)


def claim(name: str, finalizers: list[str] | None = None, **requests: str) -> Object:
    return {"metadata": {"name": name, "finalizers": finalizers}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": requests}}}


@scenario
def limits_of_terminating_pods(c: Client) -> None:
    """A pod that is being deleted may be resized beyond a LimitRange."""
    path = space(c, "ending")
    c.post(f"{path}/pods", pod("p", nodeName="n", containers=[asking("1")]), silent=True)
    c.post(f"{path}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}, silent=True)
    for _ in range(2):
        c.patch(f"{path}/pods/p/resize", {"spec": {"containers": [{"name": "c1", "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}}]}}, STRATEGIC, DRY)
        c.delete(f"{path}/pods/p", silent=True)
    c.delete(f"{path}/pods/p", {"gracePeriodSeconds": 0}, silent=True)
    c.delete(path, silent=True)


#: What a policy makes of an object: values of types that do not belong there, objects of other kinds, and names of types that do not fit.
PATCHES = {
    "types": "[JSONPatch{op: 'add', path: '/metadata/labels', value: Object.metadata{labels: {'a': 'b'}, name: 'x'}}]", "wrong": "[JSONPatch{op: 'add', path: '/data', value: Object.data{a: Object.spec{}}}]",
    "several": "[JSONPatch{op: 'add', path: '/data', value: Object{spec: Object.other{}, metadata: Object.spec{a: Object.b{}}}}]", "duration": "[JSONPatch{op: 'add', path: '/data/d', value: duration('1h')}]", "time": "[JSONPatch{op: 'add', path: '/data/t', value: timestamp('2026-01-01T00:00:00Z')}]",
    "bytes": "[JSONPatch{op: 'add', path: '/data/b', value: b'abc'}]", "type": "[JSONPatch{op: 'add', path: '/data/y', value: type(1)}]", "infinite": "[JSONPatch{op: 'add', path: '/data/f', value: 1.0 / 0.0}]", "keys": "[JSONPatch{op: 'add', path: '/data', value: {1: 'a'}}]", "infinite-list": "[JSONPatch{op: 'add', path: '/data', value: [-1.0 / 0.0]}]", "infinite-map": "[JSONPatch{op: 'add', path: '/data', value: {'a': 0.0 / 0.0}}]", "infinite-object": "[JSONPatch{op: 'add', path: '/data', value: Object.data{a: 1.0 / 0.0}}]",
    "unset-list": "[JSONPatch{op: 'add', path: '/data', value: [optional.none()]}]", "unset-map": "[JSONPatch{op: 'add', path: '/data', value: {'a': optional.none()}}]", "unset-object": "[JSONPatch{op: 'add', path: '/data', value: Object.data{a: optional.none()}}]", "unset": "[JSONPatch{op: 'add', path: '/data/o', value: optional.none()}]",
    "set": "[JSONPatch{op: 'add', path: '/data/o', value: optional.of('x')}]", "null": "[JSONPatch{op: 'add', path: '/data/n', value: null}]", "root": "[JSONPatch{op: 'replace', path: '', value: [1]}]", "text": "[JSONPatch{op: 'replace', path: '', value: 'x'}]", "version": "[JSONPatch{op: 'replace', path: '/apiVersion', value: 'apps/v1'}]",
    "other": "[JSONPatch{op: 'replace', path: '/apiVersion', value: 'apps/v1'}, JSONPatch{op: 'replace', path: '/kind', value: 'Deployment'}, JSONPatch{op: 'remove', path: '/data'}]", "number": "[JSONPatch{op: 'replace', path: '/kind', value: 1}]", "sibling": "[JSONPatch{op: 'replace', path: '/kind', value: 'Secret'}, JSONPatch{op: 'remove', path: '/data'}]", "options": "[JSONPatch{op: 'replace', path: '/kind', value: 'DeleteOptions'}]",
}
CONFIGURATIONS = {
    "count": "Object{spec: Object.spec{replicas: 'x'}}", "time": "Object{metadata: Object.metadata{creationTimestamp: 'x'}}", "quantity": "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{overhead: {'cpu': 'x'}}}}}", "port": "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'main', ports: [Object.spec.template.spec.containers.ports{containerPort: 1.5}]}]}}}}",
    "large": "Object{spec: Object.spec{replicas: 3000000000}}", "wrong": "Object{spec: Object.spec{template: Object.spec.template{metadata: Object.metadata{}}}}", "duration": "Object{metadata: Object.metadata{labels: {'a': duration('1h')}}}", "null": "Object{spec: Object.spec{replicas: null}}",
}


@scenario
def mutations_of_odd_values(c: Client) -> None:
    """JSON patches with values of types that JSON has not, or that make another kind of the object."""
    with policed_each(c, {name: mutating(patched(expression)) for name, expression in PATCHES.items()}, "Mutating"):
        for name in PATCHES:
            c.post(maps(c), config_map(name), DRY)


@scenario
def configurations_of_odd_values(c: Client) -> None:
    """Apply configurations whose values cannot be read as the fields they are for."""
    with policed_each(c, {name: mutating(expression) for name, expression in CONFIGURATIONS.items()}, "Mutating", "CREATE", "deployments", "apps"):
        for name in CONFIGURATIONS:
            c.post(f"/apis/apps/v1/namespaces/{c.ns}/deployments", deployment(name), DRY)


#: What many statuses have, of wrong values.
STATUS: Object = {"replicas": -1, "observedGeneration": -1, "conditions": [{"type": "", "status": "X", "reason": "a b", "observedGeneration": -1, "lastTransitionTime": None}], "phase": "X"}


@scenario
def statuses_with_wrong_metadata(c: Client) -> None:
    """Which errors of the status and of the metadata a write of the status tells, and in which order: of each kind."""
    for _, collection, valid in KINDS:
        collection, base = placed(c, collection, valid)
        path = f"{collection}/{base['metadata']['name']}"
        c.post(collection, base, silent=True)
        stored = c.get(path, silent=True).json
        for metadata, state in ((WRONG, STATUS), ({}, STATUS), (WRONG, {})):
            if c.put(f"{path}/status", with_metadata({**stored, "status": {**(stored.get("status") or {}), **state}}, **metadata), DRY).status == 404:
                break
        c.delete(path, {"gracePeriodSeconds": 0}, silent=True)


HEX = "0123456789abcdefABCDEF0123456789"
SHARES = (HEX, HEX[:-1], f"{HEX}0", f"{HEX[:-1]}g", "x" * 36, "x" * 38, "x" * 45, "x" * 46, "f" * 38, "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "6BA7B810-9dad-41d1-80b4-00c04fd430c8", "{6ba7b810-9dad-41d1-80b4-00c04fd430c8}", "urn:uuid:6ba7b810-9dad-41d1-80b4-00c04fd430c8", "6ba7b8109-dad-41d1-80b4-00c04fd430c8", "-" * 36)


@scenario
def shares_of_devices(c: Client) -> None:
    """Identifiers of shares in an allocation and in the status of its devices; devices that differ in them only."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{c.ns}/resourceclaims"
    c.post(path, {"metadata": {"name": "s"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}, silent=True)
    device = {"driver": "a.b", "pool": "p", "device": "d"}
    shares = [{**device, "shareID": share} for share in SHARES]
    for allocated, told in ((shares, []), (shares, shares), ([device], shares), (shares[-6:-5], [*shares[-6:-4], device]), ([device], [device, device]), ([shares[9], device, {**device, "device": "e"}], [shares[9], device, {**device, "pool": "q"}]), (shares[9:10] * 2, shares[9:10] * 2)):
        results = [{**one, "request": "r"} for one in allocated]
        c.patch(f"{path}/s/status", {"status": {"allocation": {"devices": {"results": results}}, "devices": told}}, MERGE, DRY)


@scenario
def tokens_of_odd_revisions(c: Client) -> None:
    """Continue tokens of revisions that are negative, at the bounds of what an integer holds, or in the future; starts that leave the collection; and lists of one name of a revision in the future."""
    for name in "abc":
        c.post(maps(c), config_map(name), silent=True)
    starts = ("b\0", "/b\0", "//b", "b/../c", "b/", "./b", "..", "/", "b")
    for revision, start in (*((revision, "b\0") for revision in (-1, -2, -(2**63), -(2**63) - 1, 2**62, 2**63 - 1, 2**63, 1.5, 1e3, True)), *((-1, start) for start in starts)):
        token = base64.urlsafe_b64encode(json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).encode()).decode().rstrip("=")
        for more in ({}, {"limit": "1"}, {"labelSelector": "a!=b", "limit": "1"}):
            c.get(maps(c), {"continue": token, **more})
    for more in ({}, {"resourceVersionMatch": "NotOlderThan"}):  # of one name: the storage answers at once, the cache waits
        c.get(maps(c), {"fieldSelector": "metadata.name=a", "limit": "1", "resourceVersion": str(2**40), **more})


@scenario
def deletions_again(c: Client) -> None:
    """A pod that is being deleted is deleted again, with a shorter period, the same, a longer one, and none."""
    path = f"/api/v1/namespaces/{c.ns}/pods"
    for first in (30, 1):
        name = f"p{first}"
        c.post(path, pod(name, nodeName="n"), silent=True)
        c.delete(f"{path}/{name}", {"gracePeriodSeconds": first}, silent=True)
        for period in (first + 1, first, None, first - 1, 2, 1, -1):
            reply = c.delete(f"{path}/{name}", {"gracePeriodSeconds": period}, DRY, silent=True)
            note(c, f"{first} s, then {period}", [reply.status, reply.get("metadata", "deletionGracePeriodSeconds", default=None)])
        c.delete(f"{path}/{name}", {"gracePeriodSeconds": 0}, silent=True)
    unsafe = "ignoreStoreReadErrorWithClusterBreakingPotential"
    c.post(maps(c), config_map("m"), silent=True)
    for more in ({}, {"dryRun": ["All"]}, {"dryRun": []}, {"gracePeriodSeconds": 0}, {"preconditions": {"uid": "x"}}, {"preconditions": {}}, {"orphanDependents": False}, {"propagationPolicy": "Orphan", "gracePeriodSeconds": 1, "dryRun": ["All"], "preconditions": {"resourceVersion": "1"}}):
        for value in (True, False):
            c.delete(f"{maps(c)}/m", {unsafe: value, **more}, DRY if not value else None)


@scenario
def workloads_under_enforced_levels(c: Client) -> None:
    """A workload in a namespace that enforces a level is warned of at this level, unless the namespace says what to warn of."""
    prefix = "pod-security.kubernetes.io/"
    labels: tuple[dict[str, str], ...] = (
        {"enforce": "restricted"}, {"enforce": "baseline"}, {"enforce": "privileged"}, {"enforce": "restricted", "enforce-version": "v1.20"}, {"enforce": "restricted", "warn-version": "v1.20"}, {"enforce": "restricted", "enforce-version": "v1.25", "warn-version": "v1.20"},
        {"enforce": "restricted", "warn": "privileged"}, {"enforce": "restricted", "warn": "baseline"}, {"enforce": "baseline", "warn": "restricted"}, {"enforce-version": "v1.20"}, {"warn": "restricted", "warn-version": "v1.20"}, {"audit": "restricted", "enforce": "privileged"},
    )
    for number, given in enumerate(labels):
        name = c.name(f"level{number}")
        c.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": {f"{prefix}{mode}": level for mode, level in given.items()}}}, silent=True)
        c.post(f"/apis/apps/v1/namespaces/{name}/deployments", deployment("web", securityContext={"privileged": True}), DRY)
        c.post(f"/api/v1/namespaces/{name}/pods", pod(), DRY)
        c.delete(f"/api/v1/namespaces/{name}", silent=True)


@scenario
def namespaces_that_no_key_contains(c: Client) -> None:
    """The namespaces `.` and `..` would make the key of an object a relative path: the storage refuses it; a create asks for the namespace first."""
    apps = "/apis/apps/v1"
    for namespace in (".", "..", "a%b"):
        core, body = f"/api/v1/namespaces/{namespace}", {"metadata": {"name": "x"}}
        path = f"{core}/configmaps"
        c.get(path, {"resourceVersion": "0"})
        c.get(f"{core}/events")
        c.get(f"{path}/x")
        c.get(f"{apps}/namespaces/{namespace}/deployments/x/scale")
        if namespace != "a%b":
            c.watch(path)
        c.post(path, body)
        c.put(f"{path}/x", body)
        c.patch(f"{path}/x", {}, MERGE)
        c.delete(f"{path}/x")
        c.delete(path)
        c.delete(f"/api/v1/namespaces/{namespace}")
        for place in (f"{maps(c)}/{namespace}", f"{apps}/namespaces/{c.ns}/deployments/{namespace}/scale"):
            c.get(place)
            c.patch(place, {}, MERGE)
        c.delete(f"{maps(c)}/{namespace}")


@scenario
def the_history_of_a_new_server(c: Client) -> None:
    """Its first revision has no objects, and a watch from there sends all that were made since."""
    c.get("/api/v1/configmaps", {"resourceVersion": "1", "resourceVersionMatch": "Exact"})
    c.watch("/apis/scheduling.k8s.io/v1/priorityclasses", {"resourceVersion": "1"}, limit=2)


@scenario
def a_storage_version_that_is_not_served(c: Client) -> None:
    """Discovery has a hash of the storage version as long as that is served."""
    schema = {"schema": {"openAPIV3Schema": {"type": "object"}}}
    for is_served in (True, False):
        versions = [{"name": "v1", "served": is_served, "storage": True, **schema}, {"name": "v2", "served": True, "storage": False, **schema}]
        body = definition(c, prefix=f"h{int(is_served)}", versions=versions)
        with served(c, body):
            group = c.get(f"/apis/{body['spec']['group']}/v2", silent=True).get("resources")
            note(c, f"v1 is served: {is_served}", ["storageVersionHash" in one for one in group])
