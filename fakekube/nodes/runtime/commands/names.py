"""Commands that look names up: `nslookup`, `dig`, `host`, `getent`.

Specified by: busybox networking/nslookup.c; BIND's dig(1) and host(1); getent(1).
"""

from __future__ import annotations

from typing import Final

from fakekube.apis.validation.ip import parse_ip
from fakekube.nodes.runtime.dns import Record, resolver_of, reverse_name
from fakekube.nodes.runtime.program import Command, Program, Usage

_TYPES: Final = frozenset({"A", "AAAA", "CNAME", "SRV", "PTR", "ANY", "TXT", "MX", "NS", "SOA"})


def _server(program: Program) -> str:
    return next(iter(resolver_of(program.host.pod).servers), "10.96.0.10")


async def _nslookup(program: Program) -> int:
    names = [arg for arg in program.args if not arg.startswith("-")]
    kind = next((arg.partition("=")[2].upper() for arg in program.args if arg.startswith(("-type=", "-q=", "-querytype="))), "A")
    if not names:
        raise Usage("usage: nslookup HOST")
    name, network = names[0], program.host.network
    server = names[1] if len(names) > 1 else _server(program)
    await program.write(f"Server:\t\t{server}\nAddress:\t{server}:53\n\n")
    if parse_ip(name) is not None:
        name, kind = reverse_name(name), "PTR"
    found = network.lookup(name, kind)
    if not found:
        await program.write(f"** server can't find {name}: NXDOMAIN\n\n")
        return 1
    for one in found:
        if one.type in ("A", "AAAA"):
            await program.write(f"Name:\t{one.name}\nAddress: {one.data}\n")
        else:
            words = {"CNAME": "canonical name", "PTR": "name", "SRV": "service"}
            await program.write(f"{one.name}\t{words[one.type]} = {one.data.rstrip('.')}\n")
    await program.write("\n")
    return 0


async def _dig(program: Program) -> int:
    flags = {arg[1:].partition("=")[0] for arg in program.args if arg.startswith("+")}
    words = [arg for arg in program.args if arg[:1] not in ("+", "@", "-")]
    kind = next((one.upper() for one in words if one.upper() in _TYPES), "A")
    names = [one for one in words if one.upper() not in _TYPES and one.upper() != "IN"]
    if "-x" in program.args and names:
        names, kind = [reverse_name(names[0])], "PTR"
    if not names:
        return 0
    found = program.host.network.lookup(names[0], kind, search="search" in flags)
    if "short" in flags:
        await program.write("".join(f"{one.data}\n" for one in found))
        return 0
    if "all" not in flags and "noall" not in flags:
        await program.write(_header(names[0], kind, found))
    elif "answer" not in flags:
        return 0
    await program.write("".join(f"{one}\n" for one in found))
    if "noall" not in flags:
        await program.write(f"\n;; Query time: 0 msec\n;; SERVER: {_server(program)}#53({_server(program)})\n\n")
    return 0


def _header(name: str, kind: str, found: list[Record]) -> str:
    status = "NOERROR" if found else "NXDOMAIN"
    return (
        f"\n; <<>> DiG 9.18 <<>> {name} {kind}\n;; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: {status}, id: 1\n"
        f";; flags: qr aa rd; QUERY: 1, ANSWER: {len(found)}, AUTHORITY: 0, ADDITIONAL: 0\n\n"
        f";; QUESTION SECTION:\n;{name}.\t\tIN\t{kind}\n\n" + (";; ANSWER SECTION:\n" if found else "")
    )


async def _host(program: Program) -> int:
    names = [arg for arg in program.args if not arg.startswith("-")]
    if not names:
        raise Usage("usage: host NAME")
    reverse = parse_ip(names[0]) is not None
    found = program.host.network.lookup(reverse_name(names[0]) if reverse else names[0], "PTR" if reverse else "A")
    for one in found:
        words = {"PTR": "domain name pointer", "CNAME": "is an alias for"}.get(one.type, "has address")
        await program.write(f"{one.name} {words} {one.data}\n")
    if not found:
        await program.write(f"Host {names[0]} not found: 3(NXDOMAIN)\n")
    return int(not found)


async def _getent(program: Program) -> int:
    if len(program.args) < 2:
        raise Usage("usage: getent DATABASE KEY")
    database, name = program.args[:2]
    if database in ("passwd", "group"):
        lines = program.read_file(f"/etc/{database}").decode().splitlines()
        found = [line for line in lines if name in (line.split(":")[0], line.split(":")[2])]
        await program.write("".join(f"{line}\n" for line in found))
        return 0 if found else 2
    addresses = program.host.network.resolve(name)
    hosts = program.read_file("/etc/hosts").decode().splitlines()
    names = next((line.split()[1:] for line in hosts if name in line.split()[1:]), [name])
    await program.write("".join(f"{address:<15} {'  '.join(names)}\n" for address in addresses))
    return 0 if addresses else 2


COMMANDS: Final[dict[str, Command]] = {"dig": _dig, "getent": _getent, "host": _host, "nslookup": _nslookup}
