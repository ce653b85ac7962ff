"""The names of images: their parts, those under which an image is looked up, and those that containerd gives it in statuses.

Specified by: containerd's internal/cri/server/container_status.go; github.com/distribution/reference/normalize.go
(splitDockerDomain).
"""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase

from fakekube.base.objects import StoredObject


def split_name(image: str) -> tuple[str, str, str]:
    """Splits the name of an image into repository, tag and digest; tag and digest are "" if it has none."""
    name, _, digest = image.partition("@")
    colon = name.rfind(":")
    return (name[:colon], name[colon + 1 :], digest) if colon > name.rfind("/") else (name, "", digest)


def names_of(image: str) -> tuple[str, ...]:
    """Returns the names under which an image is looked up: as it is, its repository, and their last parts."""
    repository = split_name(image)[0]
    return image, repository, image.rpartition("/")[2], repository.rpartition("/")[2]


def base_name(image: str) -> str:
    """Returns the last part of an image's name, without tag and digest."""
    return split_name(image)[0].rpartition("/")[2]


def is_matched(image: str, pattern: str) -> bool:
    """Reports whether a pattern with `*` and `?` matches one of the names of an image."""
    return any(fnmatchcase(name, pattern) for name in names_of(image))


# --- In statuses of containers ----------------------------------------------------------------------------------------


def image_fields(image: str) -> dict[str, str]:
    """Returns the fields of a container status about the image of a container that has run, as containerd names it.

    Args:
        image: the name in the spec; busybox stands for docker.io/library/busybox:latest.
    """
    repository, tag, digest = split_name(image)
    repository = _with_domain(repository)
    if digest:  # an image that was not pulled by a tag has none: its name is its id
        return {"image": f"sha256:{_hash(digest)}", "imageID": f"{repository}@{digest}"}
    resolved = f"{repository}:{tag or 'latest'}"
    return {"image": resolved, "imageID": f"{repository}@sha256:{_hash(resolved)}"}


def is_of_image(status: StoredObject, image: str) -> bool:
    """Reports whether a container status names an image: as the spec before the container has run, then as containerd."""
    return status.get("image") in (image, image_fields(image)["image"])


def _with_domain(repository: str) -> str:
    """Returns the name of a repository with its domain (splitDockerDomain)."""
    domain, slash, rest = repository.partition("/")
    if not slash or not (domain == "localhost" or "." in domain or ":" in domain or domain != domain.lower()):
        domain, rest = "docker.io", repository
    if domain == "index.docker.io":
        domain = "docker.io"
    return f"{domain}/library/{rest}" if domain == "docker.io" and "/" not in rest else f"{domain}/{rest}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
