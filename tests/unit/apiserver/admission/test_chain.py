"""Which plugins see which writes, and in which order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from fakekube.apimachinery import data
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apis.rest.cluster_access import AdmissionSnapshot
from fakekube.apiserver.admission.chain import Attributes, Chain, Operation, Plugin
from fakekube.apiserver.admission.optional_plugins import EventRateLimit
from fakekube.apiserver.admission.plugins import plugins
from fakekube.apiserver.registry import builtin

RESOURCES = {(resource.group, resource.plural): resource for resource in builtin.resources()}
KNOWN = {(row.group, row.name) for minor in data.RELEASES for row in data.minor(minor).resources}
PODS, NODES = ("", "pods"), ("", "nodes")


def attributes(
    resource: tuple[str, str], operation: Operation = Operation.CREATE, subresource: str = "", *, dynamic: bool = False
) -> Attributes:
    context: Any = SimpleNamespace(configured=AdmissionSnapshot(webhooks_or_policies=dynamic))
    return Attributes(RESOURCES[resource], subresource, "n", "x", operation, {"metadata": {}}, None, context)


class Recorder(Plugin):
    """Records its calls."""

    seen: ClassVar[list[str]] = []

    def admit(self, attributes: Attributes) -> None:
        self.seen.append(f"admit {self.name}")

    def validate(self, attributes: Attributes) -> None:
        self.seen.append(f"validate {self.name}")


class First(Recorder):
    name = "first"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({PODS})


class Second(Recorder):
    name = "second"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    subresources = frozenset({"", "status"})


class Refusing(Second):
    name = "refusing"

    def admit(self, attributes: Attributes) -> None:
        raise status.forbidden("", "pods", "x", "no")


@pytest.fixture(autouse=True)
def _clear_recorder() -> None:
    Recorder.seen.clear()


@pytest.mark.parametrize(
    ("write", "seen"),
    [
        (attributes(PODS), ["first", "second"]),
        (attributes(NODES), ["second"]),
        (attributes(PODS, Operation.UPDATE), ["second"]),
        (attributes(PODS, Operation.UPDATE, "status"), ["second"]),
        (attributes(PODS, Operation.UPDATE, "resize"), []),
        (attributes(PODS, Operation.DELETE), []),
    ],
)
def test_plugins_receive_only_matching_requests(write: Attributes, seen: list[str]) -> None:
    chain = Chain([First(), Second()])
    chain.admit(write)
    chain.validate(write)
    assert Recorder.seen == [f"admit {name}" for name in seen] + [f"validate {name}" for name in seen]


def test_dynamic_admission_is_skipped_without_configuration() -> None:
    class Dynamic(Second):
        name = "dynamic"
        acts_for = "webhooks_or_policies"
        dynamic = True

    chain = Chain([First(), Dynamic()])
    for configured in (False, True, False):
        chain.admit(attributes(PODS, dynamic=configured))
        chain.validate(attributes(PODS, dynamic=configured))
    quiet = ["admit first", "validate first"]
    assert Recorder.seen == [*quiet, "admit first", "admit dynamic", "validate first", "validate dynamic", *quiet]


def test_plugins_after_a_refusal_are_not_called() -> None:
    with pytest.raises(StatusError, match="no"):
        Chain([First(), Refusing(), Second()]).admit(attributes(PODS))
    assert Recorder.seen == ["admit first"]


class Limiting(Second):
    name = "limiting"
    acts_for = "limit_ranges"


def test_plugin_acts_while_the_cluster_has_configured_what_it_acts_for() -> None:
    chain = Chain([Limiting()])
    for configured, seen in ((False, []), (True, ["admit limiting"]), (False, []), (True, ["admit limiting"])):
        Recorder.seen.clear()
        write = attributes(PODS)
        write.context.configured = AdmissionSnapshot(limit_ranges=configured)
        chain.admit(write)
        assert Recorder.seen == seen


class Asking(Second):
    """Requests a reinvocation on each call."""

    name = "asking"

    def admit(self, attributes: Attributes) -> None:
        self.seen.append(f"again {attributes.reinvocation_context().is_reinvoke}")
        attributes.reinvocation_context().should_reinvoke = True


def test_plugin_can_request_reinvocation() -> None:
    Chain([First(), Asking()]).admit(attributes(PODS))
    assert Recorder.seen == ["admit first", "again False", "admit first", "again True"]


def test_plugins_of_profiles() -> None:
    bare, whole = ([plugin.name for plugin in plugins(profile)] for profile in ("apiserver", "cluster"))
    assert [name for name in whole if name not in bare] == ["ServiceAccount"]
    assert bare[0] == "NamespaceLifecycle"
    assert bare[-1] == "ResourceQuota"
    assert len(set(whole)) == len(whole)


@pytest.mark.parametrize("plugin", plugins("cluster"), ids=lambda plugin: plugin.name)
def test_plugins_declare_operations_and_resources(plugin: Plugin) -> None:
    assert plugin.operations
    assert plugin.resources is None or set(plugin.resources) <= KNOWN
    assert type(plugin).admit is not Plugin.admit or type(plugin).validate is not Plugin.validate


def test_a_chain_is_repeatable_if_all_of_its_plugins_are() -> None:
    assert Chain([Plugin()]).repeatable
    assert not Chain([Plugin(), EventRateLimit([])]).repeatable
