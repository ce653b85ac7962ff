"""The names of images in container statuses, which are those of containerd."""

from __future__ import annotations

import pytest

from fakekube import Cluster
from fakekube.nodes.images.names import image_fields, is_of_image

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("image", "resolved", "repository"),
    [
        ("busybox", "docker.io/library/busybox:latest", "docker.io/library/busybox"),
        ("busybox:1.36", "docker.io/library/busybox:1.36", "docker.io/library/busybox"),
        ("docker.io/busybox", "docker.io/library/busybox:latest", "docker.io/library/busybox"),
        ("index.docker.io/library/busybox", "docker.io/library/busybox:latest", "docker.io/library/busybox"),
        ("curlimages/curl:8", "docker.io/curlimages/curl:8", "docker.io/curlimages/curl"),
        ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10", "registry.k8s.io/pause"),
        ("ghcr.io/me/app", "ghcr.io/me/app:latest", "ghcr.io/me/app"),
        ("localhost/app:1", "localhost/app:1", "localhost/app"),
        ("registry:5000/app", "registry:5000/app:latest", "registry:5000/app"),
        ("Registry/app:1", "Registry/app:1", "Registry/app"),
    ],
)
def test_names_of_images_are_resolved(image: str, resolved: str, repository: str) -> None:
    fields = image_fields(image)
    assert fields["image"] == resolved
    assert fields["imageID"].startswith(f"{repository}@sha256:")
    assert fields == image_fields(resolved)
    assert is_of_image(fields, image)
    assert not is_of_image(fields, f"{repository}:other")


@pytest.mark.parametrize("image", [f"app@{DIGEST}", f"app:1@{DIGEST}", f"docker.io/library/app@{DIGEST}"])
def test_an_image_by_its_digest_is_named_by_its_id(image: str) -> None:
    fields = image_fields(image)
    assert fields["image"] == image_fields(f"other@{DIGEST}")["image"] != f"sha256:{DIGEST}"
    assert fields["image"].startswith("sha256:")
    assert fields["imageID"] == f"docker.io/library/app@{DIGEST}"


def test_a_container_that_has_not_run_has_the_name_in_its_spec() -> None:
    with Cluster(profile="cluster") as cluster:
        cluster.images.missing.append("absent*")
        for name, image in (("waiting", "absent"), ("running", "app")):
            cluster.create({"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": image}]}})
        cluster.settle()
        (waiting,) = cluster.get("pods", "waiting")["status"]["containerStatuses"]
        (running,) = cluster.get("pods", "running")["status"]["containerStatuses"]
    assert (waiting["image"], waiting["imageID"]) == ("absent", "")
    assert running["image"] == "docker.io/library/app:latest"
