"""Decodes request bodies into objects of the kind that the endpoint accepts.

The steps follow the order of the real server: determine the format from Content-Type, parse the document, read its kind
and apiVersion (the endpoint supplies missing ones), decode by the schema of that kind, and only then check that the
endpoint accepts the kind. fieldValidation decides whether strict decoding errors are warnings, errors or ignored.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/rest.go (transformDecodeError), create.go, delete.go;
k8s.io/apimachinery/pkg/runtime/serializer/json.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fakekube.apiextensions.instances import objects, pruning
from fakekube.apimachinery import features
from fakekube.apimachinery.codecs import ContentError, cbor, json, protobuf, yaml
from fakekube.apimachinery.codecs import DecodeError as CodecError
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.schema import decode as schema_decode
from fakekube.apimachinery.schema import printing, trees
from fakekube.apimachinery.schema.builtin import Builtins
from fakekube.apimachinery.schema.defaults import Defaulter
from fakekube.apimachinery.schema.known_specs import SPEC, decode_changes, decode_spec, set_defaults
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.strict import strict_decoding_error
from fakekube.apimachinery.schema.trees import deep_copy, unchanged_parts
from fakekube.apimachinery.schema.walk import Literals, SlowPathRequired, keep_before_null
from fakekube.apis.rest.resource import GVK
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.golang.strconv import go_quote, json_kind, unmarshal_error
from fakekube.base.golang.strings import text_of
from fakekube.base.objects import Object

_SUMMARY_LENGTH = 30

#: Kinds of old versions that endpoints of a newer version accept.
_SAME_AS = {GVK("policy", "v1beta1", "Eviction"): GVK("policy", "v1", "Eviction")}


@dataclass(slots=True)
class Parsed:
    """A parsed document, before it is decoded by a schema."""

    value: Any
    duplicates: Sequence[str] = ()
    """Paths of duplicate members (JSON)."""
    first: Any = None
    """The document with the first values of the duplicates: their errors are reported, too."""
    problems: Sequence[str] = ()
    """The errors of the strict YAML parser, one line each."""
    source: bytes | None = None
    """The JSON text, if the document was JSON."""
    literals: Literals | None = None
    """Returns the document with numbers as their text, if there is no source (`schema_decode.decode`)."""
    cbor: bytes | None = None
    """The CBOR data, if the document was CBOR: its decoding errors have different messages."""
    has_texts: bool = False
    """Values of any form have their texts already (Protobuf)."""
    is_usual: bool = False
    """The CBOR uses the common encoding of every value, so that the decoded values are unambiguous."""

    @property
    def is_plain(self) -> bool:
        """Whether the document is a JSON object that has each of its members once."""
        return self.value.__class__ is dict and self.cbor is None and not (self.duplicates or self.problems)

    def read_literals(self) -> Any:
        """Returns the document with numbers as their text, from its source."""
        assert self.source is not None
        return json.literals(self.source)

    def read_members(self) -> Iterable[str]:
        """Returns the paths of all members in the order of the source."""
        assert self.source is not None
        return json.members(self.source)


@dataclass(slots=True)
class Problem(Exception):
    """A decoding error of a body, and the kind that the body declares if that is known."""

    message: str
    kind: GVK | None = None


def _form_of(scope: Scope) -> str:
    """Returns the format of the body of a request. Raises StatusError 415."""
    return negotiation.offer_of(scope).input(scope.request.content_type)


def decode(scope: Scope, form: str, body: bytes, field_validation: str, live: Object | None = None) -> Object:
    """Returns the object in a body, in the version of the endpoint: built-in kinds without kind and apiVersion.

    `form`: the format of the body. `live`: the object that the body replaces; what is the same there is not decoded.
    Raises StatusError 400. Strict decoding errors become warnings of the response if `field_validation` is Warn.
    """
    try:
        parsed = _parse(scope.resource.emulation.types, form, body, scope.kind, custom=scope.is_custom)
        obj = _decode(scope, parsed, field_validation, body, live)
    except Problem as problem:
        raise status.bad_request(_explain(scope, problem, scope.kind, body)) from None
    if scope.request.audit is not None:
        scope.request.audit.request_object(_as_sent(scope, obj))
    return obj


def _as_sent(scope: Scope, obj: Object) -> Object:
    """Returns a copy of the decoded object for the audit event, in the version of the endpoint."""
    if scope.is_custom:
        return dict(deep_copy(obj))
    shown = printing.normalise(scope.type, deep_copy(obj))
    return {"kind": scope.kind.kind, "apiVersion": scope.kind.api_version, **shown}


def _decode(scope: Scope, parsed: Parsed, field_validation: str, body: bytes, live: Object | None) -> Object:
    wants_strict, expected = field_validation != "Ignore", scope.kind
    if scope.is_custom:
        kind, obj, strict = _custom(scope, parsed, body, wants_strict=wants_strict)
        claimed = kind
    else:
        claimed = kind = _interpret_kind(parsed, expected, body)
        if kind is not expected:
            kind = _SAME_AS.get(kind, kind)
            if scope.resource.custom and kind != expected:
                raise Problem(_format_not_registered(kind), kind)
        try:
            target = _Target(scope.resource.emulation.types, expected, wants_strict, live, scope.constants)
            obj, strict = _to_typed(target, kind, parsed)
        except Problem as problem:
            raise Problem(problem.message, claimed if problem.kind == kind else problem.kind) from None
    if wants_strict and parsed.problems:
        whole = [yaml.strict_error(parsed.problems)] if field_validation == "Strict" else parsed.problems
        strict = [*whole, *strict]
    try:
        report_strict_errors(scope, strict, field_validation)
    except Problem as problem:
        raise status.bad_request(_explain(scope, Problem(problem.message, claimed), claimed, b"")) from None
    if kind is not expected and (kind.group, kind.version) != (expected.group, expected.version):
        raise _wrong_version(kind, expected)
    scope.default(obj, has_constants=not scope.is_custom)
    return obj


def decode_patched(
    scope: Scope, value: Any, live: Object, literals: Literals | None, *, wants_strict: bool
) -> tuple[Object, list[str]]:
    """Decodes the JSON result of a patch of the live object; `literals`: see `schema.decode.decode`.

    Returns the object and the strict decoding errors. Raises Problem.
    """
    if scope.is_custom:
        known = None if scope.resource.converts_by_call else live  # of which the metadata may be what the webhook has made
        _, obj, strict = _custom(scope, Parsed(_with_version(value)), None, wants_strict=True, live=known)
        return obj, strict if wants_strict else []
    changed = _decode_changes(scope, value, live)
    if changed is not None:
        return changed, []
    kind, types = _kind_of(value, scope.kind, b""), scope.resource.emulation.types
    if isinstance(value, dict) and not _has_version(value) and not scope.resource.custom:  # it has no schema
        nothing, _ = _to_typed(_Target(types, scope.kind, default=scope.constants), scope.kind, Parsed({}))
        return nothing, [f'unknown field "{name}"' for name in sorted(value) if name not in _TYPE_META] if wants_strict else []
    return _to_typed(_Target(types, scope.kind, wants_strict, None, scope.constants), kind, Parsed(value, literals=literals))


def _decode_changes(scope: Scope, value: Any, live: Object) -> Object | None:
    """Returns the object in a document that a patch has made of the live one; None if it must be decoded as a whole.

    That is one of another kind, with errors or unknown fields, or of a type with values of any form.
    """
    type_ = scope.type
    if value.__class__ is not dict or not _is_of(value, scope.kind) or trees.holds_raw_values(type_):
        return None
    try:
        obj = decode_changes(type_, value, live, scope.constants)
    except (SlowPathRequired, schema_decode.DecodeError):
        return None
    del obj["kind"], obj["apiVersion"]
    return obj


def _has_version(value: Object) -> bool:
    return bool((value.get("apiVersion") or "").rpartition("/")[2])


def _with_version(value: Any) -> Any:
    """Checks that a patched custom resource has a version. Raises Problem or StatusError 500, as the real server does."""
    if not isinstance(value, dict):
        return value
    version = value.get("apiVersion", "")
    if version is None:
        raise Problem(_NO_VERSION_TEXT)
    if isinstance(version, str) and value.get("kind") and version.count("/") < 2:
        short = version.rpartition("/")[2]
        if not short:
            raise status.internal("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        if version == f"/{short}":  # it is written anew from its parts
            return {**value, "apiVersion": short}
    return value


def report_strict_errors(scope: Scope, strict: Sequence[str], field_validation: str) -> None:
    """Reports strict decoding errors: not, as warnings of the response, or as an error. Raises Problem for Strict."""
    if not strict or field_validation == "Ignore":
        return
    if field_validation == "Strict":
        raise Problem(strict_decoding_error(strict))
    for finding in strict:
        lines = finding.removeprefix(yaml.STRICT_ERROR).split("\n") if finding.startswith(yaml.STRICT_ERROR) else [finding]
        scope.request.warnings.extend(line.strip() for line in lines)


def decode_delete_options(scope: Scope, body: bytes) -> Object:
    """Returns the DeleteOptions in a body. Raises StatusError 400 or 415; here errors are not wrapped."""
    form = _form_of(scope)
    try:
        parsed = _parse(scope.resource.emulation.types, form, body, _DELETE_OPTIONS, custom=False)
        kind = _interpret_kind(parsed, _ANY_DELETE_OPTIONS, body)
        if kind.kind != _DELETE_OPTIONS.kind:  # of whatever version
            raise Problem(_format_not_registered(kind))
        found, _ = _to_typed(_Target(scope.resource.emulation.types, _DELETE_OPTIONS), _DELETE_OPTIONS, parsed)
    except Problem as problem:
        is_other = problem.kind is not None and problem.kind.kind != _DELETE_OPTIONS.kind  # then it has no schema
        text = _format_not_registered(problem.kind) if problem.kind and is_other else problem.message
        wraps = scope.resource.emulation.minor >= _DELETE_OPTIONS_REFUSED_SINCE
        raise status.bad_request(text) if wraps else status.generic(500, "", text) from None
    if scope.request.audit is not None:
        scope.request.audit.request_object({"kind": kind.kind, "apiVersion": _INTERNAL_META, **found})
    return found


#: The number of the first minor that answers DeleteOptions which it cannot decode with 400, and not with 500.
_DELETE_OPTIONS_REFUSED_SINCE = 35
#: The version of options in audit events.
_INTERNAL_META = "meta.k8s.io/__internal"
_NO_VERSION_TEXT = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
_TYPE_META = ("kind", "apiVersion")
_FOLDED = {name.casefold(): name for name in _TYPE_META}
_USUAL_NAMES = frozenset({*_TYPE_META, "metadata", "spec", "status", "data", "type", "subjects", "roleRef", "rules", "webhooks"})
"""Names of members of which none is another way to write the name of one of the type meta."""
_DELETE_OPTIONS = GVK("", "v1", "DeleteOptions")
#: The kind and apiVersion of a body that has none.
_ANY_DELETE_OPTIONS = GVK("meta.k8s.io", "v1", "DeleteOptions")


# --- Steps ------------------------------------------------------------------------------------------------------------


def _parse(types: Builtins, form: str, body: bytes, expected: GVK, *, custom: bool) -> Parsed:
    """Raises Problem."""
    try:
        if form == "json":
            value, duplicates = json.loads(body, merge=not custom)
            first = json.first_values(body, merge=not custom) if duplicates else None
            return Parsed(value, duplicates, first, (), body)
        if form == "yaml":
            value, problems = yaml.loads(body)
            return Parsed(value, problems=problems)
        if form == "cbor":
            value, is_usual = cbor.read(body, untyped=custom)
            return Parsed(value, cbor=body, is_usual=is_usual)
        any_version = expected == _DELETE_OPTIONS
        supplied = _ANY_DELETE_OPTIONS if any_version else expected
        return Parsed(
            protobuf.loads(body, supplied.api_version, supplied.kind, any_version=any_version, types=types), has_texts=True
        )
    except ContentError as error:
        kind = _kind_of({"apiVersion": error.api_version, "kind": error.kind}, expected, body)
        if form != "cbor" or custom:
            raise Problem(str(error), kind) from None
        type_ = types.kind_type(kind.group, kind.version, kind.kind)
        explained = cbor.type_errors(body, type_)[0] if type_ is not None else ""
        if explained:
            raise Problem(explained, kind) from None
        return Parsed(cbor.loads_lenient(body), cbor=body)  # it is in a field that the type does not have
    except CodecError as error:
        raise Problem(status.uninterpretable(error) if form == "json" else str(error)) from None


def _interpret_kind(parsed: Parsed, expected: GVK, body: bytes) -> GVK:
    """Returns kind and version of a document; the endpoint supplies missing ones. Raises Problem."""
    if parsed.duplicates:
        _type_meta(parsed.first)
    return _kind_of(parsed.value, expected, body, any_case=parsed.cbor is None)


def _kind_of(value: Any, expected: GVK, body: bytes, *, any_case: bool = True, is_cbor: bool = False, half: bool = False) -> GVK:
    """Returns kind and version of a document; the endpoint supplies missing ones; `half`: a group may lack a version.

    Raises Problem.
    """
    if value.__class__ is dict and _is_of(value, expected):
        return expected
    api_version, kind = _type_meta(value, any_case=any_case)
    group, version = _group_version(api_version)
    if not group and not version:
        group, version = expected.group, expected.version
    elif not version:
        if group == expected.group:
            version = expected.version
        elif not half:
            shown = _format_body(body or json.dumps(value), is_cbor=is_cbor)
            raise Problem(f"Object 'apiVersion' is missing in '{shown}'", GVK(group, version, kind or expected.kind))
    claimed = (group, version, kind or expected.kind)
    return expected if claimed == (expected.group, expected.version, expected.kind) else GVK(*claimed)


def _is_of(value: Object, expected: GVK) -> bool:
    """Reports whether a document has exactly the expected kind and apiVersion, and no names that differ in case."""
    named = value.get("kind") == expected.kind and value.get("apiVersion") == expected.api_version
    return named and value.keys() <= _USUAL_NAMES


def _type_meta(value: Any, *, any_case: bool = True) -> tuple[str, str]:
    """Returns apiVersion and kind of a document; encoding/json ignores the case of their names. Raises Problem."""
    if value is None:
        return "", ""
    if not isinstance(value, dict):
        raise Problem(status.uninterpretable(unmarshal_error(json_kind(value), status.TYPE_META)))
    if value.keys() <= _USUAL_NAMES:
        api_version, kind = value.get("apiVersion", ""), value.get("kind", "")
        if api_version.__class__ is str and kind.__class__ is str:
            return api_version, kind
    texts = dict.fromkeys(_TYPE_META, "")
    for name, text in value.items():
        known = _FOLDED.get(name.casefold()) if any_case else name
        if known not in texts or text is None:
            continue
        if not isinstance(text, str):
            raise Problem(status.uninterpretable(unmarshal_error(json_kind(text), "string", f".{known}")))
        texts[known] = text
    return texts["apiVersion"], texts["kind"]


def _group_version(api_version: str) -> tuple[str, str]:
    if api_version in ("", "/"):
        return "", ""
    slashes = api_version.count("/")
    if slashes > 1:
        raise Problem(f"unexpected GroupVersion string: {api_version}")
    group, _, version = api_version.rpartition("/")
    return group, version


@dataclass(slots=True)
class _Target:
    """What a document is decoded into, by the schema of the kind that it declares."""

    types: Builtins
    expected: GVK
    """The kind of the endpoint."""
    wants_strict: bool = False
    live: Object | None = None
    """An object of the expected kind; what a document has in common with it is not decoded."""
    default: Defaulter | None = None
    """Sets the constant defaults of the expected kind."""


def _to_typed(target: _Target, kind: GVK, parsed: Parsed) -> tuple[Object, list[str]]:
    """Decodes a document by the schema of its declared kind; returns the object and the strict errors. Raises Problem."""
    type_ = target.types.kind_type(kind.group, kind.version, kind.kind)
    if type_ is None and target.types.facts.kind(kind.group, kind.version, kind.kind) is None:
        raise Problem(_format_not_registered(kind), kind)
    if type_ is None:
        _refuse_other_kind(kind, target.expected, None)
        return {}, []
    members = parsed.read_members if parsed.source is not None else None
    strict = schema_decode.Strict(parsed.duplicates, members) if target.wants_strict else None
    known = _known_parts(target, kind, type_, parsed)
    try:
        obj = _decode_by_type(type_, parsed, strict, known)
    except schema_decode.DecodeError as error:
        raise Problem(_cbor_errors(type_, parsed)[0] or str(error), kind) from None
    if parsed.cbor is not None and (cbor.is_stricter(type_) or not parsed.is_usual):
        explained = _cbor_errors(type_, parsed)[0]  # strings are no bytes, numbers no quantities and no field names
        if explained:
            raise Problem(explained, kind)
    _refuse_other_kind(kind, target.expected, type_)
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    obj.update(known.parts)
    if target.default is not None:
        set_defaults(target.default, obj, but_spec=known.has_decoded_spec)
    findings = strict.messages if strict is not None and (strict.unknown or strict.duplicates) else []
    if findings and parsed.cbor is not None:
        findings = [_cbor_errors(type_, parsed)[1]]
    return obj, findings


@dataclass(slots=True)
class _KnownParts:
    """The decoded parts of a document that are known, since the live object or another one has the same."""

    parts: Object = field(default_factory=dict)
    has_decoded_spec: bool = False
    """The spec is among them, with its constant defaults."""


#: Shared by documents without such parts; nothing changes it.
_NOTHING_KNOWN = _KnownParts()


def _known_parts(target: _Target, kind: GVK, type_: Type, parsed: Parsed) -> _KnownParts:
    value = parsed.value
    if kind is not target.expected or value.__class__ is not dict or (target.live is None and SPEC not in value):
        return _NOTHING_KNOWN
    if not parsed.is_plain or trees.holds_raw_values(type_):
        return _NOTHING_KNOWN
    known = _KnownParts()
    if target.live is not None:
        known.parts = {name: value[name] for name in unchanged_parts(value, target.live)}
    spec = value.get(SPEC)
    if spec and spec.__class__ is dict and SPEC not in known.parts and SPEC in type_.fields:
        try:
            known.parts[SPEC] = decode_spec(type_, target.default, spec)
            known.has_decoded_spec = True
        except (SlowPathRequired, schema_decode.DecodeError):
            pass  # the whole document tells the first of its errors
    return known


def _decode_by_type(type_: Type, parsed: Parsed, strict: schema_decode.Strict | None, known: _KnownParts) -> Object:
    """Returns the decoded object, in which `KNOWN` stands for the known parts. Raises DecodeError."""
    if parsed.duplicates:
        schema_decode.decode(type_, parsed.first or {}, None)
        keep_before_null(type_, parsed.value, parsed.first)
    value = {**parsed.value, **dict.fromkeys(known.parts, trees.KNOWN)} if known.parts else parsed.value or {}
    literals = parsed.literals if parsed.source is None else parsed.read_literals
    obj: Object = schema_decode.decode(type_, value, strict, literals)
    if trees.holds_raw_values(type_) and not parsed.has_texts:
        trees.keep_texts(type_, obj, parsed.source) if parsed.source is not None else trees.compact(type_, obj)
    return obj


def _cbor_errors(type_: Type, parsed: Parsed) -> tuple[str, str]:
    """Returns the text of the decoding errors of a CBOR document, and that of the strict ones; empty for other formats."""
    return cbor.type_errors(parsed.cbor, type_) if parsed.cbor is not None else ("", "")


def _refuse_other_kind(kind: GVK, expected: GVK, type_: Type | None) -> None:
    """Raises Problem if objects of the declared kind cannot be converted to the expected one."""
    if kind is expected or kind.internal_type == expected.internal_type:
        return
    claimed = type_.name.rpartition("/")[2] if type_ is not None else f"{kind.version}.{kind.kind}"
    raise Problem(f"converting ({claimed}) to ({expected.internal_type}): unknown conversion", kind)


def _custom(
    scope: Scope, parsed: Parsed, body: bytes | None, *, wants_strict: bool, live: Object | None = None
) -> tuple[GVK, Object, list[str]]:
    """Decodes a custom resource by its schema; kind and apiVersion are required, unless the
    resource implies them. `body` None: no body. `live`: the stored object that was patched. Raises Problem."""
    value = parsed.value
    if scope.resource.implies_kind and isinstance(value, dict):
        value = {"kind": scope.kind.kind, "apiVersion": scope.kind.api_version, **value}
    is_usual = value.__class__ is dict and not parsed.duplicates and _is_of(value, scope.kind)
    kind = scope.kind if is_usual else _kind_of_custom(scope, parsed, value, body, wants_strict=wants_strict)
    try:
        if parsed.duplicates:
            json.to_untyped(parsed.first)
        value = json.to_untyped(value)
        known = (kind.group, kind.kind) == (scope.kind.group, scope.kind.kind)
        obj, strict = pruning.read(scope.resource.type, value, known=known, live=live, is_own=body is not None)
    except (objects.MetadataError, CodecError) as error:
        raise Problem(str(error), kind) from None
    if parsed.cbor is not None:  # unknown fields are not reported
        return kind, obj, []
    return kind, obj, [*(f'duplicate field "{path}"' for path in parsed.duplicates), *strict]


def _kind_of_custom(scope: Scope, parsed: Parsed, value: Any, body: bytes | None, *, wants_strict: bool) -> GVK:
    """Returns kind and version of a custom resource in a body. Raises Problem."""
    is_cbor = parsed.cbor is not None
    said = _interpret_cbor(value) if is_cbor else value
    if not is_cbor:
        if parsed.duplicates:
            _type_meta(parsed.first)
        _type_meta(value)
    kind = _kind_of(said, GVK("", "", ""), body or b"", any_case=False, is_cbor=is_cbor, half=True)
    if not kind.kind:
        if body is not None and (is_cbor or wants_strict):
            raise Problem(status.missing_kind(_format_body(body, is_cbor=is_cbor)))
        read = body if body is not None and parsed.source is not None else json.dumps(value)
        raise Problem(status.missing_kind(_format_body(read)), None if wants_strict else scope.kind)
    if not is_cbor and isinstance(value, dict) and value.get("apiVersion", "") is None:
        raise Problem(_NO_VERSION_TEXT, kind)
    if is_cbor and not kind.version:
        raise Problem(f"Object 'apiVersion' is missing in '{_format_body(body or b'', is_cbor=True)}'", kind)
    return kind


def _interpret_cbor(value: Object | None) -> Object:
    """Returns kind and version of an object without a Go type; empty if the document is malformed or not an object."""
    said = {name: text for name in _TYPE_META if isinstance(text := (value or {}).get(name), str)}
    return said if said.get("apiVersion", "").count("/") < 2 else {}


def _wrong_version(kind: GVK, expected: GVK) -> StatusError:
    got, wanted = kind.api_version, expected.api_version
    return status.bad_request(f"the API version in the data ({got}) does not match the expected API version ({wanted})")


def _format_not_registered(kind: GVK) -> str:
    return status.not_registered(kind.kind, kind.api_version)


def _explain(scope: Scope, problem: Problem, expected: GVK, body: bytes) -> str:
    if scope.resource.custom and not scope.is_custom:  # a scheme that can decode the scale, but reports no details of errors
        return f'no kind is registered for the type v1.{scope.kind.kind} in scheme "{features.current().scheme}"'
    if problem.kind is not None:
        kind = problem.kind
        return f"{kind.kind} in version {go_quote(kind.version)} cannot be handled as a {expected.kind}: {problem.message}"
    return f"the object provided is unrecognized (must be of type {expected.kind}): {problem.message} ({_summary(body)})"


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    head, more = body[:_SUMMARY_LENGTH], " ..." if len(body) > _SUMMARY_LENGTH else ""
    return (_format_body(head) if body[:1] == b"{" else head.hex()) + more


def _format_body(body: bytes, *, is_cbor: bool = False) -> str:
    return cbor.diagnosis(body) if is_cbor else text_of(body)
