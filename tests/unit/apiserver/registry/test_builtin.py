"""The tables that map served resources to the code of their kinds."""

from __future__ import annotations

import pytest

from fakekube.apimachinery import data, features
from fakekube.apis.rest.strategy import Projection, Strategy
from fakekube.apiserver.registry import builtin, storage

ROWS = [row for minor in data.RELEASES for row in data.minor(minor).resources]
SERVED = {(row.group, row.name) for row in ROWS}
VERSIONS = {(f"{row.group}/{row.version}", row.name) for row in ROWS}
STORED_AS = [(f"{group}/{version}", plural) for group, version, plural in builtin.STORED_AS]


@pytest.mark.parametrize("key", [*storage.PROVIDERS, *builtin.ACTIONS, *builtin.COMPUTED, *STORED_AS])
def test_every_builtin_row_names_a_served_resource(key: tuple[str, str]) -> None:
    assert key in SERVED | VERSIONS


@pytest.mark.parametrize("provider", sorted({*storage.PROVIDERS.values()}, key=str))
def test_storage_has_code_of_every_form(provider: storage.Provider) -> None:
    for found in provider().values():
        made = found() if isinstance(found, type) else found
        assert isinstance(made, (Strategy, Projection)) or callable(made)


@pytest.mark.parametrize("provider", sorted({*storage.PROVIDERS.values()}, key=str))
def test_every_entry_is_found(provider: storage.Provider) -> None:
    """No entry is hidden by another provider, or named by none."""
    keys = [key for key, other in storage.PROVIDERS.items() if other is provider]
    for name, code in provider().items():
        assert any(storage.find_storage(*key.partition("/")[::2], name) is code for key, _ in keys)


def test_every_creatable_builtin_resource_has_its_own_strategy() -> None:
    """A resource without a row is served by the generic strategy: none of the built-in ones is."""
    written = {(row.group, row.name) for row in ROWS if "/" not in row.name and "create" in row.verbs and not row.off}
    by_definition = {("apiextensions.k8s.io", "customresourcedefinitions")}
    known = {(group.partition("/")[0], name) for group, name in storage.PROVIDERS}
    generic = written - known - by_definition
    assert generic == set()


def test_every_resource_has_a_strategy() -> None:
    """Actions and computed resources have the generic one."""
    for resource in builtin.resources():
        assert isinstance(resource.strategy, Strategy), resource.plural


@pytest.mark.parametrize("minor", data.RELEASES)
def test_every_field_label_is_read(minor: str) -> None:
    """The real server never has a value for status.podIPs."""
    unread = {
        (resource.plural, label)
        for resource in builtin.resources(features.emulation(minor))
        for label in resource.field_labels
        if resource.field_label(label) not in resource.field_readers
    }
    assert unread == {("pods", "status.podIPs")}
