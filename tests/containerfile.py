"""Builds an image from a Containerfile without a container engine, in a folder, and runs it: `containerfile.py FILE CONTEXT`.

The instructions are performed one after the other; absolute paths are those below a folder of their stage. Then the command of the
image runs as its user until its health check succeeds, must not have changed any file but those in /run/fakekube, and must end with
SIGTERM. The interpreter of FROM is the one that runs this program.

What it does not show: the base image, and the isolation of a container.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

_PATIENCE = 60.0
_PORT = "6443"


@dataclass(slots=True)
class Stage:
    """A stage of the build: a root folder and the configuration of its image."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def path(self, text: str) -> str:
        """Returns the place of an absolute path of the image on this machine; other texts as they are."""
        place = self.root / text.lstrip("/")
        return str(place) if text.startswith("/") and (place.exists() or place.parent.exists()) else text

    def variables(self) -> dict[str, str]:
        """Returns the environment, with the folders of PATH in the image before those of this machine."""
        own = [self.path(part) for part in self.environment.get("PATH", "").split(":")]
        return {**self.environment, "HOME": "/nonexistent", "PATH": ":".join([*own, os.environ["PATH"]])}


def instructions(text: str) -> list[tuple[str, str]]:
    """Returns the instructions of a Containerfile with their arguments."""
    lines = re.sub(r"\\\n", " ", text).splitlines()
    pairs = [line.partition(" ") for line in lines if line.strip() and not line.startswith("#")]
    return [(name.upper(), arguments.strip()) for name, _, arguments in pairs]


def build(file: Path, context: Path, folder: Path) -> Stage:
    """Performs the instructions; returns the last stage."""
    stages: dict[str, Stage] = {}
    stage = Stage(folder)
    for name, arguments in instructions(file.read_text(encoding="utf-8")):
        print(f"{name} {arguments}", flush=True)
        match name:
            case "FROM":
                label = arguments.partition(" AS ")[2] or "final"
                stage = stages[label] = Stage(folder / label)
                for part in ("tmp", "opt", "run"):
                    (stage.root / part).mkdir(parents=True)
            case "COPY":
                _copy(stage, stages, context, arguments)
            case "RUN":
                words = [word for part in shlex.split(arguments) for word in _expand(stage, part)]
                subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            case "ENV":
                variable, _, value = arguments.partition("=")
                stage.environment[variable] = value
            case "USER":
                stage.user = arguments
            case "ENTRYPOINT":
                stage.entrypoint = json.loads(arguments)
            case "CMD":
                stage.command = json.loads(arguments)
            case "HEALTHCHECK":
                stage.health = json.loads(arguments.partition(" CMD ")[2])
            case "EXPOSE":
                assert arguments == _PORT
            case _:
                raise SystemExit(f"unknown instruction {name}")
    return stage


def _copy(stage: Stage, stages: dict[str, Stage], context: Path, arguments: str) -> None:
    *options, source, target = arguments.split()
    place = stage.root / target.lstrip("/")
    if options:
        (label,) = [option.removeprefix("--from=") for option in options]
        shutil.copytree(stages[label].root / source.lstrip("/"), place, symlinks=True)
        _relocate(place, stages[label].root / source.lstrip("/"))
        return
    for found in context.glob(source):
        shutil.copy(found, place)


def _relocate(place: Path, before: Path) -> None:
    """Replaces the path of a virtual environment in its scripts: in a container it is the same in both stages."""
    for script in (place / "bin").iterdir():
        if not script.is_symlink() and (data := script.read_bytes()).startswith(b"#!"):
            script.write_bytes(data.replace(str(before).encode(), str(place).encode()))


def _expand(stage: Stage, word: str) -> list[str]:
    """Returns the words of a command for one word of it: paths, patterns of files, and the interpreter."""
    if word == "python":
        return [sys.executable]
    if "*" in word:
        return [str(found) for found in sorted(stage.root.glob(word.lstrip("/")))]
    return [stage.path(word)]


def run(stage: Stage) -> None:
    """Runs the image with a read-only root until it is healthy, and stops it."""
    user, group = (int(part) for part in stage.user.split(":"))
    assert user, "the image runs as root"
    writable = stage.root / "run" / "fakekube"
    writable.mkdir(mode=0o700)
    changes_user = os.geteuid() == 0 and _is_readable_by_others(Path(sys.executable).resolve())
    identity = {"user": user, "group": group, "extra_groups": []} if changes_user else {}
    if changes_user:
        os.chown(writable, user, group)
    before = _files(stage.root, writable)
    words = [stage.path(word) for word in (*stage.entrypoint, *stage.command)]
    words[0] = shutil.which(words[0], path=stage.variables()["PATH"]) or words[0]
    server = subprocess.Popen(words, env=stage.variables(), stderr=subprocess.STDOUT, cwd="/", **identity)  # type: ignore[call-overload]
    try:
        end, kubeconfig = time.monotonic() + _PATIENCE, writable / "kubeconfig"

        def is_healthy() -> bool:
            health = subprocess.run(stage.health, env=stage.variables(), stderr=subprocess.DEVNULL, check=False, **identity)  # type: ignore[call-overload]
            return health.returncode == 0

        while not (is_healthy() and kubeconfig.exists()):  # which is written when the server has started
            assert server.poll() is None, "the image has ended"
            assert time.monotonic() < end, "the image is not healthy"
            time.sleep(0.2)
        assert kubeconfig.stat().st_mode & 0o077 == 0
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(_PATIENCE) == 0
    assert _files(stage.root, writable) == before, "the image writes to its root"
    who = f"user {user}" if changes_user else "the user of this program, because others cannot read the interpreter"
    print(f"the image is healthy as {who}, and writes to /run/fakekube only")


def _files(root: Path, writable: Path) -> dict[Path, int]:
    """Returns the times of the last changes of all files but those in the writable folder."""
    return {path: path.lstat().st_mtime_ns for path in root.rglob("*") if path != writable and writable not in path.parents}


def _is_readable_by_others(file: Path) -> bool:
    return all(path.stat().st_mode & 0o005 == 0o005 for path in (file, *file.parents))


def main(file: str, context: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        run(build(Path(file), Path(context), folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
