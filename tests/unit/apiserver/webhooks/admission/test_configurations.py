"""Order and caching of webhook configurations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakekube.apiserver.webhooks.admission.configurations import Configurations, Webhook


@dataclass
class Services:
    """A cluster with some configurations; counts how often they are read."""

    webhooks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    revision: int = 1
    reads: int = 0

    def last_change(self, group: str, plural: str) -> int:
        return self.revision

    def list(self, group: str, plural: str) -> Iterator[Any]:
        self.reads += 1
        return iter([{"metadata": {"name": name}, "webhooks": self.webhooks[name]} for name in sorted(self.webhooks)])


def test_webhooks_are_ordered_by_configuration_name() -> None:
    services: Any = Services({"b": [{"name": "x"}, {"name": "y"}, {"name": "x"}], "a": [{"name": "z"}]})
    found = Configurations("validatingwebhookconfigurations").webhooks(services)
    assert [(webhook.configuration, webhook.uid) for webhook in found] == [
        ("a", "a/z/0"),
        ("b", "b/x/0"),
        ("b", "b/y/0"),
        ("b", "b/x/1"),
    ]


def test_configurations_are_cached_until_a_change() -> None:
    services: Any = Services({"a": [{"name": "x"}]})
    configurations = Configurations("mutatingwebhookconfigurations")
    first = configurations.webhooks(services)
    assert configurations.webhooks(services) is first and services.reads == 1
    services.webhooks, services.revision = {}, 2
    assert not configurations.webhooks(services)


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        ({}, "fails_open", False),
        ({"failurePolicy": "Ignore"}, "fails_open", True),
        ({}, "timeout", 10),
        ({"timeoutSeconds": 3}, "timeout", 3),
        ({"sideEffects": "None"}, "supports_dry_run", True),
        ({"sideEffects": "NoneOnDryRun"}, "supports_dry_run", True),
        ({"sideEffects": "Some"}, "supports_dry_run", False),
        ({}, "supports_dry_run", False),
        ({"reinvocationPolicy": "IfNeeded"}, "reinvocable", True),
        ({"reinvocationPolicy": "Never"}, "reinvocable", False),
        ({"admissionReviewVersions": ["v2", "v1beta1", "v1"]}, "review_version", "v1beta1"),
        ({"admissionReviewVersions": ["v2"]}, "review_version", None),
    ],
)
def test_webhook_defaults_and_fields(spec: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(Webhook("c", "c/x/0", {"name": "x", **spec}), field) == value
