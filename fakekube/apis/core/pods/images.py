"""References to images, parsed as far as the default of imagePullPolicy needs it.

Specified by: pkg/util/parsers; the grammar of github.com/distribution/reference.
"""

from __future__ import annotations

import re
from functools import lru_cache

_COMPONENT = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_STEP = "[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_DIGEST = "([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*):([0-9a-fA-F]{32,})"
_matches = re.compile(
    rf"(?:{_DOMAIN}/)?({_STEP}(?:/{_STEP})*)(?::([A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?(?:@{_DIGEST})?"
).fullmatch
_identifier_matches = re.compile("[a-f0-9]{64}").fullmatch

#: The length of each digest algorithm's output, in hexadecimal digits.
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}

_PATH_LENGTH = 255


@lru_cache(maxsize=1024)
def is_latest(image: str) -> bool:
    """Reports whether the tag is `latest`, or both tag and digest are absent; False for an invalid reference."""
    if _identifier_matches(image):
        return False
    domain, remote = _split(image)
    repository = remote.partition(":")[0]
    found = _matches(f"{domain}/{remote}") if repository == repository.lower() else None
    if found is None or len(found[1]) > _PATH_LENGTH:
        return False
    tag, algorithm, digest = found[2], found[3], found[4]
    if algorithm is None:
        return tag in (None, "latest")
    readable = _DIGEST_LENGTHS.get(algorithm) == len(digest) and digest == digest.lower()
    return bool(readable and tag == "latest")


def _split(image: str) -> tuple[str, str]:
    """Returns the domain and the rest; without a domain, that of Docker Hub."""
    domain, slash, remote = image.partition("/")
    if not slash:
        return "docker.io", f"library/{image}"
    if domain == "index.docker.io":
        domain = "docker.io"
    elif domain != "localhost" and not set(domain) & {".", ":"} and domain == domain.lower():
        return "docker.io", image
    if domain == "docker.io" and "/" not in remote:
        remote = f"library/{remote}"
    return domain, remote


def default_pull_policy(image: str) -> str:
    return "Always" if is_latest(image) else "IfNotPresent"
