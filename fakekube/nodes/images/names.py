"""The names of images: their parts, those under which an image is looked up, and the ids of images.

A name is REPOSITORY[:TAG][@DIGEST], as in docker.io/library/busybox:1.36; a colon before the last slash belongs to the port of
a registry. All rooms that read a name of an image use these functions.

Specified by: github.com/distribution/reference/reference.go.
"""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase


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


def image_id(image: str) -> str:
    """Returns the id of an image in container statuses: its digest, or one that depends on its name."""
    repository, _, digest = split_name(image)
    return f"{repository}@{digest or 'sha256:' + hashlib.sha256(image.encode()).hexdigest()}"
