"""Where compiled code is kept: beside the source, or in a directory that is ours alone."""

import os
from pathlib import Path

import numba
import pytest

from headrace.spark.source.compiled_cache import prepare_cache


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A module in a place where nothing can be made, such as a zip."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    package = tmp_path / "package.zip"
    package.write_bytes(b"")
    return package / "module.py"


def test_code_is_kept_beside_a_module_that_can_be_written_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", "", raising=False)
    assert prepare_cache(str(tmp_path / "module.py"))
    assert (tmp_path / "__pycache__").is_dir()


def test_a_module_in_a_zip_is_compiled_by_every_process_for_itself(
    nowhere: Path, tmp_path: Path
) -> None:
    assert not prepare_cache(str(nowhere))
    (kept,) = tmp_path.glob("headrace-numba-*")
    assert kept.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_can_write_to_is_not_trusted(
    nowhere: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = tmp_path / f"headrace-numba-{os.getuid()}"
    kept.mkdir()
    kept.chmod(0o777)
    assert not prepare_cache(str(nowhere))
    assert "not ours alone" in caplog.text
