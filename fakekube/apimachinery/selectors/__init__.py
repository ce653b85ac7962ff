"""Label and field selectors: parsed once and cached, with fast matching.

A text that is not a selector raises `SelectorError` with the message that the real server puts into its 400. Selectors
are immutable values; `str` returns their canonical text, which parses to an equal selector.

Specified by: k8s.io/apimachinery/pkg/labels, k8s.io/apimachinery/pkg/fields.
"""

from __future__ import annotations

from fakekube.apimachinery.selectors.fields import FieldRequirement, FieldSelector, field_equals, parse_fields
from fakekube.apimachinery.selectors.labels import (
    LabelRequirement,
    LabelSelector,
    Operator,
    SelectorError,
    from_label_selector,
    parse_labels,
)

__all__ = [
    "FieldRequirement",
    "FieldSelector",
    "LabelRequirement",
    "LabelSelector",
    "Operator",
    "SelectorError",
    "field_equals",
    "from_label_selector",
    "parse_fields",
    "parse_labels",
]
