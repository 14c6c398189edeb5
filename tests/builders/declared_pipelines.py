"""Folders of pipelines, written for a test."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.pipelines.model import Architecture, Pipeline
from headrace.pipelines.problems import PipelineError, Problem
from headrace.pipelines.project import load

SETTINGS = """
[pipeline]
name = "shop"

[sources.orders]
format = "json"
schema = "id BIGINT, price DOUBLE, ts TIMESTAMP, op STRING"
"""
COUNTED = """
CREATE STREAMING TABLE raw.o AS SELECT id FROM STREAM(sources.orders);
CREATE MERGED VIEW refined.n MERGE (n SUM) AS
    SELECT id, count(*) AS n FROM STREAM(raw.o) GROUP BY id;
"""
"""A table, and a merged view that counts its rows."""


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


def turned(pipeline: Pipeline, architecture: Architecture) -> Pipeline:
    """The same pipeline with its merged views kept in this way."""
    return replace(pipeline, settings=replace(pipeline.settings, architecture=architecture))


def problems_of(
    place: Path, files: Mapping[str, str], settings: str = SETTINGS
) -> tuple[Problem, ...]:
    """Problems of a folder that cannot be loaded."""
    with pytest.raises(PipelineError) as raised:
        load_folder(place, files, settings)
    return raised.value.problems


def told(problems: tuple[Problem, ...]) -> list[str]:
    return [str(problem) for problem in problems]
