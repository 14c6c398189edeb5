"""Runs the tests of a pipeline's folder with pytest, in a process of their own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from headrace.pipelines.problems import PipelineError

TESTS = "tests"
_SETTINGS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


def run_tests(folder: Path, arguments: Sequence[str] = ()) -> int:
    """The exit code of pytest; a folder without tests is an error, as nothing was shown to work."""
    if not (folder / TESTS).is_dir():
        raise PipelineError(
            f"{folder} has no folder {TESTS}; put files test_*.py there that use the fixture"
            " headrace_pipeline"
        )
    if find_spec("pytest") is None:
        raise PipelineError("pytest is not installed; run: pip install pytest")
    command = [sys.executable, "-m", "pytest", "--rootdir", str(folder), str(folder / TESTS)]
    return subprocess.run([*command, *_settings(folder), *arguments], check=False).returncode


def _settings(folder: Path) -> list[str]:
    """Only the folder's own: what pytest finds above may ask for plugins of another project."""
    has_own = any((folder / name).exists() for name in _SETTINGS)
    return [] if has_own else ["-c", os.devnull]
