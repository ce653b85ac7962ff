"""The state in etcd's data folder between two API servers."""

from __future__ import annotations

from pathlib import Path

import pytest

import fakekube
from fakekube.cli.envtest.storage import data_folder, restore, save
from fakekube.powers.state import StateError


@pytest.mark.parametrize("servers", ["", "http://127.0.0.1:1", "https://127.0.0.1:1", "http://127.0.0.1:x", "unix:///tmp/x"])
def test_no_data_folder_without_the_etcd_replacement(servers: str) -> None:
    assert data_folder(servers) is None


def test_saved_state_is_restored_once(tmp_path: Path) -> None:
    first = fakekube.Cluster(profile="apiserver")
    first.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})
    save(first, tmp_path)
    second, third = fakekube.Cluster(profile="apiserver"), fakekube.Cluster(profile="apiserver")
    restore(second, tmp_path)
    assert second.get("configmaps", "kept") == first.get("configmaps", "kept")
    restore(third, tmp_path)
    assert not third.list("configmaps", namespace="default")
    assert not list(tmp_path.iterdir())


def test_save_into_a_missing_folder_is_no_error(tmp_path: Path) -> None:
    save(fakekube.Cluster(profile="apiserver"), tmp_path / "gone")


def test_damaged_state_raises_state_error(tmp_path: Path) -> None:
    (tmp_path / "fakekube-state.gz").write_bytes(b"\x1f\x8bjunk")
    with pytest.raises(StateError, match="damaged"):
        restore(fakekube.Cluster(profile="apiserver"), tmp_path)
