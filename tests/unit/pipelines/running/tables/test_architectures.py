"""Merged views that migration to another architecture's tables, and when their readers do."""

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.lake.tables import Table
from headrace.pipelines.model import Architecture, Pipeline
from headrace.pipelines.running.state.folders import PipelineState
from headrace.pipelines.running.tables.architectures import (
    ViewMigration,
    ViewMigrations,
    begin,
    changed_views,
)
from headrace.pipelines.running.tables.generations import next_number
from headrace.pipelines.running.tables.layers import tables_of
from tests.builders.declared_pipelines import COUNTED, load_folder, turned
from tests.builders.lakes import numbers

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
VIEW = "refined.n"
LAYERS = tables_of(VIEW, Architecture.LAMBDA)
ENTRY = MergedViewEntry(VIEW, ("id",), {"n": "sum"}, LAYERS[0], LAYERS[1], "shop")


class Shop:
    """A pipeline whose runs the test carries out step by step."""

    def __init__(self, place: Path) -> None:
        self.lake = Lake(place / "lake")
        self.state = PipelineState.of(self.lake.root, "shop")
        self.pipeline = load_folder(place, {"tables.sql": COUNTED})
        self.source = self.lake.create("raw.o", SCHEMA, pipeline="shop")
        self.lake.create(VIEW, SCHEMA, pipeline="shop")
        numbers(self.source, 1)

    def turn(self, architecture: Architecture) -> Pipeline:
        self.pipeline = turned(self.pipeline, architecture)
        return self.pipeline

    def begin(self) -> dict[str, int]:
        number = next_number(self.lake, self.state, "shop")
        return begin(self.lake, self.state, self.pipeline, number)

    def run(self) -> tuple[ViewMigrations, Table]:
        """Return the tables before the first batch, and the table that the stream writes to."""
        stored = tuple(
            self.lake.create(name, SCHEMA, pipeline="shop", generation=number)
            for name, number in self.begin().items()
        )
        layers = ENTRY if len(stored) == 2 else None
        migration = ViewMigration(VIEW, self.source, self.source.version, stored, layers)
        return ViewMigrations(self.lake, self.state, [migration]), stored[-1]

    def migration(self, architecture: Architecture) -> None:
        self.turn(architecture)
        migrations, written = self.run()
        reach(written, self.source.version)
        migrations.complete()

    def seen(self) -> dict[str, int | None]:
        """Which generation of each of the view's tables readers see; 0 is the view itself."""
        catalog = self.lake.catalog()
        found = {name: one.current for name, one in catalog.tables.items() if one.current}
        return {**found, **dict.fromkeys(catalog.views, 0)}


def reach(written: Table, version: int) -> None:
    """A batch of the stream that read its input up to a version."""
    batch = (written.last_batch("stream") or 0) + 1
    written.append([], Token("stream", batch), Lineage(inputs={"raw.o": (0, version)}))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_readers_see_the_old_tables_until_the_new_ones_have_caught_up(shop: Shop) -> None:
    """ARC-1, ARC-2: first to lambda, then back to kappa."""
    old = shop.seen()
    shop.turn(Architecture.LAMBDA)
    migrations, speed = shop.run()
    migrations.complete()
    assert (shop.seen(), migrations.views) == (old, {VIEW})
    reach(speed, shop.source.version)
    migrations.complete()
    assert (shop.seen(), migrations.views) == (
        {"raw.o": 1, VIEW: 0, **dict.fromkeys(LAYERS, 2)},
        set(),
    )
    numbers(shop.source, 2)
    shop.turn(Architecture.KAPPA)
    migrations, whole = shop.run()
    reach(whole, shop.source.version - 1)
    migrations.complete()
    assert VIEW in shop.lake.views()
    reach(whole, shop.source.version)
    migrations.complete()
    assert shop.seen() == {"raw.o": 1, VIEW: 3}
    assert shop.state.building() == {}


def test_commits_without_rows_are_not_waited_for(shop: Shop) -> None:
    reached = shop.source.version
    shop.source.append([], Token("other", 1))
    shop.turn(Architecture.LAMBDA)
    migrations, speed = shop.run()
    reach(speed, reached)
    migrations.complete()
    assert migrations.views == set()


def test_an_interrupted_run_is_continued(shop: Shop) -> None:
    shop.turn(Architecture.LAMBDA)
    first = shop.begin()
    shop.run()
    assert shop.begin() == first == dict.fromkeys(LAYERS, 2)


def test_tables_of_an_earlier_architecture_are_never_continued(shop: Shop) -> None:
    """Their input may have been replayed since; versions are valid in one generation only.

    So it is here: replayed in lambda, the input is in generation 3 when the view comes back to
    kappa, whose table of before was built from generation 1.
    """
    shop.migration(Architecture.LAMBDA)
    for name in ("raw.o", *LAYERS):
        shop.lake.create(name, SCHEMA, pipeline="shop", generation=3)
    shop.lake.switch(dict.fromkeys(("raw.o", *LAYERS), 3))
    shop.turn(Architecture.KAPPA)
    assert shop.begin() == {VIEW: 4}


def test_an_abandoned_replay_is_not_continued_later(shop: Shop) -> None:
    shop.turn(Architecture.LAMBDA)
    shop.run()
    shop.turn(Architecture.KAPPA)
    assert shop.begin() == {}
    shop.turn(Architecture.LAMBDA)
    assert shop.begin() == dict.fromkeys(LAYERS, 3)


def test_a_new_pipeline_has_nothing_to_move(shop: Shop) -> None:
    for architecture in Architecture:
        assert changed_views(Lake(shop.lake.root / "new").catalog(), shop.turn(architecture)) == []


def test_layers_that_an_older_lake_left_live_are_rebuilt(shop: Shop) -> None:
    for name in LAYERS:
        shop.lake.create(name, SCHEMA, pipeline="shop")
    shop.turn(Architecture.LAMBDA)
    assert shop.begin() == dict.fromkeys(LAYERS, 2)
    assert shop.seen() == {"raw.o": 1, VIEW: 1}
