"""Addresses of pods and nodes."""

from __future__ import annotations

import pytest

from fakekube.nodes.addresses import Addresses, AddressesExhausted


def test_pods_and_nodes_get_addresses_of_their_own() -> None:
    addresses = Addresses()
    assert addresses.node("a") == "172.18.0.2"
    assert addresses.pod("p", ()) == ["10.244.0.2"]
    assert addresses.pod("q", ("10.9.0.0/24",)) == ["10.9.0.2"]
    assert addresses.of("q") == ["10.9.0.2"]


def test_a_node_with_two_families_gives_two() -> None:
    assert Addresses().pod("p", ("10.9.0.0/24", "fd00::/64")) == ["10.9.0.2", "fd00::2"]


def test_what_is_held_is_given_to_nobody_else_and_released_addresses_come_last() -> None:
    addresses = Addresses()
    addresses.hold("somebody", "10.244.0.2")
    assert addresses.pod("p", ()) == ["10.244.0.3"]
    addresses.release("p")
    assert addresses.pod("q", ()) == ["10.244.0.4"]
    assert sorted(addresses) == ["10.244.0.2", "10.244.0.4"]


def test_a_node_that_is_full_takes_from_the_cluster() -> None:
    addresses = Addresses()
    found = [addresses.pod(str(number), ("10.9.0.0/29",))[0] for number in range(6)]
    assert found[:5] == [f"10.9.0.{number}" for number in range(2, 7)]
    assert found[5].startswith("10.244.")


def test_there_is_an_end() -> None:
    addresses = Addresses()
    with pytest.raises(AddressesExhausted):
        for number in range(10):
            addresses.pod(str(number), ("fd00::/126",))
