"""The formats of strings, each with valid and invalid values."""

from __future__ import annotations

import pytest

from fakekube.apiextensions.instances.formats import FORMATS

TABLE = {
    "date": (["2024-02-29", "0000-01-01"], ["٢٠٢٤-01-01", "2023-02-29", "24-1-1", "20240229", ""]),
    "datetime": (
        ["2024-01-01T00:00:00Z", "2024-01-01t00:00:00,123+99:99", "2024-01-01T00:00:00zTx"],
        ["2024-01-01", "x", "2024-01-01T24:00:00Z"],
    ),
    "byte": (["aGk="], ["a", "!!", ""]),
    "ipv4": (["1.2.3.4", "255.255.255.255", "010.0.0.001", "::ffff:1.2.3.04"], ["1.2.3", "::1", "256.1.1.1"]),
    "ipv6": (["::1", "2001:db8::1", "::ffff:1.2.3.4"], ["1.2.3.4", "g::", "fe80::1%eth0", "::ffff:1.2.3.04"]),
    "cidr": (["10.0.0.0/8", "010.1.2.3/08", "fd00::/8"], ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "fe80::1%a/64"]),
    "mac": (
        ["00:11:22:33:44:55", "00:11:22:33:44:55:66:77", "00-11-22-33-44-55", "0011.2233.4455", "0011223344556677"],
        ["00:11", "00:11-22:33:44:55"],
    ),
    "uuid": (["0f8fad5b-d9cb-469f-a165-70867728950e", "0F8FAD5BD9CB469FA16570867728950E"], ["x", ""]),
    "uuid3": (["0f8fad5b-d9cb-369f-a165-70867728950e"], ["0f8fad5b-d9cb-469f-a165-70867728950e"]),
    "uuid4": (["0f8fad5b-d9cb-469f-a165-70867728950e"], ["0f8fad5b-d9cb-469f-c165-70867728950e"]),
    "uuid5": (["0f8fad5b-d9cb-569f-a165-70867728950e"], ["0f8fad5b-d9cb-469f-a165-70867728950e"]),
    "duration": (["1h", "-1s", "1.5h", "1d", "1 day", "P1D", "9999999h"], ["soon", "", "99999999999999999999h"]),
    "email": (
        ["a@b.c", "A. <a@b.c> (x)", '"a b"@c', "a@[::1]", "x: a@b;"],
        ["a", "@b", "a@b@c", "a b@c", ".a@b", "a..b@c", "a@[1.2]", '""@b'],
    ),
    "hostname": (
        ["a", "a.example.com", "a-b", "a.bc", "ä.öü", "a" * 63],
        ["a.b", "a_b", "-a", "ab-c", "", "a" * 64, "a-" + "b" * 62, "a\n"],
    ),
    "uri": (["http://x", "/a/b"], ["x", ""]),
    "hexcolor": (["#fff", "fff", "#ABCDEF"], ["#ggg", "#ff"]),
    "rgbcolor": (["rgb(1,2,3)", "rgb( 1 , 2 , 255 )"], ["rgb(1,2)", "rgb(1,2,256)"]),
    "isbn": (["9780306406157", "0306406152"], ["123"]),
    "isbn10": (["0306406152", "0-306-40615-2"], ["0306406153", "9780306406157"]),
    "isbn13": (["978-0306406157"], ["9780306406158", "0306406152"]),
    "creditcard": (["4111111111111111", "4111-1111-1111-1111"], ["2223003122003222", "4111", "4111111111111112"]),
    "ssn": (["111-22-3333", "111 22-3333"], ["1", "111-22-333", "111223333"]),
    "bsonobjectid": (["507f1f77bcf86cd799439011"], ["x", "507f1f77bcf86cd79943901"]),
    "k8sshortname": (["abc"], ["A", "a.b", ""]),
    "k8slongname": (["a.b"], ["a_b", ""]),
}


def test_every_format_has_a_test_case() -> None:
    assert TABLE.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", sorted(TABLE))
def test_format_accepts_valid_and_rejects_invalid_strings(name: str) -> None:
    right, wrong = TABLE[name]
    assert [text for text in right if not FORMATS[name](text)] == []
    assert [text for text in wrong if FORMATS[name](text)] == []
