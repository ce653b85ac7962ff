"""Make the certificates that the `certificates_…` scenarios show: certificates.py DIR

DIR/clients.crt is the authority of clients, DIR/front.crt that of front proxies, DIR/proxy.crt a front proxy's own
certificate. A server that is to be asked with them runs with these flags of kube-apiserver's (or what it has in their
place; it must listen with TLS):

    --client-ca-file=DIR/clients.crt
    --requestheader-client-ca-file=DIR/front.crt --requestheader-allowed-names=front-proxy
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group
    --requestheader-uid-headers=X-Remote-Uid --requestheader-extra-headers-prefix=X-Remote-Extra-
    --proxy-client-cert-file=DIR/proxy.crt --proxy-client-key-file=DIR/proxy.key
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

#: Each certificate: its authority, its subject, its use, and whether it has ended.
CERTIFICATES = {
    "plain": ("clients", "/CN=carol", "clientAuth", False),
    "grouped": ("clients", "/O=team-b/O=team-c/CN=carol", "clientAuth", False),
    "master": ("clients", "/O=system:masters/CN=root", "clientAuth", False),
    "uid": ("clients", "/O=team-b/CN=carol/userUid=c-1", "clientAuth", False),
    "nameless": ("clients", "/O=team-b", "clientAuth", False),
    "expired": ("clients", "/CN=carol", "clientAuth", True),
    "server": ("clients", "/CN=carol", "serverAuth", False),
    "stranger": ("strangers", "/CN=carol", "clientAuth", False),
    "proxy": ("front", "/CN=front-proxy", "clientAuth", False),
    "impostor": ("front", "/CN=another", "clientAuth", False),
}


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def make(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for authority in ("clients", "front", "strangers"):
        openssl(
            "req",
            "-x509",
            *key,
            "-days",
            "3650",
            "-subj",
            f"/CN={authority}",
            "-keyout",
            str(folder / f"{authority}.key"),
            "-out",
            str(folder / f"{authority}.crt"),
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
        )
    for name, (authority, subject, use, ended) in CERTIFICATES.items():
        path = folder / name
        (folder / "extensions").write_text(
            f"oid_section=oids\n[oids]\nuserUid=1.3.6.1.4.1.57683.2\n[req]\ndistinguished_name=dn\n[dn]\n[e]\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage={use}\nauthorityKeyIdentifier=keyid\n"
            f"[ca]\ndefault_ca=d\n[d]\nnew_certs_dir={folder}\ndatabase={folder}/database\nserial={folder}/serial\ndefault_md=sha256\npolicy=p\nunique_subject=no\n[p]\nO=optional\nCN=optional\n"
        )
        openssl(
            "req",
            "-new",
            *key,
            "-config",
            str(folder / "extensions"),
            "-subj",
            subject,
            "-keyout",
            f"{path}.key",
            "-out",
            f"{path}.csr",
        )
        if ended:  # only `ca` can set an end in the past
            (folder / "database").write_text("")
            (folder / "serial").write_text("01\n")
            openssl(
                "ca",
                "-batch",
                "-config",
                str(folder / "extensions"),
                "-extensions",
                "e",
                "-startdate",
                "20200101000000Z",
                "-enddate",
                "20210101000000Z",
                "-notext",
                "-cert",
                str(folder / f"{authority}.crt"),
                "-keyfile",
                str(folder / f"{authority}.key"),
                "-in",
                f"{path}.csr",
                "-out",
                f"{path}.crt",
            )
        else:
            openssl(
                "x509",
                "-req",
                "-in",
                f"{path}.csr",
                "-CA",
                str(folder / f"{authority}.crt"),
                "-CAkey",
                str(folder / f"{authority}.key"),
                "-CAcreateserial",
                "-days",
                "3650",
                "-extfile",
                str(folder / "extensions"),
                "-extensions",
                "e",
                "-out",
                f"{path}.crt",
            )


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))
