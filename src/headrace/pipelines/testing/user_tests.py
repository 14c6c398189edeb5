"""Runs the tests of a pipeline's folder with pytest, in a process of their own."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from headrace.pipelines.problems import PipelineError

TESTS = "tests"
_SETTINGS = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
_SECTIONS = {"tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"}
"""Files that are of other tools too, and where in them pytest's settings are."""


def run_tests(folder: Path, arguments: Sequence[str] = ()) -> int:
    """The exit code of pytest; a folder without tests is an error, as nothing was shown to work."""
    if not (folder / TESTS).is_dir():
        raise PipelineError(
            f"{folder} has no folder {TESTS}; put files test_*.py there that use the fixture"
            " headrace_pipeline"
        )
    if find_spec("pytest") is None:
        raise PipelineError("pytest is not installed; run: pip install pytest")
    command = [sys.executable, "-m", "pytest", "--rootdir", str(folder), *_around(folder)]
    return subprocess.run([*command, str(folder / TESTS), *arguments], check=False).returncode


def _around(folder: Path) -> list[str]:
    """What keeps pytest within the folder: settings and conftest.py above are another project's.

    They may ask for plugins that are not there.
    """
    settings = [] if _has_settings(folder) else ["-c", os.devnull]
    return [*settings, "--confcutdir", str(folder)]


def _has_settings(folder: Path) -> bool:
    """Whether pytest finds settings in the folder; if not, it goes on looking above."""
    if any((folder / name).exists() for name in _SETTINGS):
        return True
    for name, section in _SECTIONS.items():
        if section in map(str.strip, _text(folder / name).splitlines()):
            return True
    try:
        return "pytest" in tomllib.loads(_text(folder / "pyproject.toml")).get("tool", {})
    except tomllib.TOMLDecodeError:
        return True  # Pytest says what is wrong with it.


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
