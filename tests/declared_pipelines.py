"""Folders of pipelines, written for a test."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.pipelines.model import Pipeline
from headrace.pipelines.problems import PipelineError, Problem
from headrace.pipelines.project import load

SETTINGS = """
[pipeline]
name = "shop"

[sources.orders]
format = "json"
schema = "id BIGINT, price DOUBLE, ts TIMESTAMP, op STRING"
"""


def write_folder(place: Path, files: Mapping[str, str], settings: str = SETTINGS) -> Path:
    """A pipeline's folder with these files and a pipeline.toml."""
    folder = place / "shop"
    for name, text in {"pipeline.toml": settings, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def load_folder(place: Path, files: Mapping[str, str], settings: str = SETTINGS) -> Pipeline:
    return load(write_folder(place, files, settings), environment={})


def problems_of(
    place: Path, files: Mapping[str, str], settings: str = SETTINGS
) -> tuple[Problem, ...]:
    """What is wrong with a folder that cannot be loaded."""
    with pytest.raises(PipelineError) as raised:
        load_folder(place, files, settings)
    return raised.value.problems


def told(problems: tuple[Problem, ...]) -> list[str]:
    return [str(problem) for problem in problems]
