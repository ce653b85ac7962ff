"""What expressions may name outside of definitions, and of which types it is."""

from __future__ import annotations

import pytest

from fakekube.cel.environments import JSON_PATCH, OBJECT, ConstantError, ExpressionError, admission, devices
from fakekube.cel.types import ANY, BOOL, DYN, INT


def test_variables_have_the_types_of_their_expressions() -> None:
    known = admission(composed=True)
    known = known.with_variable("count", known.compiled("1 + 1")).with_variable("broken", None)
    known = known.with_variable("asker", known.compiled("request.userInfo"))
    assert known.compiled("variables.count") == INT
    assert known.compiled("variables.broken") == DYN
    assert known.compiled("variables.asker.anything") == DYN
    with pytest.raises(ExpressionError, match="undefined field 'other'"):
        known.compiled("variables.other")


def test_only_some_may_ask_for_access() -> None:
    question = "authorizer.requestResource.check('get').allowed()"
    assert admission().compiled(question) == BOOL
    with pytest.raises(ExpressionError, match="undeclared reference to 'authorizer'"):
        admission().without_authorizer().compiled(question)


def test_patches_are_made_where_they_are_known() -> None:
    assert admission(patches=True).compiled("Object{spec: Object.spec{replicas: 1}}") == OBJECT
    assert admission(patches=True).compiled("[JSONPatch{op: 'add', path: '/a' + jsonpatch.escapeKey('b/c')}]") == JSON_PATCH
    with pytest.raises(ExpressionError, match="undeclared reference to 'Object'"):
        admission().compiled("Object{}")


def test_attributes_of_devices_can_be_anything() -> None:
    assert devices().compiled("device.attributes['d'].a") == ANY
    assert devices().compiled("cel.bind(own, device.attributes['d'], own.a && own.b)") == BOOL


def test_a_constant_that_cannot_be_computed_is_an_error_of_its_own() -> None:
    with pytest.raises(ConstantError, match="type conversion error"):
        admission().compiled("int('x') == 1")


def test_whatever_lies_too_deep_is_told_so() -> None:
    with pytest.raises(ExpressionError, match="max recursion depth exceeded"):
        admission().compiled("-".join(["object"] * 5000))
