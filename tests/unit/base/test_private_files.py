"""Files with secrets are the owner's alone, from the moment they exist."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakekube.base.private_files import open_private, write_private


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_written_file_is_the_owners(tmp_path: Path) -> None:
    write_private(tmp_path / "new", "text")
    assert mode_of(tmp_path / "new") == 0o600
    assert (tmp_path / "new").read_text() == "text"
    assert os.listdir(tmp_path) == ["new"]


def test_file_of_another_mode_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_text("before")
    path.chmod(0o644)
    reader = path.open()
    write_private(path, b"after")
    assert mode_of(path) == 0o600
    assert reader.read() == "before"  # whoever had it open sees nothing of the new content
    reader.close()


def test_symbolic_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("target")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_private(tmp_path / "link", "secret")
    assert (tmp_path / "target").read_text() == "target"
    assert not (tmp_path / "link").is_symlink()


def test_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_private(tmp_path / "folder", "text")
    assert os.listdir(tmp_path) == ["folder"]


def test_device_is_written_as_it_is() -> None:
    write_private("/dev/null", "text")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("append", [True, False])
def test_opened_file_is_the_owners(tmp_path: Path, append: bool) -> None:
    path = tmp_path / "log"
    path.write_text("before ")
    path.chmod(0o666)
    with open_private(path, append=append) as file:
        assert mode_of(path) == 0o600
        file.write(b"after")
    assert path.read_text() == ("before after" if append else "after")
    with open_private(tmp_path / "new", append=append):
        assert mode_of(tmp_path / "new") == 0o600
