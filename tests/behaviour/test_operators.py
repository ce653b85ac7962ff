"""Definitions of real operators, and their samples, from a folder that is given; without one there is nothing to do.

    pytest tests/behaviour/test_operators.py --operators=FOLDER      (or FAKEKUBE_OPERATORS=FOLDER)

FOLDER has a folder for each operator, in which any `*.json`, `*.yaml` or `*.yml`, however deep, may hold definitions
(CustomResourceDefinition, apiextensions.k8s.io/v1) and samples of their kinds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY = "application/apply-patch+yaml"
SAMPLES_OF_A_KIND = 10
"""So many are enough to meet most of a schema."""

Key = tuple[str, str]
"""Group and kind."""


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Takes times for texts, as JSON does."""


Loader.yaml_implicit_resolvers = {
    first: [known for known in found if known[0] != "tag:yaml.org,2002:timestamp"]
    for first, found in Loader.yaml_implicit_resolvers.items()
}


def folders(config: pytest.Config) -> list[Path]:
    given = config.getoption("--operators") or os.environ.get("FAKEKUBE_OPERATORS")
    return sorted(path for path in Path(given).iterdir() if path.is_dir()) if given else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    found = folders(metafunc.config)
    skipped = pytest.param(None, marks=pytest.mark.skip("no folder of operators is given"))
    metafunc.parametrize("folder", found or [skipped], ids=[path.name for path in found] or ["none"])


def documents(folder: Path) -> Iterator[dict[str, Any]]:
    """All objects in the files of a folder; templates that are no YAML are passed over."""
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".yaml", ".yml")):
        try:
            found = list(yaml.load_all(path.read_text("utf-8"), Loader))
        except yaml.YAMLError:
            continue
        yield from (obj for obj in found if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict))


def until_served(api: Any, definition: dict[str, Any]) -> None:
    spec, end = definition["spec"], time.monotonic() + 30
    for version in spec["versions"]:
        if version.get("served"):
            while api.get(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}").status == 404:
                assert time.monotonic() < end, f"{definition['metadata']['name']} is not served"


def samples_by_kind(folder: Path, kinds: dict[Key, dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Samples, each with the spec of its definition."""
    counted: dict[Key, int] = {}
    for obj in documents(folder):
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        key = (group, str(obj.get("kind")))
        served = [each["name"] for each in kinds[key]["versions"] if each.get("served")] if key in kinds else []
        if version in served and "{{" not in str(obj):
            counted[key] = counted.get(key, 0) + 1
            if counted[key] <= SAMPLES_OF_A_KIND:
                yield obj, kinds[key]


def test_operator_crds_and_samples(api: Any, folder: Path) -> None:
    found = {obj["metadata"].get("name"): obj for obj in documents(folder) if obj.get("kind") == "CustomResourceDefinition"}
    whole = {name: obj for name, obj in found.items() if isinstance(obj.get("spec"), dict) and "versions" in obj["spec"]}
    kinds: dict[Key, dict[str, Any]] = {}
    try:
        for definition in whole.values():
            made = api.post(DEFINITIONS, {**definition, "status": None})
            assert made.status in (201, 422), (definition["metadata"]["name"], made.body)
            if made.status == 201:
                kinds[definition["spec"]["group"], definition["spec"]["names"]["kind"]] = definition["spec"]
                until_served(api, definition)
        for number, (obj, spec) in enumerate(samples_by_kind(folder, kinds)):
            check_sample(api, obj, spec, f"sample-{number}")
    finally:
        for name in whole:
            api.delete(f"{DEFINITIONS}/{name}")


def check_sample(api: Any, obj: dict[str, Any], spec: dict[str, Any], name: str) -> None:
    """The sample is stored, can be read, and applied by another manager; or it is rejected with a message."""
    version = obj["apiVersion"].rpartition("/")[2]
    namespaced = spec["scope"] == "Namespaced"
    metadata = {key: value for key, value in obj["metadata"].items() if key in ("labels", "annotations")}
    obj = {**obj, "metadata": {**metadata, "name": name, **({"namespace": api.namespace} if namespaced else {})}}
    within = f"namespaces/{api.namespace}/" if namespaced else ""
    place = f"/apis/{spec['group']}/{version}/{within}{spec['names']['plural']}"
    made = api.post(place, obj)
    if made.status != 201:
        assert made.status in (400, 403, 422, 500), (name, made.body)
        assert made.at("message"), (name, made.body)
        assert made.status != 500 or "conversion webhook" in made.at("message"), (name, made.body)
        return
    assert api.get(f"{place}/{name}").json == made.json
    applied = api.patch(f"{place}/{name}", obj, APPLY, {"fieldManager": "operators", "force": "true"})
    refused = "failed to create typed patch object" in applied.at("message", default="")  # it has fields that are unknown
    assert applied.status == 200 or refused, (name, applied.body)
