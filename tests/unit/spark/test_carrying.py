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

from headrace.spark import carrying
from headrace.spark.arriving import kept
from headrace.spark.carrying import carried, carry
from headrace.spark.refuge import Span
from headrace.spark.source.source import DefaultSource

SOURCES = Path(carrying.__file__).parents[1]
OPTIONS = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}
PARTS = ("__init__.py", *(f"spark/{name}.py" for name in ("__init__", "arriving", "carrying")))
_PROGRAM = """
import json, pickle, sys
sys.path.append(sys.argv[1])
from pyspark import cloudpickle

for place in sys.argv[2:]:
    with open(place, "rb") as file:
        span = pickle.load(file)
    import headrace
    from headrace.spark.carrying import carried
    with open(place + ".again", "wb") as file:
        cloudpickle.dump(carried(span), file)
    print(json.dumps([headrace.__file__, span("t", 0, 1, 2).end]))
"""


def unpickled(places: Sequence[Path], temporary: Path) -> list[Any]:
    """Where a Python without headrace has it from, as it unpickles one class after the other."""
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
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {end for _, end in told} == {2}
    return [str(Path(file).relative_to(temporary / f"headrace-{os.getuid()}")) for file, _ in told]


@pytest.fixture(autouse=True)
def carries_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither before a test nor after it."""
    monkeypatch.setattr(carrying, "_luggage", None)


def pickled(thing: object) -> bytes:
    found: bytes = cloudpickle.dumps(thing)  # type: ignore[no-untyped-call]
    return found


def small_zip(directory: Path, name: str) -> Path:
    """As much of headrace as carries the words of one module."""
    archive = directory / name
    with zipfile.ZipFile(archive, "w") as file:
        for part in (*PARTS, "spark/refuge.py"):
            file.write(SOURCES / part, f"headrace/{part}")
    return archive


def pickled_class(archive: Path) -> Path:
    carry(archive.name, archive.read_bytes())
    place = archive.with_suffix(".pickle")
    place.write_bytes(pickled(carried(Span)))
    return place


def test_a_process_has_the_version_of_what_it_unpickles_and_hands_it_on(tmp_path: Path) -> None:
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
    path = kept(archive.name, archive.read_bytes())
    assert path.is_file()
    path.parent.chmod(0o777)
    with pytest.raises(PermissionError, match="another TMPDIR"):
        kept(archive.name, archive.read_bytes())


def test_a_pickle_has_the_zip_once_however_many_objects_are_in_it() -> None:
    carry("headrace-1.zip", bytes(100_000))
    objects = [carried(DefaultSource), DefaultSource(OPTIONS), DefaultSource(OPTIONS)]
    assert 100_000 < len(pickled(objects)) < 120_000


def test_what_comes_back_to_the_client_is_of_its_own_classes() -> None:
    carry("headrace-1.zip", b"")
    kind, source = pickle.loads(pickled([carried(DefaultSource), DefaultSource(OPTIONS)]))
    assert kind is type(source) is DefaultSource
    assert source.options == OPTIONS


def test_nothing_is_brought_along_unless_that_was_asked_for() -> None:
    assert carried(DefaultSource) is DefaultSource
    assert len(pickled(DefaultSource(OPTIONS))) < 1_000
