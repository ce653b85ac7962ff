"""Variables and their types in CEL environments other than those of CustomResourceDefinitions."""

from __future__ import annotations

import pytest

from fakekube.apimachinery.cel.compilation import JSON_PATCH, OBJECT, ConstantError, ExpressionError, admission, devices
from fakekube.apimachinery.cel.types import ANY, BOOL, DYN, INT


def test_composited_variables_have_the_types_of_their_expressions() -> None:
    known = admission(composed=True)
    known = known.with_variable("count", known.compiled("1 + 1")).with_variable("broken", None)
    known = known.with_variable("asker", known.compiled("request.userInfo"))
    assert known.compiled("variables.count") == INT
    assert known.compiled("variables.broken") == DYN
    assert known.compiled("variables.asker.anything") == DYN
    with pytest.raises(ExpressionError, match="undefined field 'other'"):
        known.compiled("variables.other")


def test_authorizer_is_only_available_in_some_environments() -> None:
    question = "authorizer.requestResource.check('get').allowed()"
    assert admission().compiled(question) == BOOL
    with pytest.raises(ExpressionError, match="undeclared reference to 'authorizer'"):
        admission().without_authorizer().compiled(question)


def test_patch_types_are_only_available_to_mutations() -> None:
    assert admission(patches=True).compiled("Object{spec: Object.spec{replicas: 1}}") == OBJECT
    assert admission(patches=True).compiled("[JSONPatch{op: 'add', path: '/a' + jsonpatch.escapeKey('b/c')}]") == JSON_PATCH
    with pytest.raises(ExpressionError, match="undeclared reference to 'Object'"):
        admission().compiled("Object{}")


def test_device_attributes_are_dynamic() -> None:
    assert devices().compiled("device.attributes['d'].a") == ANY
    assert devices().compiled("cel.bind(own, device.attributes['d'], own.a && own.b)") == BOOL


def test_failing_constant_expression_raises_constant_error() -> None:
    with pytest.raises(ConstantError, match="type conversion error"):
        admission().compiled("int('x') == 1")


def test_too_deep_expression_exceeds_max_recursion_depth() -> None:
    with pytest.raises(ExpressionError, match="max recursion depth exceeded"):
        admission().compiled("-".join(["object"] * 5000))
