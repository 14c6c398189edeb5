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
_JAVA_CHECK = "headrace.pipelines.testing.java_check"
_SETTINGS = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
_SECTIONS = {"tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"}
"""Files shared with other tools, and the section with pytest's settings."""


def run_tests(folder: Path, arguments: Sequence[str] = ()) -> int:
    """Return pytest's exit code; a folder without tests is an error, as nothing was tested."""
    if not (folder / TESTS).is_dir():
        raise PipelineError(
            f"{folder} has no folder {TESTS}; put files test_*.py there that use the fixture"
            " headrace_pipeline"
        )
    if find_spec("pytest") is None:
        raise PipelineError("pytest is not installed; run: pip install pytest")
    command = [sys.executable, "-m", "pytest", "-p", _JAVA_CHECK, "--rootdir", str(folder)]
    command += _around(folder)
    return subprocess.run([*command, str(folder / TESTS), *arguments], check=False).returncode


def _around(folder: Path) -> list[str]:
    """Return options that keep pytest within the folder.

    Settings and conftest.py above belong to another project and may need missing plugins.
    """
    # Without the header, which would report the null device as the file with the settings.
    settings = [] if _has_settings(folder) else ["-c", os.devnull, "--no-header"]
    return [*settings, "--confcutdir", str(folder)]


def _has_settings(folder: Path) -> bool:
    """Return whether pytest finds settings in the folder, instead of searching above."""
    if any((folder / name).exists() for name in _SETTINGS):
        return True
    for name, section in _SECTIONS.items():
        if section in map(str.strip, _text(folder / name).splitlines()):
            return True
    try:
        return "pytest" in tomllib.loads(_text(folder / "pyproject.toml")).get("tool", {})
    except tomllib.TOMLDecodeError:
        return True  # Pytest reports the error.


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
