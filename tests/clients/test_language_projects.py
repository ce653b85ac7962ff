"""The projects in docs/languages run as they stand, each with clusters of a pool: `pytest … --languages go,javascript`.

The packages come from the registries of the languages, so this is not a part of the suite; .ci/run runs it. A project is skipped,
with the reason, where its toolchain or its packages are not to be had.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.request
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from fakekube import Cluster

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "languages"

NPM_INSTALL = ("npm", "install", "--no-audit", "--no-fund", "--silent")
#: Language → the program that it needs, the command that brings its packages, and the one that runs its tests.
PROJECTS = {
    "go": ("go", ("go", "build", "net/http"), ("go", "test", "./...")),
    "javascript": ("node", (), ("node", "--test")),
    "vitest": ("npm", NPM_INSTALL, ("npx", "vitest", "run")),
    # Maven brings the packages that run tests only when it runs tests; with a name that no test has, it runs none of them.
    "java": (
        "mvn",
        ("mvn", "-q", "-B", "test", "-Dtest=Nothing", "-Dsurefire.failIfNoSpecifiedTests=false"),
        ("mvn", "-q", "-B", "test"),
    ),
    "rust": ("cargo", ("cargo", "fetch", "-q"), ("cargo", "test", "-q")),
    "dotnet": ("dotnet", ("dotnet", "restore"), ("dotnet", "test")),
}
#: A compiler may take minutes on a machine under load.
SECONDS = 900
OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen"


def project(language: str, program: str, folder: Path, chosen: str) -> Path:
    """Returns a copy of the project of a language. Skips the test if it is not wanted, or its program is not there."""
    if language not in chosen.split(","):
        pytest.skip(f"--languages={language} is not given")
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    return Path(shutil.copytree(FOLDER / language, folder / language))


def execute(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def fetch(*command: str, folder: Path) -> None:
    """Brings packages from a registry, in two attempts. Skips the test where they are not to be had."""
    for _ in range(2):
        try:
            found = execute(*command, folder=folder)
        except subprocess.TimeoutExpired:
            pytest.skip(f"{' '.join(command)} does not end")
        if found.returncode == 0:
            return
    pytest.skip(f"{' '.join(command)} fails: {(found.stdout + found.stderr).strip()[-500:]}")


def run_with_pool(*command: str, folder: Path) -> str:
    """Runs a command with the address of a pool, and returns its output."""
    found = execute(sys.executable, "-m", "fakekube", "run", "--clusters", "--", *command, folder=folder)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.mark.parametrize("language", PROJECTS)
def test_project_of_a_language_passes(language: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    program, packages, test = PROJECTS[language]
    folder = project(language, program, tmp_path, pytestconfig.getoption("--languages"))
    if packages:
        fetch(*packages, folder=folder)
    run_with_pool(*test, folder=folder)


def write_openapi(path: Path) -> None:
    with Cluster(profile="apiserver") as cluster, urllib.request.urlopen(f"{cluster.url}/fakekube/v1/openapi.json") as document:
        path.write_bytes(document.read())


def test_go_client_that_is_generated_from_the_document_works(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    folder = project("go-generated", "go", tmp_path, pytestconfig.getoption("--languages"))
    fetch("go", "get", f"{OAPI_CODEGEN}@v2.8.2", "github.com/oapi-codegen/runtime@v1.6.0", folder=folder)
    write_openapi(folder / "openapi.json")
    (folder / "control").mkdir()
    options = ["-generate", "types,client", "-package", "control", "-o", "control/control.go"]
    for command in (("run", OAPI_CODEGEN, *options, "openapi.json"), ("build", "-o", "client", ".")):
        made = execute("go", *command, folder=folder)
        assert made.returncode == 0, made.stdout + made.stderr
    status, hits, statuses, held, moved, _ = run_with_pool(str(folder / "client"), folder=folder).split(maxsplit=5)
    assert (status, hits, statuses) == ("503", "1", "503")
    assert datetime.fromisoformat(moved) - datetime.fromisoformat(held) == timedelta(minutes=1)


def test_client_that_is_generated_from_the_document_works(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    folder = project("typescript", "npm", tmp_path, pytestconfig.getoption("--languages"))
    fetch(*NPM_INSTALL, folder=folder)
    write_openapi(folder / "openapi.json")
    options = ["--strict", "--module", "nodenext", "--moduleResolution", "nodenext", "--target", "es2022", "--skipLibCheck"]
    for command in (("openapi-typescript", "openapi.json", "-o", "schema.d.ts"), ("tsc", *options, "client.ts")):
        made = execute("npx", *command, folder=folder)
        assert made.returncode == 0, made.stdout + made.stderr
    output = run_with_pool("node", "client.js", folder=folder)
    assert output.split()[:4] == ["503", "1", "503", "60"]


def test_command_gets_the_address_of_its_pool(tmp_path: Path) -> None:
    script = (
        "import os, urllib.request; print(urllib.request.urlopen(os.environ['FAKEKUBE_POOL'] + '/fakekube/v1/clusters').status)"
    )
    assert run_with_pool(sys.executable, "-c", script, folder=tmp_path).strip() == "200"
