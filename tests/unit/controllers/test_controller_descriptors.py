"""Which controllers there are and which of them run."""

from __future__ import annotations

import pytest

from fakekube import Cluster
from fakekube.controllers.controller_descriptors import (
    ALIASES,
    ANY_RESOURCE,
    CONTROLLERS,
    ControllerDescriptor,
    UnknownController,
    select_controllers,
)
from fakekube.nodes.controller_descriptors import NODE_CONTROLLERS

ALL = (*CONTROLLERS, *NODE_CONTROLLERS)


@pytest.mark.parametrize("descriptor", ALL, ids=lambda descriptor: descriptor.name)
def test_a_descriptor_leads_to_a_controller_of_its_name(descriptor: ControllerDescriptor) -> None:
    controller = descriptor.new_controller()
    assert controller.name == descriptor.name
    chooses_itself = not controller.watches  # by also_watch
    has_work_at_start = "on_start" in vars(type(controller))
    assert (
        chooses_itself
        or has_work_at_start
        or ANY_RESOURCE in descriptor.starts_on
        or set(descriptor.starts_on) <= set(controller.watches)
    )


def test_names_are_unique() -> None:
    names = [descriptor.name for descriptor in ALL]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("switches", "names"),
    [
        ([], set()),
        (["namespace-controller"], {"namespace-controller"}),
        (["*"], {descriptor.name for descriptor in ALL if descriptor.by_default}),
        (
            ["*", "-namespace-controller"],
            {descriptor.name for descriptor in ALL if descriptor.by_default} - {"namespace-controller"},
        ),
        (["-namespace-controller", "namespace-controller"], {"namespace-controller"}),
        ([""], set()),
    ],
)
def test_controllers_flag(switches: list[str], names: set[str]) -> None:
    assert {descriptor.name for descriptor in select_controllers(switches, NODE_CONTROLLERS)} == names


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_former_names_are_accepted(alias: str, name: str) -> None:
    assert [descriptor.name for descriptor in select_controllers([alias])] == [name]
    assert name not in {descriptor.name for descriptor in select_controllers(["*", f"-{alias}"])}


def test_an_unknown_controller_is_an_error() -> None:
    with pytest.raises(UnknownController, match='"nobody" is not in the list of known controllers'):
        Cluster(controllers="*,-nobody")


def test_controllers_are_enabled_by_name() -> None:
    with Cluster(controllers="*,-serviceaccount-controller") as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        cluster.settle()
        assert cluster.list("serviceaccounts", namespace="team") == []
        assert cluster.list("configmaps", namespace="team")
    with Cluster(profile="apiserver", controllers="serviceaccount-controller") as cluster:
        assert cluster.list("serviceaccounts", namespace="default")
        assert cluster.list("configmaps", namespace="default") == []
