"""Objects that bring headrace along, unpickled by processes that have another one, or none."""

import json
import os
import pickle
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from headrace.spark.launching import pickled_package
from headrace.spark.launching.package_loader import saved_zip
from headrace.spark.launching.pickled_package import attach_package, with_package
from headrace.spark.side_output import Span
from headrace.spark.source.source import DefaultSource

SOURCES = Path(pickled_package.__file__).parents[2]
OPTIONS = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}
PARTS = (
    "__init__.py",
    *(
        f"spark/{name}.py"
        for name in (
            "__init__",
            "launching/__init__",
            "launching/package_loader",
            "launching/pickled_package",
        )
    ),
)
_PROGRAM = """
import json, pickle, sys
sys.path.append(sys.argv[1])
from pyspark import cloudpickle

for place in sys.argv[2:]:
    with open(place, "rb") as file:
        span = pickle.load(file)
    import headrace
    from headrace.spark.launching.pickled_package import with_package
    with open(place + ".again", "wb") as file:
        cloudpickle.dump(with_package(span), file)
    print(json.dumps([headrace.__file__, span("t", 0, 1, 2).end]))
"""


def unpickled(places: Sequence[Path], temporary: Path) -> list[Any]:
    """Return the origin of headrace in a Python without it, after each unpickled class."""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-S", "-c", _PROGRAM, sysconfig.get_path("purelib"), *map(str, places)],
        env=environment,
        cwd=temporary,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert {end for _, end in reports} == {2}
    return [
        str(Path(file).relative_to(temporary / f"headrace-{os.getuid()}")) for file, _ in reports
    ]


@pytest.fixture(autouse=True)
def carries_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither before a test nor after it."""
    monkeypatch.setattr(pickled_package, "_package", None)


def pickled(thing: object) -> bytes:
    found: bytes = cloudpickle.dumps(thing)  # type: ignore[no-untyped-call]
    return found


def small_zip(directory: Path, name: str) -> Path:
    """As much of headrace as carries the words of one module."""
    archive = directory / name
    with zipfile.ZipFile(archive, "w") as file:
        for part in (*PARTS, "spark/side_output.py"):
            file.write(SOURCES / part, f"headrace/{part}")
    return archive


def pickled_class(archive: Path) -> Path:
    attach_package(archive.name, archive.read_bytes())
    place = archive.with_suffix(".pickle")
    place.write_bytes(pickled(with_package(Span)))
    return place


def test_a_process_uses_the_package_version_of_each_pickle(tmp_path: Path) -> None:
    """As a worker that serves clients of two versions in turn, and one that has met neither."""
    ours, theirs = (pickled_class(small_zip(tmp_path, f"headrace-{n}.zip")) for n in (1, 2))
    assert unpickled([ours, theirs, ours], tmp_path) == [
        f"headrace-{n}.zip/headrace/__init__.pyc" for n in (1, 2, 1)
    ]
    (fresh := tmp_path / "fresh").mkdir()
    handed_on = unpickled([theirs.with_name(f"{theirs.name}.again")], fresh)
    assert handed_on == ["headrace-2.zip/headrace/__init__.pyc"]


def test_code_is_not_loaded_from_where_others_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    archive = small_zip(tmp_path, "headrace-1.zip")
    path = saved_zip(archive.name, archive.read_bytes())
    assert path.is_file()
    path.parent.chmod(0o777)
    with pytest.raises(PermissionError, match="another TMPDIR"):
        saved_zip(archive.name, archive.read_bytes())


def test_a_pickle_has_the_zip_once_however_many_objects_are_in_it() -> None:
    attach_package("headrace-1.zip", bytes(100_000))
    objects = [with_package(DefaultSource), DefaultSource(OPTIONS), DefaultSource(OPTIONS)]
    assert 100_000 < len(pickled(objects)) < 120_000


def test_objects_returned_to_the_client_have_its_own_classes() -> None:
    attach_package("headrace-1.zip", b"")
    kind, source = pickle.loads(pickled([with_package(DefaultSource), DefaultSource(OPTIONS)]))
    assert kind is type(source) is DefaultSource
    assert source.options == OPTIONS


def test_the_package_is_attached_only_on_request() -> None:
    assert with_package(DefaultSource) is DefaultSource
    assert len(pickled(DefaultSource(OPTIONS))) < 1_000
