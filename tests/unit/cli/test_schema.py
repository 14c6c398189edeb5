"""`headrace schema` as far as it needs no registry."""

import json
from pathlib import Path

import click
import pytest

from headrace.cli import schema
from headrace.cli.schema import readable
from headrace.cli.schema_sources import Found
from headrace.serdes.schemas import SchemaType
from tests.builders.avro_versions import EMAIL, ID, NOTE, order_text


def call(*arguments: str | Path) -> object:
    return schema.command.main([str(one) for one in arguments], standalone_mode=False)


@pytest.fixture
def v1(tmp_path: Path) -> Path:
    return written(tmp_path / "v1.avsc", order_text(ID))


@pytest.fixture
def with_note(tmp_path: Path) -> Path:
    return written(tmp_path / "note.avsc", order_text(ID, NOTE))


@pytest.fixture
def with_email(tmp_path: Path) -> Path:
    return written(tmp_path / "email.avsc", order_text(ID, EMAIL))


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_compatible_file_may_follow(
    v1: Path, with_note: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SCH-12"""
    assert call("check", v1, with_note, "--level", "FULL") == 0
    assert capsys.readouterr().out == f"{with_note} may follow {v1}\n"


def test_an_incompatible_file_fails_the_check_with_the_differences(
    v1: Path, with_email: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SCH-12: between files the level is BACKWARD, as in a new registry."""
    assert call("check", v1, with_email) == 1
    reported = capsys.readouterr()
    assert reported.out.startswith("READER_FIELD_MISSING_DEFAULT_VALUE: The field 'email'")
    assert "may not follow" in reported.err


def test_the_level_decides(v1: Path, with_email: Path) -> None:
    """SCH-12"""
    assert call("check", v1, with_email, "--level", "forward") == 0


def test_programs_get_the_verdict_as_json(
    v1: Path, with_email: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("check", v1, with_email, "--json")
    assert json.loads(capsys.readouterr().out)["is_compatible"] is False


def test_a_diff_has_changes_and_both_directions(
    v1: Path, with_email: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("diff", v1, with_email)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{v1} -> {with_email}"
    assert lines[1] == "  + Order.email: string, no default"
    assert lines[2] == "backward: new readers read old data: no"
    assert lines[-1] == "forward: old readers read new data: yes"


def test_a_diff_of_equal_schemas_reports_no_difference(
    v1: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("diff", v1, v1)
    assert "no differences for readers" in capsys.readouterr().out


def test_a_diff_of_one_file_needs_another(v1: Path) -> None:
    with pytest.raises(click.UsageError, match="name a second schema"):
        call("diff", v1)


def test_only_subjects_can_be_deleted(v1: Path) -> None:
    with pytest.raises(click.UsageError, match="name a subject"):
        call("delete", v1, "--yes")


def test_files_are_shown_readably() -> None:
    assert readable(Found("x", SchemaType.JSON, '{"type":"object"}')) == '{\n  "type": "object"\n}'
    proto = 'syntax = "proto3";\n'
    assert readable(Found("x", SchemaType.PROTOBUF, proto)) == proto.rstrip()
