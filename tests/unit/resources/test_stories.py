"""Kinds answer as the real server did: defaults, validation, changes, warnings (see stories.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from fakekube import assembly
from fakekube.clock import Clock
from fakekube.verbs.backend import Settings


def _stories() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stories", Path(__file__).with_name("stories.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stories = _stories()


@pytest.mark.parametrize("name", stories.names())
def test_story(name: str) -> None:
    clock = Clock()
    machinery = assembly.build(clock=clock, settings=Settings(), profile="apiserver")
    found = list(stories.differences(stories.load(name), stories.of_application(machinery.application)))
    clock.close()
    assert not found, "\n".join(found)
