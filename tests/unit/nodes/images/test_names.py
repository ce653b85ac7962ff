"""The parts of images' names, and the ids of images."""

from __future__ import annotations

import pytest

from fakekube.nodes.images.names import image_id, split_name

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("busybox", ("busybox", "", "")),
        ("busybox:1.36", ("busybox", "1.36", "")),
        ("registry:5000/app", ("registry:5000/app", "", "")),
        ("registry:5000/app:1", ("registry:5000/app", "1", "")),
        (f"app@{DIGEST}", ("app", "", DIGEST)),
        (f"app:1@{DIGEST}", ("app", "1", DIGEST)),
    ],
)
def test_names_are_split(image: str, parts: tuple[str, str, str]) -> None:
    assert split_name(image) == parts


def test_the_id_of_an_image_by_digest_has_the_digest() -> None:
    assert image_id(f"app:1@{DIGEST}") == image_id(f"app@{DIGEST}") == f"app@{DIGEST}"


def test_the_id_of_an_image_by_tag_depends_on_its_name() -> None:
    assert image_id("app:1").startswith("app@sha256:")
    assert image_id("app:1") != image_id("app:2")
