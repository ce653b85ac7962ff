"""Lists: resource versions, pagination, and selectors.

The tables of resourceVersion and resourceVersionMatch are those of the API concepts page of the Kubernetes
documentation (Resource versions); where it says nothing, the real server was asked.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.behaviour.conftest import Api, Reply

NAMES = ("a", "b", "c", "d", "e")


@dataclass
class Collection:
    """Config maps a to e of a namespace of their own, made in this order."""

    api: Api
    path: str
    revisions: dict[str, str] = field(default_factory=dict)

    def names(self, query: object = None) -> list[str]:
        reply = self.api.get(self.path, query)
        assert reply.status == 200, reply.body
        return names(reply)

    def token(self, limit: int = 1) -> str:
        return str(self.api.get(self.path, {"limit": str(limit)}).at("metadata", "continue"))


def names(reply: Reply) -> list[str]:
    return [item["metadata"]["name"] for item in reply.at("items", default=[])]


def problem(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.at("message")


@pytest.fixture(scope="module")
def collection(server_url: str) -> Iterator[Collection]:
    api = Api(server_url)
    api.namespace = api.name("lists")
    assert api.post("/api/v1/namespaces", {"metadata": {"name": api.namespace}}).status == 201
    api.compact()  # some tests ask for revision 1
    made = Collection(api, api.path("configmaps"))
    for name in NAMES:
        labels = {"letter": name, "kind": "vowel" if name in "ae" else "consonant"}
        reply = api.post(made.path, {"metadata": {"name": name, "labels": labels}, "data": {"k": name}})
        made.revisions[name] = reply.at("metadata", "resourceVersion")
    yield made
    api.delete(f"/api/v1/namespaces/{api.namespace}")


# ---------------------------------------------------------------- resource versions

UNSET = ""
FORBIDDEN_UNSET = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
FORBIDDEN_CONTINUE = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"
FORBIDDEN_EXACT_ZERO = 'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
UNSUPPORTED = 'resourceVersionMatch: Unsupported value: "Nope": supported values: "Exact", "NotOlderThan", ""'
NO_REVISION_WITH_CONTINUE = "specifying resource version is not allowed when using continue"


def expected_problem(revision: str, match: str, token: str) -> tuple[int, str] | None:
    """The expected error of these parameters."""
    errors = []
    if match and not revision:
        errors.append(FORBIDDEN_UNSET)
    if match and token:
        errors.append(FORBIDDEN_CONTINUE)
    if match == "Nope":
        errors.append(UNSUPPORTED)
    if match == "Exact" and revision == "0":
        errors.append(FORBIDDEN_EXACT_ZERO)
    if errors:
        text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        return 422, f'ListOptions.meta.k8s.io "" is invalid: {text}'
    if token and revision not in (UNSET, "0"):
        return 400, NO_REVISION_WITH_CONTINUE
    if revision in ("x", "-1"):
        syntax = f'strconv.ParseUint: parsing "{revision}": invalid syntax'
        return 400, f'invalid resource version: resourceVersion: Invalid value: "{revision}": {syntax}'
    return None


def expected_names(revision: str, match: str, limit: str, token: str) -> tuple[list[str], bool]:
    """The names in the list, and whether there are more."""
    if revision == "0":
        limit = UNSET  # the cache answers, which knows no chunks
    old = revision == "b" and (match == "Exact" or (not match and limit))
    there = list(NAMES[:2] if old else NAMES)
    if token:
        there = there[1:]
    return (there[:1], len(there) > 1) if limit else (there, False)


@pytest.mark.parametrize("match", [UNSET, "Exact", "NotOlderThan", "Nope"])
@pytest.mark.parametrize("revision", [UNSET, "0", "b", "e", "x", "-1"])
def test_all_combinations_of_resource_version_match_limit_and_continue(collection: Collection, revision: str, match: str) -> None:
    """resourceVersion × resourceVersionMatch × limit × continue."""
    token = collection.token()
    sent_revision = collection.revisions.get(revision, revision)
    for limit, sent_token in itertools.product((UNSET, "1"), (UNSET, token)):
        query = {
            "resourceVersion": sent_revision, "resourceVersionMatch": match, "limit": limit, "continue": sent_token,
        }  # fmt: skip
        reply = collection.api.get(collection.path, {name: value for name, value in query.items() if value})
        cell = (revision, match, limit, sent_token)
        wrong = expected_problem(revision, match, sent_token)
        if wrong is not None:
            assert problem(reply) == wrong, cell
        else:
            more = bool(reply.at("metadata", "continue"))
            assert (reply.status, names(reply), more) == (200, *expected_names(*cell)), cell


def test_list_at_exact_resource_version_returns_that_version(collection: Collection) -> None:
    revision = collection.revisions["c"]
    exact = collection.api.get(collection.path, {"resourceVersion": revision, "resourceVersionMatch": "Exact"})
    assert exact.at("metadata", "resourceVersion") == revision
    latest = collection.api.get(collection.path)
    assert int(latest.at("metadata", "resourceVersion")) >= int(collection.revisions["e"])


def test_list_at_exact_resource_version_shows_historical_objects(api: Api) -> None:
    path = api.path("configmaps")
    first = api.post(path, {"metadata": {"name": "m"}, "data": {"k": "old"}}).at("metadata", "resourceVersion")
    second = api.put(f"{path}/m", {"metadata": {"name": "m"}, "data": {"k": "new"}}).at("metadata", "resourceVersion")
    api.delete(f"{path}/m")
    for revision, value in ((first, "old"), (second, "new")):
        then = api.get(path, {"resourceVersion": revision, "resourceVersionMatch": "Exact"})
        assert [item["data"]["k"] for item in then.at("items")] == [value]
    assert names(api.get(path)) == []


ONE = {"fieldSelector": "metadata.name=a"}


@pytest.mark.parametrize(
    ("query", "retry"),
    [
        ({"resourceVersionMatch": "Exact"}, "1"),  # after a moment, as without a match
        ({"resourceVersionMatch": "Exact", **ONE}, None),  # the storage is asked for one key, and does not wait
        ({"limit": "1", **ONE}, None),
    ],
)
def test_future_resource_version_returns_504(collection: Collection, query: dict[str, str], retry: str | None) -> None:
    reply = collection.api.get(collection.path, {"resourceVersion": "999999999999", **query})
    assert (reply.status, reply.at("reason"), reply.headers.get("retry-after")) == (504, "Timeout", retry)
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    assert reply.at("details", "causes") == [cause]
    assert reply.at("message").startswith("Timeout: Too large resource version: 999999999999, current: ")


def test_get_with_resource_version(collection: Collection) -> None:
    """get accepts resourceVersion without a match: the object is at least that new."""
    path = f"{collection.path}/b"
    for revision in ("", "0", collection.revisions["b"], collection.revisions["e"]):
        reply = collection.api.get(path, {"resourceVersion": revision})
        assert (reply.status, reply.at("metadata", "resourceVersion")) == (200, collection.revisions["b"])
    wrong = collection.api.get(path, {"resourceVersion": "x"})
    syntax = 'strconv.ParseUint: parsing "x": invalid syntax'
    assert problem(wrong) == (500, f'resourceVersion: Invalid value: "x": {syntax}')


# ---------------------------------------------------------------- pagination


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_paginated_list_returns_all_items(collection: Collection, size: int) -> None:
    seen: list[str] = []
    remaining: list[int] = []
    revisions = set()
    query = {"limit": str(size)}
    while True:
        reply = collection.api.get(collection.path, query)
        seen += names(reply)
        remaining.append(reply.at("metadata", "remainingItemCount", default=0))
        revisions.add(reply.at("metadata", "resourceVersion"))
        if not reply.at("metadata", "continue"):
            break
        query["continue"] = reply.at("metadata", "continue")
    assert seen == list(NAMES)
    assert remaining == [max(len(NAMES) - size * page, 0) for page in range(1, len(remaining) + 1)]
    assert len(revisions) == 1


def test_pages_show_a_consistent_snapshot(api: Api) -> None:
    """Objects created or deleted between two pages are not visible."""
    path = api.path("configmaps")
    for name in ("a", "c", "e"):
        api.post(path, {"metadata": {"name": name}})
    first = api.get(path, {"limit": "1"})
    api.post(path, {"metadata": {"name": "d"}})
    api.delete(f"{path}/e")
    rest = api.get(path, {"continue": first.at("metadata", "continue")})
    assert (names(first), names(rest)) == (["a"], ["c", "e"])
    assert names(api.get(path)) == ["a", "c", "d"]


def test_limit_equal_to_item_count_returns_no_continue_token(collection: Collection) -> None:
    reply = collection.api.get(collection.path, {"limit": "5"})
    assert names(reply) == list(NAMES)
    assert reply.at("metadata").keys() == {"resourceVersion"}


def test_pages_with_a_selector_have_no_remaining_item_count(collection: Collection) -> None:
    query = {"limit": "2", "labelSelector": "kind=consonant"}
    first = collection.api.get(collection.path, query)
    assert names(first) == ["b", "c"]
    assert "remainingItemCount" not in first.at("metadata")
    rest = collection.api.get(collection.path, {**query, "continue": first.at("metadata", "continue")})
    assert names(rest) == ["d"]


@pytest.mark.parametrize("limit", ["-1", "0", "500"])
def test_nonpositive_or_large_limits_return_all_items(collection: Collection, limit: str) -> None:
    assert collection.names({"limit": limit}) == list(NAMES)


def test_non_numeric_limit_returns_400(collection: Collection) -> None:
    reply = collection.api.get(collection.path, {"limit": "x"})
    assert problem(reply)[0] == 400
    assert 'strconv.ParseInt: parsing "x": invalid syntax' in problem(reply)[1]


def made_up_token(token: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("*", "illegal base64 data at input byte 0"),
        ("junk", "invalid character '\\u008e' looking for beginning of value"),
        (made_up_token("x"), "json: cannot unmarshal string into Go value of type storage.continueToken"),
        (made_up_token({}), "server does not recognize this encoded version "),
        (made_up_token({"v": "meta.k8s.io/v1", "start": "a\u0000"}), "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
        (made_up_token({"v": "meta.k8s.io/v1", "rv": 5}), "encoded start key empty (version meta.k8s.io/v1)"),
        (made_up_token({"v": "meta.k8s.io/v1", "rv": 5, "start": "../x"}), "../x"),
        (made_up_token({"v": "v9", "rv": 5, "start": "a"}), "server does not recognize this encoded version v9"),
    ],
)  # fmt: skip
def test_invalid_continue_tokens_return_400(collection: Collection, token: str, message: str) -> None:
    reply = collection.api.get(collection.path, {"limit": "1", "continue": token})
    assert problem(reply) == (400, f"invalid continue token: continue key is not valid: {message}")


def test_expired_continue_token_returns_410_with_a_new_token(collection: Collection) -> None:
    """The 410 response has a token that continues in the current state (an inconsistent but complete list)."""
    token = made_up_token({"v": "meta.k8s.io/v1", "rv": 1, "start": "b\u0000"})
    reply = collection.api.get(collection.path, {"limit": "2", "continue": token})
    if reply.status == 200:
        pytest.skip("the server is too new to have compacted its history")
    assert (reply.status, reply.at("reason")) == (410, "Expired")
    assert reply.at("message").startswith("The provided continue parameter is too old to display a consistent list result.")
    offered = reply.at("metadata", "continue")
    assert json.loads(base64.urlsafe_b64decode(offered + "=" * (-len(offered) % 4)))["rv"] == -1
    first = collection.api.get(collection.path, {"limit": "2", "continue": offered})
    assert (first.status, names(first)) == (200, ["c", "d"])
    rest = collection.api.get(collection.path, {"limit": "2", "continue": first.at("metadata", "continue")})
    assert names(rest) == ["e"]


def test_list_at_a_compacted_resource_version_returns_410(collection: Collection) -> None:
    query = {"resourceVersion": "1", "resourceVersionMatch": "Exact"}
    reply = collection.api.get(collection.path, query)
    if reply.status == 200:
        pytest.skip("the server is too new to have compacted its history")
    assert problem(reply) == (410, "The resourceVersion for the provided list is too old.")
    assert reply.at("reason") == "Expired"


# ---------------------------------------------------------------- selectors


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("letter=a", "a"), ("letter==a", "a"), ("letter!=a", "bcde"), ("letter in (a, e)", "ae"), ("letter notin (a,e)", "bcd"),
        ("letter", "abcde"), ("!letter", ""), ("nope", ""), ("!nope", "abcde"), ("nope!=x", "abcde"), ("nope notin (x)", "abcde"),
        ("kind=vowel,letter!=a", "e"), ("kind=vowel, letter in (a,b)", "a"), ("letter=", ""), ("letter in ()", ""), ("letter>1", ""),
        (" letter = a ", "a"), ("", "abcde"),
    ],
)  # fmt: skip
def test_label_selectors(collection: Collection, selector: str, chosen: str) -> None:
    assert collection.names({"labelSelector": selector}) == list(chosen)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("letter in a", "unable to parse requirement: found 'a' expected: '('"),
        ("x y", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("letter>x", 'unable to parse requirement: values[0]: Invalid value: "x": for \'Gt\', \'Lt\' operators, the value must be an integer'),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
    ],
)  # fmt: skip
def test_invalid_label_selectors_return_400(collection: Collection, selector: str, message: str) -> None:
    reply = collection.api.get(collection.path, {"labelSelector": selector})
    assert (reply.status, reply.at("reason")) == (400, "BadRequest")
    assert message in reply.at("message")


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("metadata.name=b", "b"), ("metadata.name==b", "b"), ("metadata.name!=b", "acde"), ("metadata.name=nope", ""),
        ("metadata.name!=b,metadata.name!=c", "ade"), ("metadata.name=b,metadata.name=c", ""), ("metadata.name=b,", "b"), ("", "abcde"),
    ],
)  # fmt: skip
def test_field_selectors(collection: Collection, selector: str, chosen: str) -> None:
    assert collection.names({"fieldSelector": selector}) == list(chosen)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("metadata.labels=x", '"metadata.labels" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("spec.nodeName=n", '"spec.nodeName" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("metadata.name", 'invalid selector: \'metadata.name\'; can\'t understand \'metadata.name\''),
    ],
)  # fmt: skip
def test_invalid_field_selectors_return_400(collection: Collection, selector: str, message: str) -> None:
    reply = collection.api.get(collection.path, {"fieldSelector": selector})
    assert (reply.status, reply.at("reason")) == (400, "BadRequest")
    assert message in reply.at("message")


def test_label_and_field_selector_are_combined(collection: Collection) -> None:
    query = {"labelSelector": "kind=consonant", "fieldSelector": "metadata.name!=c"}
    assert collection.names(query) == ["b", "d"]


def test_list_across_all_namespaces(collection: Collection) -> None:
    query = {"fieldSelector": f"metadata.namespace={collection.api.namespace}"}
    assert names(collection.api.get("/api/v1/configmaps", query)) == list(NAMES)
    nowhere = collection.api.get("/api/v1/namespaces/absent/configmaps")
    assert (nowhere.status, nowhere.at("items")) == (200, [])


# ---------------------------------------------------------------- repeated lists

FORMATS = (
    "application/json",
    "application/vnd.kubernetes.protobuf",
    "application/yaml",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
)


@pytest.mark.parametrize("accept", FORMATS)
def test_repeated_list_shows_later_writes(api: Api, accept: str) -> None:
    # Of a kind into which no other test writes what YAML cannot show.
    path, everywhere = api.path("limitranges"), "/api/v1/limitranges"

    def shown(name: str) -> set[bool]:
        places = (path, path, path, everywhere, everywhere, path)
        return {name.encode() in api.get(place, headers={"Accept": accept}).body for place in places}

    for round_ in range(2):
        name = api.name(f"again-{round_}")
        assert shown(name) == {False}
        assert (
            api.post(path, {"metadata": {"name": name, "annotations": {"k": "v" * 2000}}, "spec": {"limits": []}}).status == 201
        )
        assert shown(name) == {True}
        assert api.delete(f"{path}/{name}").status == 200
        assert shown(name) == {False}


def test_long_selectors_end_with_the_time_of_the_request(collection: Collection) -> None:
    query = {"labelSelector": ",".join(f"a notin (x{number})" for number in range(5000)), "timeout": "1ms"}
    reply = collection.api.get(collection.path, query)
    assert (reply.status, reply.at("reason")) == (504, "Timeout")
