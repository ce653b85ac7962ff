"""Content negotiation; the expectations are recorded from kube-apiserver."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.errors import StatusError
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.negotiation import CBOR, CBOR_SEQUENCE, JSON, PATCHES, PROTOBUF, YAML, MediaType, Offer, Target

RESOURCE = Offer()
CUSTOM = Offer(custom=True)
PLAIN = Offer(transforms=False)
WITH_CBOR = Offer(cbor=True)

TABLE = Target("meta.k8s.io", "v1", "Table")
AS_TABLE = ";as=Table;v=v1;g=meta.k8s.io"
METADATA = Target("meta.k8s.io", "v1", "PartialObjectMetadata")
AS_METADATA = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

KNOWN = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
NOT_ACCEPTED = f"only the following media types are accepted: {KNOWN}"


def refusal(caught: pytest.ExceptionInfo[StatusError]) -> tuple[int, str]:
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", MediaType("json", JSON)),
        ("*/*", MediaType("json", JSON)),
        ("*", MediaType("json", JSON)),
        ("application/*", MediaType("json", JSON)),
        (JSON, MediaType("json", JSON)),
        (f" {JSON} ", MediaType("json", JSON)),
        (f"{JSON},", MediaType("json", JSON)),
        (YAML, MediaType("yaml", YAML)),
        (PROTOBUF, MediaType("protobuf", PROTOBUF)),
        (f"{PROTOBUF};q=0", MediaType("protobuf", PROTOBUF)),
        (f"{PROTOBUF},{JSON}", MediaType("protobuf", PROTOBUF)),
        (f"{YAML};q=0.5,{JSON};q=0.1", MediaType("yaml", YAML)),
        (f"{JSON};q=0.1,{YAML};q=0.5", MediaType("yaml", YAML)),
        (f"{JSON};q=0,{YAML}", MediaType("yaml", YAML)),
        (f"{JSON};q=x", MediaType("json", JSON)),
        ("text/html;q=0.9, */*;q=0.1", MediaType("json", JSON)),
        (f"*/*, {YAML}", MediaType("yaml", YAML)),
        (f"{JSON}; charset=utf-8", MediaType("json", JSON)),
        (f"{JSON};unknown=1", MediaType("json", JSON)),
        (f"{JSON};stream=watch", MediaType("json", JSON)),
        (f"{JSON};pretty=1", MediaType("json", JSON, pretty=True)),
        (f"{JSON};pretty=true", MediaType("json", JSON)),
        (f"{YAML};pretty=1", MediaType("yaml", YAML)),
        (f"{JSON}{AS_TABLE}", MediaType("json", JSON, TABLE)),
        (f"{YAML}{AS_TABLE}", MediaType("yaml", YAML, TABLE)),
        (f"{JSON}{AS_TABLE};q=0.1,{JSON}", MediaType("json", JSON)),
        (f"{JSON}{AS_TABLE},{JSON}", MediaType("json", JSON, TABLE)),
        (f"{JSON};as=Nope;v=v1;g=meta.k8s.io,{JSON}", MediaType("json", JSON)),
        (f"{PROTOBUF}{AS_TABLE},{YAML}", MediaType("yaml", YAML)),
        (f"{PROTOBUF}{AS_METADATA}", MediaType("protobuf", PROTOBUF, METADATA)),
        (f"*/*{AS_METADATA}", MediaType("json", JSON, METADATA)),
    ],
)
def test_accept_header_selects_the_media_type(accept: str, chosen: MediaType) -> None:
    assert RESOURCE.output(accept) == chosen


@pytest.mark.parametrize(
    "accept",
    [
        "text/plain", "application/xml", "Application/JSON", ",", ";", "application", "application/", "/json", CBOR,
        "application/json/x", f"{JSON};as=Table", f"{JSON};as=Table;v=v1", f"{JSON};as=Table;g=meta.k8s.io", f"{JSON};v=v1;g=meta.k8s.io",
        f"{JSON};as=Table;v=v2;g=meta.k8s.io", f"{JSON};as=Table;v=v1;g=other", f"{JSON};as=;v=v1;g=meta.k8s.io",
        f"{JSON};as=Nope;v=v1;g=meta.k8s.io", f"{PROTOBUF}{AS_TABLE}", f"{JSON};stream=x", f"{YAML};stream=watch", f"{JSON};sv=1",
    ],
)  # fmt: skip
def test_unsupported_accept_header_returns_406(accept: str) -> None:
    with pytest.raises(StatusError) as caught:
        RESOURCE.output(accept)
    assert refusal(caught) == (406, NOT_ACCEPTED)


def test_custom_resources_support_protobuf_only_for_partial_metadata() -> None:
    with pytest.raises(StatusError):
        CUSTOM.output(PROTOBUF)
    assert CUSTOM.output(f"{PROTOBUF},{JSON}") == MediaType("json", JSON)
    assert CUSTOM.output(f"{PROTOBUF}{AS_METADATA}").target == METADATA


def test_non_resource_documents_do_not_support_table_or_metadata() -> None:
    assert PLAIN.output(f"{JSON}{AS_TABLE},{JSON}") == MediaType("json", JSON)
    with pytest.raises(StatusError):
        PLAIN.output(f"{JSON}{AS_METADATA}")


def test_cbor_requires_its_feature_gate() -> None:
    assert WITH_CBOR.output(CBOR) == MediaType("cbor", CBOR)
    assert WITH_CBOR.output(f"{CBOR}{AS_METADATA}").target == METADATA
    with pytest.raises(StatusError) as caught:
        WITH_CBOR.output(f"{CBOR}{AS_TABLE}")
    assert refusal(caught) == (406, f"{NOT_ACCEPTED}, application/cbor")


def test_pretty_parameter_applies_to_json() -> None:
    assert RESOURCE.output("", pretty=True) == MediaType("json", JSON, pretty=True)
    assert RESOURCE.output(f"{JSON}{AS_TABLE}", pretty=True) == MediaType("json", JSON, TABLE, pretty=True)
    assert RESOURCE.output(YAML, pretty=True) == MediaType("yaml", YAML)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", MediaType("json", JSON)),
        (f"{JSON};stream=watch", MediaType("json", JSON)),
        (f"{JSON};pretty=1", MediaType("json", JSON)),
        (PROTOBUF, MediaType("protobuf", f"{PROTOBUF};stream=watch")),
        (f"{PROTOBUF};stream=watch", MediaType("protobuf", f"{PROTOBUF};stream=watch")),
        (CBOR, MediaType("cbor", CBOR_SEQUENCE)),
        (f"{JSON}{AS_TABLE}", MediaType("json", JSON, TABLE)),
    ],
)
def test_watch_media_types(accept: str, chosen: MediaType) -> None:
    assert WITH_CBOR.stream(accept) == chosen


@pytest.mark.parametrize("accept", [YAML, "text/plain", CBOR])
def test_unsupported_watch_media_types_return_406(accept: str) -> None:
    with pytest.raises(StatusError) as caught:
        RESOURCE.stream(accept)
    assert refusal(caught) == (406, f"only the following media types are accepted: {STREAMS}")


def test_media_type_of_error_responses() -> None:
    assert negotiation.error_output(YAML) == MediaType("yaml", YAML)
    assert negotiation.error_output(PROTOBUF) == MediaType("protobuf", PROTOBUF)
    assert negotiation.error_output(f"{JSON}{AS_TABLE},{JSON}") == MediaType("json", JSON)
    assert negotiation.error_output("text/plain") == MediaType("json", JSON, pretty=True)
    assert negotiation.error_output(CBOR, cbor=True) == MediaType("cbor", CBOR)
    assert negotiation.error_output("", pretty=True) == MediaType("json", JSON, pretty=True)


@pytest.mark.parametrize(
    ("pretty", "agent", "expected"),
    [
        ("", "curl/8", True), ("", "Wget/1", True), ("", "Mozilla/5.0 (X11)", True), ("", "kubectl/v1.36", False), ("", "", False),
        ("1", "", True), ("true", "", True), ("T", "", True), ("0", "curl/8", False), ("yes", "curl/8", False),
    ],
)  # fmt: skip
def test_pretty_default_depends_on_parameter_and_user_agent(pretty: str, agent: str, expected: bool) -> None:
    assert negotiation.is_pretty(pretty, agent) is expected


# ---------------------------------------------------------------- the router


@pytest.mark.parametrize("accept", ["", "*/*", JSON, f"text/html, {YAML};q=0.1", f"{PROTOBUF};as=Nope", f" {JSON} "])
def test_router_accepts_media_types(accept: str) -> None:
    negotiation.route(accept, RESOURCE.media_types)


@pytest.mark.parametrize("accept", ["*", "application/*", "text/plain", "Application/JSON", ",", CBOR])
def test_router_rejects_unknown_accept_header_with_406(accept: str) -> None:
    with pytest.raises(StatusError) as caught:
        negotiation.route(accept, (*RESOURCE.media_types, *RESOURCE.stream_types))
    assert refusal(caught) == (406, f"406: Not Acceptable\n\nAvailable representations: {KNOWN}, {STREAMS}")
    assert caught.value.details == {}


def test_router_checks_patch_content_types() -> None:
    types = negotiation.patch_types()
    negotiation.route("", RESOURCE.media_types, f"{PATCHES[0]}; charset=x", types)
    for content_type in ("", JSON, "Application/json-patch+json"):
        with pytest.raises(StatusError) as caught:
            negotiation.route("text/plain", RESOURCE.media_types, content_type, types)
        assert refusal(caught) == (415, "415: Unsupported Media Type")


# ---------------------------------------------------------------- bodies


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("", "json"), (JSON, "json"), (f"{JSON}; charset=utf-8", "json"), ("Application/JSON", "json"), (f"{JSON};", "json"),
        (f'{JSON}; a="x;y"', "json"), (YAML, "yaml"), (PROTOBUF, "protobuf"), (f" {YAML} ", "yaml"), (f"{JSON};a=b;a=b", "json"),
    ],
)  # fmt: skip
def test_request_content_types(content_type: str, expected: str) -> None:
    assert RESOURCE.input(content_type) == expected


@pytest.mark.parametrize(
    "content_type", ["text/plain", "*/*", CBOR, f"{JSON};a", f"{JSON};=", f"{JSON};a=b;a=c", "application/json,", ";"]
)
def test_unsupported_request_content_type_returns_415(content_type: str) -> None:
    with pytest.raises(StatusError) as caught:
        RESOURCE.input(content_type)
    assert refusal(caught) == (415, f"the body of the request was in an unknown format - accepted media types include: {KNOWN}")


def test_supported_patch_types() -> None:
    json_patch, merge, strategic, apply, apply_cbor = PATCHES
    assert negotiation.patch_types() == (json_patch, merge, strategic, apply)
    assert negotiation.patch_types(strategic=False, cbor=True) == (json_patch, merge, apply, apply_cbor)
    assert negotiation.patch_input(f"{merge};charset=utf-8", negotiation.patch_types()) == merge
    with pytest.raises(StatusError) as caught:
        negotiation.patch_input(strategic, negotiation.patch_types(strategic=False))
    message = f"the body of the request was in an unknown format - accepted media types include: {json_patch}, {merge}, {apply}"
    assert refusal(caught) == (415, message)


# ---------------------------------------------------------------- anything

_PIECES = [*'*/;,=q.01 "\\', "application", "json", "yaml", "as", "Table", "v1", "meta.k8s.io", "watch", "é"]
_HEADERS = st.lists(st.sampled_from(_PIECES), max_size=20).map("".join)


@given(_HEADERS)
def test_arbitrary_headers_are_accepted_or_rejected(header: str) -> None:
    for judge in (RESOURCE.output, RESOURCE.stream, RESOURCE.input, lambda text: negotiation.route(text, RESOURCE.media_types)):
        try:
            judge(header)
        except StatusError as refused:
            assert refused.code in (406, 415)


def test_many_ranges_are_sorted_with_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    original = negotiation._is_preferred

    def count(one: negotiation.Clause, other: negotiation.Clause) -> bool:
        nonlocal compared
        compared += 1
        return original(one, other)

    monkeypatch.setattr(negotiation, "_is_preferred", count)
    found = negotiation.clauses(",".join(f"application/json;q=0.{number % 10}" for number in range(2_000)))
    assert [one.quality for one in found] == sorted((one.quality for one in found), reverse=True)
    assert compared < 100_000
