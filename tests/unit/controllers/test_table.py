"""Which controllers there are and which of them run."""

from __future__ import annotations

import pytest

from fakekube import Cluster
from fakekube.controllers.table import ALIASES, ANYTHING, ROWS, Row, UnknownController, enabled


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_leads_to_a_controller_of_its_name(row: Row) -> None:
    controller = row.load()
    assert controller.name == row.name
    chooses_itself = not controller.watches  # by also_watch
    assert chooses_itself or ANYTHING in row.wakes_on or set(row.wakes_on) <= set(controller.watches)


def test_names_are_unique() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("switches", "names"),
    [
        ([], set()),
        (["namespace-controller"], {"namespace-controller"}),
        (["*"], {row.name for row in ROWS if row.by_default}),
        (["*", "-namespace-controller"], {row.name for row in ROWS if row.by_default} - {"namespace-controller"}),
        (["-namespace-controller", "namespace-controller"], {"namespace-controller"}),
        ([""], set()),
    ],
)
def test_switches(switches: list[str], names: set[str]) -> None:
    assert {row.name for row in enabled(switches)} == names


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_names_of_old_are_understood(alias: str, name: str) -> None:
    assert [row.name for row in enabled([alias])] == [name]
    assert name not in {row.name for row in enabled(["*", f"-{alias}"])}


def test_an_unknown_controller_is_refused() -> None:
    with pytest.raises(UnknownController, match='"nobody" is not in the list of known controllers'):
        Cluster(controllers="*,-nobody")


def test_controllers_are_switched_by_name() -> None:
    with Cluster(controllers="*,-serviceaccount-controller") as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        cluster.settle()
        assert cluster.list("serviceaccounts", namespace="team") == []
        assert cluster.list("configmaps", namespace="team")
    with Cluster(profile="apiserver", controllers="serviceaccount-controller") as cluster:
        assert cluster.list("serviceaccounts", namespace="default")
        assert cluster.list("configmaps", namespace="default") == []
