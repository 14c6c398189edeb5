"""`headrace schema evolve` between files: what a change means, and data moved to it. SCH-8"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from headrace.cli.schema import command
from headrace.cli.schema_evolution import NeedsTransform
from headrace.cli.schema_migration import CannotMove, loaded_transform
from headrace.cli.schema_sources import NoSchema
from headrace.serdes.avro.containers import ContainerReader, ContainerWriter
from headrace.serdes.avro.parsing import parse
from tests.builders.avro_versions import EMAIL, ID, NOTE, order_text

TRANSFORM = """
from headrace.serdes.avro.migration import DROP

def add_email(order):
    return {**order, "email": f"{order['id']}@shop"} if order["id"] else DROP

def fail(order):
    raise KeyError("email")
"""


def call(*arguments: str | Path) -> object:
    return command.main([str(one) for one in arguments], standalone_mode=False)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "v1.avsc").write_text(order_text(ID))
    (tmp_path / "note.avsc").write_text(order_text(ID, NOTE))
    (tmp_path / "email.avsc").write_text(order_text(ID, EMAIL))
    (tmp_path / "moving.py").write_text(TRANSFORM)
    with (tmp_path / "old.avro").open("wb") as file:
        writer = ContainerWriter(file, parse(order_text(ID)))
        for number in range(3):
            writer.write({"id": number})
        writer.flush()
    return tmp_path


def values(path: Path) -> Sequence[Any]:
    with path.open("rb") as file:
        return list(ContainerReader(file))


def test_a_change_is_shown_with_the_levels_that_it_keeps(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SCH-8"""
    call("evolve", files / "v1.avsc", files / "note.avsc", "--json")
    reported = json.loads(capsys.readouterr().out)
    assert reported["levels"][-1] == "FULL_TRANSITIVE"
    assert reported["changes"][0]["path"] == "Order.note"


def test_a_break_is_shown_with_advice(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SCH-8"""
    call("evolve", files / "v1.avsc", files / "email.avsc")
    reported = capsys.readouterr().out
    assert "levels satisfied: NONE, FORWARD, FORWARD_TRANSITIVE\n" in reported
    assert "    give the new field a default" in reported


def test_a_container_file_is_projected(files: Path) -> None:
    """SCH-8, SCH-5"""
    call(
        *("evolve", files / "v1.avsc", files / "note.avsc"),
        *("--data", files / "old.avro", "-o", files / "new.avro"),
    )
    assert values(files / "new.avro") == [{"id": number, "note": None} for number in range(3)]


def test_a_container_file_is_transformed(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SCH-8: the transform drops the order without an id."""
    call(
        *("evolve", files / "v1.avsc", files / "email.avsc"),
        *("--data", files / "old.avro", "-o", files / "new.avro"),
        *("--transform", f"{files / 'moving.py'}:add_email"),
    )
    assert values(files / "new.avro") == [
        {"id": 1, "email": "1@shop"},
        {"id": 2, "email": "2@shop"},
    ]
    assert capsys.readouterr().out == "2 values moved\n"


def test_data_that_cannot_be_projected_need_a_transform(files: Path) -> None:
    with pytest.raises(NeedsTransform, match="--transform MODULE:FUNCTION"):
        call(
            *("evolve", files / "v1.avsc", files / "email.avsc"),
            *("--data", files / "old.avro", "-o", files / "new.avro"),
        )
    assert not (files / "new.avro").exists()


def test_a_transform_that_fails_is_named_and_leaves_no_file(files: Path) -> None:
    with pytest.raises(CannotMove, match=r"moving\.py:fail raised KeyError: 'email'"):
        call(
            *("evolve", files / "v1.avsc", files / "email.avsc"),
            *("--data", files / "old.avro", "-o", files / "new.avro"),
            *("--transform", f"{files / 'moving.py'}:fail"),
        )
    assert not list(files.glob("new.avro*"))


def test_an_existing_file_is_not_overwritten(files: Path) -> None:
    with pytest.raises(CannotMove, match="already exists"):
        call(
            *("evolve", files / "v1.avsc", files / "note.avsc"),
            *("--data", files / "old.avro", "-o", files / "old.avro"),
        )


def test_moved_data_need_an_output_file(files: Path) -> None:
    with pytest.raises(click.UsageError, match="--data goes with --output"):
        call("evolve", files / "v1.avsc", files / "note.avsc", "--data", files / "old.avro")


def test_only_files_in_avro_are_moved(files: Path) -> None:
    (files / "a.json").write_text("{}")
    moved = ("--data", files / "old.avro", "--output", files / "new.avro")
    with pytest.raises(NoSchema, match="--data needs an Avro schema"):
        call("evolve", files / "a.json", files / "a.json", *moved)


def test_a_transform_is_a_function(files: Path) -> None:
    with pytest.raises(CannotMove, match="is not a function"):
        loaded_transform(f"{files / 'moving.py'}:__name__")
