"""Tables of the lake under random rows and random orders of events."""

import datetime as dt
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.commits import AddedFile, Token
from headrace.lake.data_files import FileWriter
from headrace.lake.lineage import Lineage
from headrace.lake.reading import read_batches
from tests.lakes import appended, written

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC))
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("ratio", pa.float64()),
        ("part", pa.string()),
    ]
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
            "text": st.none() | TEXTS,
            "at": st.none() | MOMENTS,
            "ratio": st.none() | st.floats(allow_nan=False),
            "part": st.none() | TEXTS.filter(bool),
        }
    ),
    max_size=12,
)


@contextmanager
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def counted(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in SCHEMA.names) for row in rows)


@settings(max_examples=20)
@given(rows=ROWS)
def test_rows_come_back_whatever_the_partition_is_called(rows: list[dict[str, Any]]) -> None:
    with place() as root:
        table = Lake(root).create("raw.any", SCHEMA, partition_by=["part"])
        appended(table, rows)
        assert counted(table.rows().to_pylist()) == counted(rows)
        delta = DeltaTable(str(table.place))
        assert counted(delta.to_pyarrow_table().select(SCHEMA.names).to_pylist()) == counted(rows)
        by_file = [
            row
            for file in table.files()
            for batch in read_batches(table.place, file, SCHEMA, ["part"])
            for row in batch.to_pylist()
        ]
        assert counted(by_file) == counted(rows)


@settings(max_examples=30)
@given(rows=ROWS.filter(bool))
def test_bounds_in_the_log_enclose_every_value(rows: list[dict[str, Any]]) -> None:
    with place() as root:
        writer = FileWriter(root, SCHEMA)
        writer.write(pa.Table.from_pylist(rows, schema=SCHEMA))
        (file,) = writer.close()
        said = json.loads(file.stats)
    for name in SCHEMA.names:
        values = [row[name] for row in rows if row[name] is not None]
        assert said["nullCount"][name] == len(rows) - len(values)
        if name in said["minValues"]:
            least, most = said["minValues"][name], said["maxValues"][name]
            if name == "at":
                least, most = dt.datetime.fromisoformat(least), dt.datetime.fromisoformat(most)
            assert least <= min(values)
            assert most >= max(values)


VIEW = MergedViewEntry(
    "refined.sums", ("key",), {"n": "sum"}, "refined.sums__batch", "refined.sums__speed"
)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.sampled_from("abc"), min_size=1, max_size=3)),
        st.tuples(st.sampled_from(["speed", "batch", "forget", "optimize", "rebuild"])),
    ),
    min_size=4,
    max_size=16,
)


class Lambda:
    """A batch and a speed layer over one input table, driven step by step."""

    def __init__(self, root: Path) -> None:
        self.lake = Lake(root)
        sums = [("key", pa.string()), ("n", pa.int64())]
        self.input = self.lake.create("raw.in", pa.schema([("key", pa.string())]))
        self.batch = self.lake.create(VIEW.batch, pa.schema(sums))
        self.speed = self.lake.create(
            VIEW.speed, pa.schema([*sums, ("_commit_version", pa.int64())])
        )
        self.lake.put_view(VIEW.name, VIEW)
        self.truth: dict[int, Counter[str]] = {-1: Counter(), 0: Counter()}
        self.read_to = self.covered = -1

    def append(self, keys: list[str]) -> None:
        version = appended(self.input, [{"key": key} for key in keys])
        self.truth[version] = self.truth[max(self.truth)] + Counter(keys)

    def run_speed(self) -> None:
        """Follow the input, or begin with what it has."""
        newest = self.input.version
        if self.read_to < 0:
            files = self.input.snapshot(newest)
        else:
            files = self.input.added(self.read_to, newest)
        self.speed.append(written(self.speed, self._counted(files)))
        self.read_to = newest

    def rebuild_speed(self) -> None:
        """Lose all that the speed layer has, and begin anew."""
        self.speed.replace([])
        self.read_to = -1
        self.run_speed()

    def run_batch(self) -> None:
        version = self.input.version
        sums = Counter(self.input.rows(version)["key"].to_pylist())
        rows = [{"key": key, "n": n} for key, n in sums.items()]
        lineage = Lineage(inputs={"raw.in": (-1, version)})
        self.batch.replace(written(self.batch, rows), None, lineage)
        self.covered = version

    def forget(self) -> None:
        """The speed layer lets go of what the batch layer has covered."""
        self.speed.delete(f"_commit_version <= {self.covered}", Token("forget", self.speed.version))

    def optimize(self) -> None:
        for name in self.lake.names():
            self.lake.optimize(name)
        self.truth[self.input.version] = self.truth[max(self.truth)]

    def expected(self) -> dict[str, int]:
        known = max(self.covered, self.read_to)
        return dict(self.truth[max(version for version in self.truth if version <= known)])

    def merged(self) -> dict[str, int]:
        return {row["key"]: row["n"] for row in self.lake.merged_rows(VIEW).to_pylist()}

    def _counted(self, files: list[AddedFile]) -> list[dict[str, Any]]:
        return [
            {"key": key, "n": n, "_commit_version": file.version}
            for file in files
            for batch in read_batches(self.input.place, file, self.input.schema, [])
            for key, n in Counter(batch["key"].to_pylist()).items()
        ]


@settings(max_examples=12)
@given(events=EVENTS)
def test_batch_and_speed_layer_are_the_truth_at_every_moment(events: list[tuple[Any, ...]]) -> None:
    """ARC-1: no record is counted twice at the seam, none is missed."""
    with place() as root:
        layers = Lambda(root)
        steps: dict[str, Callable[..., None]] = {
            "append": layers.append,
            "speed": layers.run_speed,
            "batch": layers.run_batch,
            "forget": layers.forget,
            "optimize": layers.optimize,
            "rebuild": layers.rebuild_speed,
        }
        for name, *arguments in events:
            steps[name](*arguments)
            assert layers.merged() == layers.expected(), name
