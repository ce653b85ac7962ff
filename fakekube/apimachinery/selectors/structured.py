"""Label selectors of objects: a metav1.LabelSelector with matchLabels and matchExpressions.

Specified by: k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fakekube.apimachinery.selectors.errors import SelectorError
from fakekube.apimachinery.selectors.labels import EVERYTHING, NOTHING, LabelRequirement, LabelSelector, Operator, requirement
from fakekube.base.golang.quoting import go_quote

_OPERATORS = {"In": Operator.IN, "NotIn": Operator.NOT_IN, "Exists": Operator.EXISTS, "DoesNotExist": Operator.DOES_NOT_EXIST}


def from_label_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Compiles a metav1.LabelSelector: an absent one matches nothing, an empty one everything.

    Raises SelectorError.
    """
    if selector is None:
        return NOTHING
    labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    if not labels and not expressions:
        return EVERYTHING
    of_labels = _of_labels(tuple(sorted(labels.items())))
    if not expressions:
        return of_labels
    return LabelSelector((*of_labels.requirements, *map(_from_expression, expressions)))


@lru_cache(maxsize=1024)
def _of_labels(labels: tuple[tuple[str, str], ...]) -> LabelSelector:
    """Returns the selector of labels that must be equal; it is cached, as many objects share the same labels."""
    return LabelSelector(tuple(requirement(key, Operator.EQUALS, (value,)) for key, value in labels))


def _from_expression(expression: Mapping[str, Any]) -> LabelRequirement:
    name = expression.get("operator", "")
    operator = _OPERATORS.get(name)
    if operator is None:
        raise SelectorError(f"{go_quote(name)} is not a valid label selector operator")
    return requirement(expression.get("key", ""), operator, expression.get("values") or ())
