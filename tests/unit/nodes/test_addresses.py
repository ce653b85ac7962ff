"""Addresses of pods and nodes."""

from __future__ import annotations

import pytest

from fakekube.nodes.addresses import Addresses, AddressesExhausted


def test_pods_and_nodes_get_distinct_addresses() -> None:
    addresses = Addresses()
    assert addresses.node("a") == "172.18.0.2"
    assert addresses.pod("p", ()) == ["10.244.0.2"]
    assert addresses.pod("q", ("10.9.0.0/24",)) == ["10.9.0.2"]
    assert addresses.list_for("q") == ["10.9.0.2"]


def test_a_dual_stack_node_allocates_two_addresses() -> None:
    assert Addresses().pod("p", ("10.9.0.0/24", "fd00::/64")) == ["10.9.0.2", "fd00::2"]


def test_held_addresses_are_unique_and_released_ones_are_reused_last() -> None:
    addresses = Addresses()
    addresses.hold("somebody", "10.244.0.2")
    assert addresses.pod("p", ()) == ["10.244.0.3"]
    addresses.release("p")
    assert addresses.pod("q", ()) == ["10.244.0.4"]
    assert sorted(addresses) == ["10.244.0.2", "10.244.0.4"]


def test_a_full_node_allocates_from_the_cluster_range() -> None:
    addresses = Addresses()
    found = [addresses.pod(str(number), ("10.9.0.0/29",))[0] for number in range(6)]
    assert found[:5] == [f"10.9.0.{number}" for number in range(2, 7)]
    assert found[5].startswith("10.244.")


def test_an_exhausted_range_is_an_error() -> None:
    addresses = Addresses()
    with pytest.raises(AddressesExhausted):
        for number in range(10):
            addresses.pod(str(number), ("fd00::/126",))
