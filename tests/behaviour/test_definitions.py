"""CustomResourceDefinitions: validation, defaults, conditions, and deletion."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DRY = {"dryRun": "All"}
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRING = {"type": "string"}
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def obj(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


def version(name: str = "v1", schema: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema or obj()}, **more}


def definition(api: Any, schema: Any = None, **spec: Any) -> dict[str, Any]:
    group = f"{api.suffix}.example.com"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version(schema=schema)],
            **spec,
        },
    }


def until(probe: Callable[[], bool], seconds: float = 60) -> None:
    """Poll until a condition holds; a real server acts asynchronously."""
    end = time.monotonic() + seconds
    while not probe():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def condition(found: Any, type_: str) -> dict[str, str]:
    conditions = found.at("status", "conditions", default=None) or []
    return next((each for each in conditions if each["type"] == type_), {})


@pytest.fixture
def path(api: Any) -> Iterator[str]:
    """The path of an established definition."""
    body = definition(api)
    made = api.post(CRDS, body)
    assert made.status == 201, made.body
    place = f"{CRDS}/{body['metadata']['name']}"
    until(lambda: condition(api.get(place), "Established").get("status") == "True")
    yield place
    api.delete(place)


def test_crd_defaults(api: Any) -> None:
    made = api.post(CRDS, {**definition(api), "status": {"storedVersions": ["v7"]}}, DRY)
    assert made.status == 201
    assert made.at("spec", "names") == {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    assert made.at("spec", "conversion") == {"strategy": "None"}
    assert made.at("status") == {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]}
    assert made.at("metadata", "generation") == 1


def test_unknown_format_in_a_schema_gives_a_warning(api: Any) -> None:
    made = api.post(CRDS, definition(api, obj({"a": {**STRING, "format": "nonsense"}})), DRY)
    assert (made.status, made.headers["warning"]) == (201, '299 - "unrecognized format \\"nonsense\\""')


SCHEMA = "spec.validation.openAPIV3Schema"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (STRING, [f'{SCHEMA}.type: Invalid value: "string": must be object at the root']),
        (obj({"a": {}}), [f"{SCHEMA}.properties[a].type: Required value: must not be empty for specified object fields"]),
        (
            obj({"a": {**STRING, "pattern": "("}}),
            [
                f'{SCHEMA}.properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: '
                "error parsing regexp: missing closing ): `(`"
            ],
        ),
        (
            obj({"a": {**STRING, "default": 1}}),
            [f'{SCHEMA}.properties[a].default: Invalid value: "integer":  in body must be of type string: "integer"'],
        ),
        (
            obj({"a": {**STRING, "anyOf": [STRING]}}),
            [f"{SCHEMA}.properties[a].anyOf[0].type: Forbidden: must be empty to be structural"],
        ),
        (
            obj({"a": STRING}, anyOf=[{"properties": {"b": {"minLength": 1}}}]),
            [f"{SCHEMA}.properties[b]: Required value: because it is defined in {SCHEMA}.anyOf[0].properties[b]"],
        ),
        (
            obj({"a": {"type": "array", "items": obj(), "x-kubernetes-list-type": "set"}}),
            [
                f"{SCHEMA}.properties[a].items.x-kubernetes-map-type: Invalid value: null: "
                "must be atomic as item of a list with x-kubernetes-list-type=set"
            ],
        ),
        (
            obj({"metadata": obj({"labels": obj()})}),
            [
                f"{SCHEMA}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, "
                "but metadata is implicitly specified"
            ],
        ),
        (
            obj({"a": {**STRING, "pattern": r"\C"}}),
            [
                f'{SCHEMA}.properties[a].pattern: Invalid value: "\\\\C": must be a valid regular expression, but isn\'t: '
                r"error parsing regexp: invalid escape sequence: `\C`"
            ],
        ),
        (
            obj({"a": {"type": "integer", "maximum": -(2**63), "default": 3}}),
            [
                f'{SCHEMA}.properties[a].default: Invalid value: "": '
                "Maximum boundary value must be of type integer (default format) in ",
                f"{SCHEMA}.properties[a].default: Invalid value: 3:  in body should be less than or equal to -9.223372036854776e+18",
            ],
        ),
        (
            obj({"a": {"type": "boolean", "default": 10**20}}),
            [f'{SCHEMA}.properties[a].default: Invalid value: "number":  in body must be of type boolean: "number"'],
        ),
        (
            obj({"a": {"type": "array", "items": STRING, "maxItems": -1, "default": ["x"]}}),
            [f"{SCHEMA}.properties[a].default: Too many: 1: has too many items"],
        ),
        (
            obj({"a": {**STRING, "enum": ["b"], "default": "<\u0001>"}}),
            [f'{SCHEMA}.properties[a].default: Unsupported value: "<\\x01>": supported values: "b"'],
        ),
        (
            obj({"a": {"type": "boolean", "default": True, "oneOf": [{"not": {}}, {"oneOf": [{}, {}]}]}}),
            [
                f'{SCHEMA}.properties[a].default: Invalid value: "": "" must not validate the schema (not)',
                f'{SCHEMA}.properties[a].default: Invalid value: "": "" must validate one and only one schema (oneOf). '
                "Found none valid",
            ],
        ),
        (
            obj({"a": {**STRING, "anyOf": [{"items": [STRING]}]}}),
            [f"{SCHEMA}.properties[a].anyOf[0].items: Forbidden: items must be a schema object and not an array"],
        ),
    ],
)
def test_invalid_schemas_are_rejected(api: Any, schema: dict[str, Any], expected: list[str]) -> None:
    refused = api.post(CRDS, definition(api, schema), DRY)
    causes = [f"{cause['field']}: {cause['message']}" for cause in refused.at("details", "causes", default=[])]
    assert (refused.status, sorted(causes)) == (422, sorted(expected))


@pytest.mark.parametrize(
    "part",
    [
        {"items": []},
        {"maximum": 9223372036854775807},
        {"default": 10**20},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string", "additionalProperties": False}]},
    ],
)
def test_schemas_are_returned_in_normalized_form(api: Any, part: dict[str, Any]) -> None:
    made = api.post(
        CRDS, definition(api, obj({"a": {"x-kubernetes-preserve-unknown-fields": "anyOf" not in part or None, **part}})), DRY
    )
    assert made.status == 201, made.body
    found = made.at("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "a")
    assert "items" not in found
    assert found.get("maximum", 9223372036854776000) == 9223372036854776000
    assert b"9223372036854775807" not in made.body


def test_deprecation_warning_error_shows_the_value_as_json(api: Any) -> None:
    refused = api.post(CRDS, definition(api, versions=[version(deprecationWarning="<\u200b>")]), DRY)
    assert (
        refused.at("details", "causes", 0, "message")
        == 'Invalid value: "\\u003c\u200b\\u003e": can only be set for deprecated versions'
    )


def test_selectable_fields_require_a_schema(api: Any) -> None:
    bare = {**version(), "schema": {}, "selectableFields": [{}]}
    refused = api.post(CRDS, definition(api, versions=[bare]), DRY)
    assert [cause["field"] for cause in refused.at("details", "causes")] == [
        "spec.versions[0].schema.openAPIV3Schema",
        "spec.selectableFields[0].jsonPath",
    ]


def test_duplicate_storage_version_names_are_rejected(api: Any) -> None:
    refused = api.post(CRDS, definition(api, versions=[version(), version(deprecated=True)]), DRY)
    assert "must have the storage version v1" in refused.at("details", "causes", -1, "message")


def test_missing_storage_version_error_shows_all_versions(api: Any) -> None:
    refused = api.post(CRDS, definition(api, versions=[version(), version("v2", storage=True, deprecated=True)]), DRY)
    assert refused.at("details", "causes", 0, "message") == (
        'Invalid value: [{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,'
        '"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null},{"Name":"v2","Served":true,"Storage":true,'
        '"Deprecated":true,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,'
        '"SelectableFields":null}]: must have exactly one version marked as storage version'
    )


def test_schema_errors_name_the_version_index(api: Any) -> None:
    refused = api.post(CRDS, definition(api, versions=[version(), version("v2", obj({"a": {"type": "str"}}))]), DRY)
    assert refused.at("details", "causes", 0, "field") == "spec.versions[1].schema.openAPIV3Schema.properties[a].type"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scope": "Cluster"}, "spec.scope"),
        ({"names": {"kind": "Gadget"}}, "spec.names.kind"),
        ({"group": "other.example.com"}, "spec.group"),
        ({"names": {"plural": "gadgets"}}, "spec.names.plural"),
    ],
)
def test_immutable_crd_fields(api: Any, path: str, change: dict[str, Any], field: str) -> None:
    refused = api.patch(path, {"spec": change}, MERGE)
    assert refused.status == 422
    (cause,) = refused.at("details", "causes")
    assert (cause["field"], cause["message"].endswith(": field is immutable")) == (field, True)


def test_crd_generation_counts_spec_changes(api: Any, path: str) -> None:
    assert api.patch(path, {"metadata": {"labels": {"a": "b"}}}, MERGE).at("metadata", "generation") == 1
    assert api.patch(path, {"spec": {"names": {"shortNames": ["wi"]}}}, MERGE).at("metadata", "generation") == 2
    assert api.patch(f"{path}/status", {"spec": {"scope": "Cluster"}}, MERGE).at("spec", "scope") == "Namespaced"


def test_crd_put_without_resource_version_is_rejected(api: Any, path: str) -> None:
    body = api.get(path).json
    del body["metadata"]["resourceVersion"]
    assert (
        api.put(path, body).at("message").endswith("metadata.resourceVersion: Invalid value: 0: must be specified for an update")
    )


def test_stored_versions_must_stay_in_spec(api: Any, path: str) -> None:
    both = [{**version(), "storage": False}, {**version("v2"), "storage": True}]
    moved = api.patch(path, {"spec": {"versions": both}}, MERGE)
    assert moved.at("status", "storedVersions") == ["v1", "v2"]
    refused = api.patch(path, {"spec": {"versions": both[1:]}}, MERGE)
    assert (refused.status, refused.at("details", "causes", 0, "field")) == (422, "status.storedVersions[0]")
    assert api.patch(f"{path}/status", {"status": {"storedVersions": ["v2"]}}, MERGE).status == 200
    assert api.patch(path, {"spec": {"versions": both[1:]}}, MERGE).status == 200


def test_conversion_webhook_with_invalid_ca_bundle_is_rejected(api: Any, path: str) -> None:
    client = {"url": "https://example.com", "caBundle": "aGk="}
    webhook = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    refused = api.patch(path, {"spec": {"conversion": webhook}}, MERGE)
    assert refused.at("details", "causes", 0, "message") == (
        'Invalid value: "aGk=": unable to load root certificates: unable to parse bytes as PEM block'
    )


def test_crd_with_untrusted_conversion_webhook_is_not_established(api: Any) -> None:
    client = {"url": "https://example.com", "caBundle": "aGk="}
    webhook = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    body = definition(api, conversion=webhook)
    place = f"{CRDS}/{body['metadata']['name']}"
    assert api.post(CRDS, body).status == 201
    until(lambda: condition(api.get(place), "Established").get("reason") == "InvalidCABundle")
    assert condition(api.get(place), "Established")["status"] == "False"
    api.delete(place)


def test_first_delete_sets_terminating_and_the_cleanup_finalizer(api: Any, path: str) -> None:
    held = api.patch(path, {"metadata": {"finalizers": ["example.com/hold"]}}, MERGE)
    assert held.status == 200
    marked = api.delete(path, {"propagationPolicy": "Foreground"})
    assert marked.at("metadata", "finalizers") == ["example.com/hold", FINALIZER]
    assert condition(marked, "Terminating")["reason"] == "InstanceDeletionPending"
    until(lambda: api.get(path).at("metadata", "finalizers") == ["example.com/hold"])
    assert condition(api.get(path), "Terminating")["reason"] == "InstanceDeletionCompleted"
    assert api.patch(path, [{"op": "remove", "path": "/metadata/finalizers"}], JSON_PATCH).status == 200
    until(lambda: api.get(path).status == 404)


def test_watch_shows_each_crd_condition_change(api: Any) -> None:
    start = api.get(CRDS, {"limit": "1"}).at("metadata", "resourceVersion")
    body = definition(api)
    name = body["metadata"]["name"]
    assert api.post(CRDS, body).status == 201
    events = api.watch(CRDS, {"fieldSelector": f"metadata.name={name}", "resourceVersion": start}, count=3)
    api.delete(f"{CRDS}/{name}")
    states = [
        [(each["type"], each["status"], each["reason"]) for each in event["object"]["status"].get("conditions") or ()]
        for event in events
    ]
    named = ("NamesAccepted", "True", "NoConflicts")
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED"]
    assert states == [
        [],
        [named, ("Established", "False", "Installing")],
        [named, ("Established", "True", "InitialNamesAccepted")],
    ]
    assert [len(event["object"]["metadata"]["managedFields"]) for event in events] == [1, 2, 2]


def test_discovery_shows_only_accepted_names(api: Any, path: str) -> None:
    group = path.removeprefix(f"{CRDS}/widgets.")
    other = definition(api, names={"plural": "gadgets", "kind": "Gadget", "shortNames": ["g"]})
    other["metadata"]["name"] = f"gadgets.{group}"
    assert api.post(CRDS, other).status == 201
    place = f"{CRDS}/gadgets.{group}"
    try:
        until(lambda: condition(api.get(place), "Established").get("status") == "True")
        api.patch(path, {"spec": {"names": {"shortNames": ["g"], "categories": ["c"]}}}, MERGE)
        until(lambda: condition(api.get(path), "NamesAccepted").get("reason") == "ShortNamesConflict")
        listed: list[Any] = []

        def is_listed() -> bool:
            listed[:] = [each for each in api.get(f"/apis/{group}/v1").at("resources", default=[]) if each["name"] == "widgets"]
            return bool(listed and listed[0].get("categories"))

        until(is_listed)
        assert "shortNames" not in listed[0]
    finally:
        api.delete(place)


def test_crd_condition_set_by_a_client_is_kept(api: Any) -> None:
    first, second = definition(api), definition(api, names={"plural": "gadgets", "kind": "Gadget", "shortNames": ["widgets"]})
    second["metadata"]["name"] = second["metadata"]["name"].replace("widgets", "gadgets")
    places = [f"{CRDS}/{body['metadata']['name']}" for body in (first, second)]
    try:
        assert api.post(CRDS, first).status == 201
        until(lambda: condition(api.get(places[0]), "Established").get("status") == "True")
        assert api.post(CRDS, second).status == 201
        until(lambda: condition(api.get(places[1]), "NamesAccepted").get("status") == "False")
        written = {"conditions": [{"type": "Established", "status": "False"}]}
        assert api.patch(f"{places[1]}/status", {"status": written}, MERGE).status == 200
        until(lambda: condition(api.get(places[1]), "NamesAccepted").get("status") == "False")
        assert "reason" not in condition(api.get(places[1]), "Established")
    finally:
        for place in places:
            api.delete(place)


def test_terminating_crd_serves_no_update_verbs_in_discovery(api: Any, path: str) -> None:
    group = path.removeprefix(f"{CRDS}/widgets.")
    objects = api.path("widgets", group=f"{group}/v1")
    held = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    until(lambda: api.post(objects, held).status in (201, 409))
    api.delete(path)
    try:
        wanted = ["delete", "deletecollection", "get", "list", "watch"]
        until(lambda: api.get(f"/apis/{group}/v1").at("resources", 0, "verbs") == wanted)
        assert api.patch(f"{objects}/held", {"metadata": {"labels": {"a": "b"}}}, MERGE).status == 200
    finally:
        api.patch(f"{objects}/held", {"metadata": {"finalizers": None}}, MERGE)


def test_released_short_names_are_accepted_for_another_crd(api: Any, path: str) -> None:
    api.patch(path, {"spec": {"names": {"shortNames": ["g"]}}}, MERGE)
    until(lambda: api.get(path).at("status", "acceptedNames", "shortNames") == ["g"])
    other = definition(api, names={"plural": "gadgets", "kind": "Gadget", "shortNames": ["g"]})
    other["metadata"]["name"] = other["metadata"]["name"].replace("widgets", "gadgets")
    place = f"{CRDS}/{other['metadata']['name']}"
    assert api.post(CRDS, other).status == 201
    try:
        until(lambda: condition(api.get(place), "NamesAccepted").get("reason") == "ShortNamesConflict")
        api.patch(path, {"spec": {"names": {"shortNames": ["w"]}}}, MERGE)
        until(lambda: condition(api.get(place), "Established").get("status") == "True")
    finally:
        api.delete(place)


@pytest.mark.parametrize("document", ["/openapi/v2", "/openapi/v3/apis/{group}/v1"])
def test_openapi_lists_have_the_list_kind_of_the_definition(api: Any, document: str) -> None:
    body = definition(api, names={"plural": "widgets", "kind": "Widget", "listKind": "WidgetItems"})
    group = body["spec"]["group"]
    assert api.post(CRDS, body).status == 201
    try:
        listed = f"/apis/{group}/v1/widgets"
        place = document.format(group=group)
        until(lambda: (found := api.get(place)).status == 200 and listed in found.json["paths"])
        found = api.get(place).json
        answer = found["paths"][listed]["get"]["responses"]["200"]
        schema = answer["schema"] if "schema" in answer else answer["content"]["application/json"]["schema"]
        name = ".".join(reversed(group.split("."))) + ".v1.WidgetItems"
        assert schema["$ref"].rpartition("/")[2] == name
        assert name in (found.get("definitions") or found["components"]["schemas"])
    finally:
        api.delete(f"{CRDS}/{body['metadata']['name']}")


# ---------------------------------------------------------------- objects of a version that is gone


def widget(path: str, name: str) -> dict[str, Any]:
    """A body for a collection."""
    return {"apiVersion": "/".join(path.split("/")[2:4]), "kind": "Widget", "metadata": {"name": name}}


@pytest.fixture
def gone(api: Any) -> Iterator[str]:
    """The path of a definition of v2, of which the object `old` is stored in v1, and `new` in v2."""
    body = definition(api, versions=[version("v1"), version("v2")])
    name = f"{CRDS}/{body['metadata']['name']}"
    assert api.post(CRDS, body).status == 201
    first = f"/apis/{body['spec']['group']}/v1/namespaces/{api.namespace}/widgets"
    second = first.replace("/v1/", "/v2/")
    until(lambda: api.get(first).status == 200)
    until(lambda: api.post(first, widget(first, "old")).status in (201, 409))
    moved = {"spec": {"versions": [version("v1", storage=False), version("v2", storage=True)]}}
    assert api.patch(name, moved, MERGE).status == 200
    until(lambda: api.get(name).at("status", "storedVersions") == ["v1", "v2"])
    until(lambda: api.post(second, widget(second, "new")).status in (201, 409))
    assert api.patch(f"{name}/status", {"status": {"storedVersions": ["v2"]}}, MERGE).status == 200
    assert api.patch(name, {"spec": {"versions": [version("v2", storage=True)]}}, MERGE).status == 200
    until(lambda: api.get(first).status == 404 and api.get(f"{second}/old").status == 500)
    yield second
    for one in ("old", "new"):
        api.delete(f"{second}/{one}", {"ignoreStoreReadErrorWithClusterBreakingPotential": one == "old"})
    api.delete(name)


def test_objects_of_a_removed_version_are_corrupt(api: Any, gone: str) -> None:
    """Since 1.37, with the gate AllowUnsafeMalformedObjectDeletion."""
    group = gone.split("/")[2]
    problem = f"request to convert CR from an invalid group/version: {group}/v1"
    read = api.get(f"{gone}/old")
    revision = read.at("message").partition("revision=")[2].partition(":")[0]
    undecodable = f"object not decodable revision={revision}: {problem}"

    def corrupt(prefix: str) -> str:
        key = f"{prefix}/{group}/widgets/{api.namespace}/old"
        return f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {undecodable}"

    told = {"reason": "InternalError", "message": f"Internal error occurred: {corrupt('')}"}
    assert (read.status, read.at("details")) == (500, {"causes": [{"message": corrupt("")}]})
    for reply in (read, api.delete(f"{gone}/old"), api.delete(f"{gone}/old", {"dryRun": ["All"]})):
        assert {name: reply.at(name) for name in told} == told
    for reply in (api.patch(f"{gone}/old", {"x": 1}, MERGE), api.put(f"{gone}/old", widget(gone, "old"))):
        assert (reply.status, reply.at("message")) == (500, undecodable)
    assert api.post(gone, widget(gone, "old")).status == 409
    assert api.get(f"{gone}/new").status == 200


def test_a_definition_stays_while_its_objects_cannot_be_listed(api: Any, gone: str) -> None:
    group = gone.split("/")[2]
    path = f"{CRDS}/widgets.{group}"
    assert api.delete(path).status == 200
    message = f"could not list instances: {api.get(gone).at('message')}"
    told = {"status": "True", "reason": "InstanceDeletionFailed", "message": message}
    until(lambda: told.items() <= condition(api.get(path), "Terminating").items())
    assert api.get(path).at("metadata", "finalizers") == ["customresourcecleanup.apiextensions.k8s.io"]
    assert api.get(f"{gone}/new").at("metadata", "deletionTimestamp") is None
    assert api.delete(f"{gone}/old", {"ignoreStoreReadErrorWithClusterBreakingPotential": True}).status == 200
    until(lambda: api.get(path).status == 404, seconds=30)


def test_lists_and_watches_wait_until_all_objects_can_be_decoded(api: Any, gone: str) -> None:
    group = gone.split("/")[2]
    unready = "storage is (re)initializing: failed to list <unspecified>: "
    elsewhere = gone.replace(f"/{api.namespace}/", "/kube-system/")
    for path, query in ((gone, {}), (gone, {"watch": "true"}), (gone, {"labelSelector": "a=b"}), (elsewhere, {})):
        reply = api.get(path, query)
        assert (reply.status, reply.at("reason")) == (429, "TooManyRequests")
        assert reply.at("message").startswith(f"{unready}failed to read one or more widgets.{group} from the storage: StorageErr")
    assert [item["metadata"]["name"] for item in api.get(gone, {"limit": "1"}).at("items")] == ["new"]
    for reply in (api.get(gone, {"limit": "5"}), api.delete(gone)):
        assert (reply.status, reply.at("reason")) == (500, "StorageReadError")
        cause = reply.at("details", "causes", 0)
        assert cause["field"] == f"/registry/{group}/widgets/{api.namespace}/old"
        assert reply.at("message") == f"failed to read one or more widgets.{group} from the storage: {cause['message']}"
    assert api.get(elsewhere, {"limit": "1"}).at("items") == []
    unsafe = {"ignoreStoreReadErrorWithClusterBreakingPotential": True}
    assert api.delete(f"{gone}/new", unsafe).status == 409
    assert api.delete(f"{gone}/old", {**unsafe, "dryRun": ["All"]}).at("details") == {"name": "old", "kind": "Widget"}
    assert api.delete(f"{gone}/old", unsafe).at("details") == {"name": "old", "kind": "Widget"}
    until(lambda: api.get(gone).status == 200)
    assert [item["metadata"]["name"] for item in api.get(gone).at("items")] == ["new"]
