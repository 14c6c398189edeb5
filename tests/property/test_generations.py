"""Which generation of a merged view's tables a run writes, whatever was done to them before.

Runs, replays, ways back, changes of architecture and drops in random orders. What a run goes on
with must have been built from the generation of its input that counts: versions of one generation
tell of no other, and a stream of one fails behind another, or worse.
"""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.pipelines.model import Architecture
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.correcting.replay import check_architecture
from headrace.pipelines.running.state.folders import PipelineState
from headrace.pipelines.running.tables.architectures import ViewMigration, ViewMigrations, begin
from headrace.pipelines.running.tables.generations import check_way_back, drop, next_number
from headrace.pipelines.running.tables.layers import tables_of
from tests.builders.declared_pipelines import COUNTED, load_folder, turned

VIEW, INPUT = "refined.n", "raw.o"
SCHEMA = pa.schema([("id", pa.int64())])


class Played:
    """A pipeline's life without its rows: what its commands do to catalog and notes."""

    def __init__(self, place: Path) -> None:
        self.lake = Lake(place / "lake")
        self.state = PipelineState.of(self.lake.root, "shop")
        self.pipeline = load_folder(place, {"tables.sql": COUNTED})
        self.read: dict[tuple[str, int], int] = {}
        """Of each building of a table which generation of the input it was made from."""
        self.dropped: set[tuple[str, int]] = set()
        self.make({INPUT: 1, VIEW: 1}, 1)

    @property
    def stored(self) -> tuple[str, ...]:
        return tables_of(VIEW, self.pipeline.settings.architecture)

    def current(self, name: str) -> int:
        return self.lake.table(name).generation

    def make(self, tables: dict[str, int], read: int) -> None:
        for name, number in tables.items():
            assert (name, number) not in self.dropped, "a number is given once"
            self.lake.create(name, SCHEMA, pipeline="shop", generation=number)
            self.read.setdefault((name, number), read)

    def turn(self) -> None:
        before = self.pipeline.settings.architecture
        chosen = next(one for one in Architecture if one is not before)
        self.pipeline = turned(self.pipeline, chosen)

    def run(self, *, is_cut_off: bool = False) -> None:
        number = next_number(self.lake, self.state, "shop")
        built = begin(self.lake, self.state, self.pipeline, number)
        self.make(built, self.current(INPUT))
        written = {name: built.get(name) or self.current(name) for name in self.stored}
        for one in written.items():
            assert self.read[one] == self.current(INPUT), f"{one} was built from another"
        if is_cut_off or not built:
            return
        source = self.lake.table(INPUT)
        stored = tuple(self.lake.table(name, number) for name, number in written.items())
        token = Token("stream", (stored[-1].last_batch("stream") or 0) + 1)
        stored[-1].append([], token, Lineage(inputs={INPUT: (0, source.version)}))
        layers = None
        if len(stored) == 2:
            batch, speed = written
            layers = MergedViewEntry(VIEW, ("id",), {"n": "sum"}, batch, speed, "shop")
        ViewMigrations(
            self.lake, self.state, [ViewMigration(VIEW, source, source.version, stored, layers)]
        ).complete()

    def replay(self, *, keep_input: bool = False) -> None:
        check_architecture(self.lake, self.pipeline)
        number = next_number(self.lake, self.state, "shop")
        assert begin(self.lake, self.state, self.pipeline, number) == {}, "nothing migrations"
        names = self.stored if keep_input else (INPUT, *self.stored)
        built = dict.fromkeys(names, number)
        self.make(built, self.current(INPUT) if keep_input else number)
        self.state.record_switch({name: self.current(name) for name in built})
        self.lake.switch(built)

    def back(self) -> None:
        if earlier := self.state.last_switch():
            check_way_back(self.lake.catalog(), self.pipeline, earlier)
            self.lake.switch(earlier)
            self.state.forget_switch()
            self.state.record_building({})

    def drop(self, generation: int) -> None:
        gone = drop(self.lake, self.state, self.pipeline, generation)
        self.dropped |= {(name, generation) for name in gone.tables}

    def check_seen(self) -> None:
        """Readers find the view in one way, whole."""
        catalog = self.lake.catalog()
        shown = {name for name, one in catalog.tables.items() if one.current is not None}
        layers = set(tables_of(VIEW, Architecture.LAMBDA))
        assert shown - {INPUT} == (layers if VIEW in catalog.views else {VIEW})


DOINGS: dict[str, Callable[[Played], None]] = {
    "turn": Played.turn,
    "run": Played.run,
    "cut off": lambda played: played.run(is_cut_off=True),
    "replay": Played.replay,
    "replay, input kept": lambda played: played.replay(keep_input=True),
    "back": Played.back,
    **{f"drop {number}": partial(Played.drop, generation=number) for number in (1, 2, 3, 4)},
}


@settings(max_examples=20)
@example(doings=["replay", "turn", "run", "turn", "back"])
@given(doings=st.lists(st.sampled_from(sorted(DOINGS)), max_size=12))
def test_a_run_continues_only_from_states_of_its_current_input(
    doings: list[str],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        played = Played(Path(directory))
        for doing in doings:
            with suppress(PipelineError):  # Refused, so nothing was done.
                DOINGS[doing](played)
            played.check_seen()
        played.run()
