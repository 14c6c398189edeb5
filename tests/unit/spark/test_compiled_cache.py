"""The cache of compiled code: next to the source, or in a private directory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from headrace.spark.compiled_cache import ZippedCode, prepare_cache
from headrace.spark.launching.package_zip import package_zip


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


PROGRAM = """
from headrace.spark.source import compiled
print(compiled.__file__, sum(compiled._walk.stats.cache_hits.values()))
"""


def test_code_from_a_zip_is_kept_for_the_same_zip_elsewhere(tmp_path: Path) -> None:
    """As executors have it, each in a directory of its own."""
    archive = package_zip(tmp_path)
    hits = []
    for place in ("first", "second"):
        moved = tmp_path / place / archive.name
        moved.parent.mkdir()
        shutil.copy(archive, moved)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": str(moved), "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        file, found = done.stdout.split()
        assert file.startswith(str(moved))
        hits.append(int(found))
    assert hits == [0, 1]
    (kept,) = tmp_path.glob("headrace-numba-*")
    assert kept.stat().st_mode & 0o777 == 0o700


def test_another_zip_has_code_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ZippedCode, "place", tmp_path)
    found = set()
    for name in ("one.zip", "other.zip"):
        (tmp_path / name).write_bytes(name.encode())
        code = ZippedCode.from_function(package_zip, str(tmp_path / name / "a" / "b.py"))
        assert code is not None
        found.add((code.get_cache_path(), code.get_source_stamp()))
    assert len({path for path, _ in found}) == len({stamp for _, stamp in found}) == 2


def test_a_module_that_is_a_file_is_left_to_numba(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ZippedCode, "place", tmp_path)
    assert ZippedCode.from_function(package_zip, __file__) is None


def test_a_directory_that_others_can_write_to_is_not_trusted(
    nowhere: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = tmp_path / f"headrace-numba-{os.getuid()}"
    kept.mkdir()
    kept.chmod(0o777)
    assert not prepare_cache(str(nowhere))
    assert "other users can write" in caplog.text


def test_compiled_code_of_a_zip_is_cached_in_the_configured_folder(
    nowhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods have nothing of their own that the next one finds; a volume they share has."""
    chosen = tmp_path / "volume" / "compiled"
    monkeypatch.setattr(ZippedCode, "place", None)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(chosen), raising=False)
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "", raising=False)
    assert prepare_cache(str(nowhere))
    assert chosen == ZippedCode.place
    assert not list(tmp_path.glob("headrace-numba-*"))


def test_a_configured_cache_that_cannot_be_written_is_logged(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(nowhere), raising=False)
    assert not prepare_cache(str(nowhere))
    assert "NUMBA_CACHE_DIR" in caplog.text
