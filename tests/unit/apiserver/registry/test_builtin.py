"""The tables that map served resources to the code of their kinds."""

from __future__ import annotations

import pytest

from fakekube.apimachinery import data
from fakekube.apis.rest.strategy import Projection, Strategy
from fakekube.apiserver.registry import builtin

ROWS = [row for minor in data.RELEASES for row in data.minor(minor).resources]
SERVED = {(row.group, row.name) for row in ROWS}
VERSIONS = {(f"{row.group}/{row.version}", row.name) for row in ROWS}


@pytest.mark.parametrize(
    "key", [*builtin.STRATEGIES, *builtin.SUBRESOURCES, *builtin.ACTIONS, *builtin.COMPUTED, *builtin.STORED_AS]
)
def test_every_builtin_row_names_a_served_resource(key: tuple[str, str]) -> None:
    assert key in SERVED | VERSIONS


@pytest.mark.parametrize("path", sorted({*builtin.STRATEGIES.values()}))
def test_strategies_can_be_instantiated(path: str) -> None:
    assert isinstance(builtin.attribute(path)(), Strategy)


@pytest.mark.parametrize("path", sorted({*builtin.SUBRESOURCES.values(), *builtin.ACTIONS.values(), *builtin.COMPUTED.values()}))
def test_subresource_and_action_attributes_resolve(path: str) -> None:
    found = builtin.attribute(path)
    assert isinstance(found, (Strategy, Projection)) or callable(found)


def test_every_creatable_builtin_resource_has_its_own_strategy() -> None:
    """A resource without a row is served by the generic strategy: none of the built-in ones is."""
    written = {(row.group, row.name) for row in ROWS if "/" not in row.name and "create" in row.verbs and not row.off}
    by_definition = {("apiextensions.k8s.io", "customresourcedefinitions")}
    known = {*builtin.STRATEGIES, *builtin.ACTIONS}
    generic = written - known - by_definition
    assert generic == set()
