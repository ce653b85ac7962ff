"""The ranges from which Services get addresses and node ports: the values of two flags.

Invariant: there are one or two networks, of different families; the first is that of the Service `kubernetes`.

Specified by: cmd/kube-apiserver/app/options (completion.go: getServiceIPAndRanges, validation.go: validateClusterIPFlags),
pkg/controlplane/services.go (ServiceIPRange) and k8s.io/apimachinery/pkg/util/net/port_range.go.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from fakekube.base.golang.strconv import parse_int

__all__ = ["ServiceRanges", "parse_networks", "parse_ports"]

_SMALLEST = 8
"""The minimum number of addresses of a range."""


@dataclass(slots=True, frozen=True)
class ServiceRanges:
    """The ranges of one cluster."""

    networks: tuple[str, ...] = ("10.0.0.0/16",)
    node_ports: range = range(30000, 32768)

    @property
    def families(self) -> tuple[str, ...]:
        """The IP families of the cluster; the first is the default."""
        return tuple("IPv6" if ":" in network else "IPv4" for network in self.networks)

    @property
    def first_address(self) -> str:
        """The address of the Service `kubernetes`."""
        return str(ipaddress.ip_network(self.networks[0])[1])

    @property
    def static_ports(self) -> int:
        """The number of the lowest ports that are allocated last: a 32nd of the range, at least 16, at most 128."""
        size = len(self.node_ports)
        return 0 if size <= 16 else min(max(size // 32, 16), 128)


def parse_networks(text: str) -> tuple[str, ...]:
    """Reads --service-cluster-ip-range. Raises ValueError with the words of the real server."""
    parts = text.split(",")
    if len(parts) > 2:
        raise ValueError("--service-cluster-ip-range must not contain more than two entries")
    found = []
    for place, part in enumerate(parts):
        try:
            found.append(ipaddress.ip_network(part, strict=False))
        except ValueError:
            what = ("a valid cidr", "an ip net")[place]
            raise ValueError(f"service-cluster-ip-range[{place}] is not {what}") from None
    if found[0].num_addresses < _SMALLEST:
        reason = f"the service cluster IP range must be at least {_SMALLEST} IP addresses"
        raise ValueError(f"error determining service IP ranges for primary service cidr: {reason}")
    if len({network.version for network in found}) < len(found):
        raise ValueError("--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family")
    return tuple(map(str, found))


def parse_ports(text: str) -> range:
    """Reads --service-node-port-range: `30000-32767`, `30000+2767` or one port. Raises ValueError."""
    value = text.strip()
    if "-" in value and "+" in value:
        raise ValueError(f"unable to parse port range: {value}")
    first, sign, second = value.partition("+" if "+" in value else "-")
    low = high = parse_int(first, "Atoi")
    if sign:
        high = parse_int(second, "Atoi") + (low if sign == "+" else 0)
    if max(low, high) > 65535:
        raise ValueError(f"the port range cannot be greater than 65535: {value}")
    if high < low:
        raise ValueError(f"end port cannot be less than start port: {value}")
    return range(low, high + 1)
