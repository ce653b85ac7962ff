"""Authentication flags: contents of their files, and errors of unusable files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from fakekube.apiserver.auth.options import AuthenticationOptions, OptionError
from fakekube.apiserver.endpoints.request import User
from fakekube.apiserver.options import ServerOptions


def test_server_options_from_flag_names(tmp_path: Path) -> None:
    options = ServerOptions.from_flags(
        {"client_ca_file": tmp_path, "authorization_mode": "Node,RBAC", "api_audiences": ["a", "b"]}
    )
    assert options.authentication.client_ca_file == str(tmp_path)
    assert options.authentication.api_audiences == ("a", "b")
    assert options.authorization.authorization_mode == ("Node", "RBAC")
    assert options.needs_tls
    with pytest.raises(TypeError, match="nonsense"):
        ServerOptions.from_flags({"nonsense": 1})


def test_token_auth_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text('one,alice,u1\ntwo,bob,,"a,b"\n\n,nobody,u\n')
    tokens = AuthenticationOptions(token_auth_file=str(path)).tokens()
    assert (tokens["one"], tokens["two"]) == (User("alice", "u1"), User("bob", "", ("a", "b")))
    assert "" not in tokens
    path.write_text("one,alice\n")
    with pytest.raises(OptionError, match="at least 3 columns"):
        AuthenticationOptions(token_auth_file=str(path)).tokens()


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(public_exponent=65537, key_size=2048),
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP521R1()),
    ],
    ids=["RSA", "P-384", "P-521"],
)
def test_service_account_key_files(tmp_path: Path, key: Any) -> None:
    private, public = tmp_path / "sa.key", tmp_path / "sa.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    public.write_bytes(
        b"".join(k.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for k in (other, key.public_key()))
    )
    signer = AuthenticationOptions(service_account_signing_key_file=str(private), service_account_key_file=[str(public)]).signer()
    assert signer.verify(signer.sign({"sub": "x"}))["sub"] == "x"
    first, second = signer.key_set()["keys"]
    assert (first["crv"], second["kid"]) == ("P-256", signer.key_id)


@pytest.mark.parametrize(
    ("flag", "made"),
    [
        ("token_auth_file", AuthenticationOptions.tokens),
        ("service_account_signing_key_file", AuthenticationOptions.signer),
        ("client_ca_file", AuthenticationOptions.certificates),
        ("requestheader_client_ca_file", AuthenticationOptions.request_headers),
    ],
)
def test_unusable_files_are_reported(tmp_path: Path, flag: str, made: Any) -> None:
    with pytest.raises(OptionError, match=f"--{flag.replace('_', '-')}: open .*: No such file"):
        made(AuthenticationOptions(**{flag: str(tmp_path / "none")}))
    path = tmp_path / "bad"
    path.write_text("nonsense\n")
    with pytest.raises(OptionError, match=str(path)):
        made(AuthenticationOptions(**{flag: str(path)}))
