"""Extras are installed from the place where Headrace itself came from."""

import importlib.metadata
import json

import pytest

from headrace.runtime.installation import pip_command

WHEEL = "file:///srv/dist/headrace-0.1.0-py3-none-any.whl"
REPOSITORY = "https://git.example/headrace"


class Installed:
    def __init__(self, text: str | None) -> None:
        self.text = text

    def read_text(self, name: str) -> str | None:
        return self.text if name == "direct_url.json" else None


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, "'headrace[rest]'"),
        ({"url": WHEEL, "archive_info": {}}, f"'headrace[rest] @ {WHEEL}'"),
        ({"url": "file:///srv/source", "dir_info": {}}, "'headrace[rest] @ file:///srv/source'"),
        (
            {"url": "file:///srv/the%20source", "dir_info": {"editable": True}},
            "-e '/srv/the source[rest]'",
        ),
        (
            {"url": REPOSITORY, "vcs_info": {"vcs": "git", "commit_id": "0a1b"}},
            f"'headrace[rest] @ git+{REPOSITORY}@0a1b'",
        ),
    ],
)
def test_the_command_names_the_place_of_the_installation(
    origin: dict[str, object] | None, requirement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Installed(None if origin is None else json.dumps(origin))
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: found)
    assert pip_command("rest") == f"pip install {requirement}"


def test_a_source_tree_without_an_installation_has_only_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Installed:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert pip_command("spark") == "pip install 'headrace[spark]'"
