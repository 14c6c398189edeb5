"""Python objects by name, for commands that run what a user wrote."""

import json
from pathlib import Path

import pytest

from headrace.cli.python_objects import NoSuchObject, load_object


def test_an_object_of_a_module_is_found() -> None:
    assert load_object("json:dumps") is json.dumps


def test_an_object_within_another_is_found() -> None:
    assert load_object("json:JSONDecoder.decode") is json.JSONDecoder.decode


def test_a_module_of_the_current_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_transforms_here.py").write_text("ANSWER = 42\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_object("my_transforms_here:ANSWER") == 42


def test_an_object_of_a_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "my_transforms.py").write_text("ANSWER = 42\n")
    assert load_object(f"{tmp_path / 'my_transforms.py'}:ANSWER") == 42


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("json", "not of the form module:name"),
        ("json:nothing", "json has no nothing"),
        ("nowhere.at.all:x", r"module nowhere\.at\.all not found"),
        ("nowhere.py:x", r"file nowhere\.py does not exist"),
    ],
)
def test_a_missing_object_is_reported(text: str, reason: str) -> None:
    with pytest.raises(NoSuchObject, match=reason):
        load_object(text)


def test_a_module_that_lacks_another_names_it(tmp_path: Path) -> None:
    (tmp_path / "lacking.py").write_text("import not_installed_at_all\n")
    with pytest.raises(ModuleNotFoundError, match="not_installed_at_all"):
        load_object(f"{tmp_path / 'lacking.py'}:x")
