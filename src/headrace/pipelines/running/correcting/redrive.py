"""Redrive: rows of quarantine checked again by today's flow and expectations.

A row whose bytes were kept is rebuilt: today's flow runs over its record. A row whose record is a
single row of the table that the flow streams is rebuilt too. All other rows are checked as they are
in quarantine: rows without bytes or place, rows of joined streams, and rows of a record of which
the table already has others. A row that passes goes to its table; a row that does not returns to
quarantine with its new reason.

Quarantine may exceed memory, so a redrive has rounds. Each round is recorded, written to the table
by one token, and removed from quarantine before the next one begins.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.commit_log import Token
from headrace.lake.quarantine import QUARANTINED_AT, UNREADABLE
from headrace.lake.tables import Table
from headrace.pipelines import model
from headrace.pipelines.declaring.names import quarantine_of
from headrace.pipelines.problems import PipelineError, no_streaming_table
from headrace.pipelines.queries.resolving import evaluate
from headrace.pipelines.running.correcting.kept_records import (
    PLACE,
    KeptRecordsReader,
    Place,
    places_of,
    rows_at,
)
from headrace.pipelines.running.correcting.redrive_rounds import (
    Limits,
    Round,
    index_of,
    rounds_of,
    rows_of,
    without,
)
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.state.folders import read_json, write_file
from headrace.runtime import files
from headrace.spark.tables.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Decided(msgspec.Struct, frozen=True):
    """The rows that a round takes out of quarantine; recorded before they are written."""

    deletes: tuple[str, ...] = ()
    """SQL conditions of these rows."""
    left: dict[str, int] = {}
    """The reasons of rows that stay, with their numbers."""


@dataclass(slots=True)
class Journal:
    """The remaining rounds of a redrive, and its id, in a file.

    A round is written to the table by a token made of both, so it is written once: if the table has
    the token after a crash, only the recorded deletes are repeated. Rows that are rejected again
    have a later moment than those of any round, so no round includes them.
    """

    path: Path
    id: str
    rounds: list[Round]
    """The first one is under way."""
    decided: Decided = field(default_factory=Decided)

    @classmethod
    def begun(cls, path: Path, rounds: list[Round]) -> "Journal":
        """Return a new journal of these rounds."""
        journal = cls(path, uuid4().hex, rounds)
        if rounds:
            journal.write()
        return journal

    @classmethod
    def found(cls, path: Path) -> "Journal | None":
        """Return the journal of an interrupted call; None if no call was interrupted."""
        content = read_json(path)
        if not content:
            return None
        if "decided" not in content:
            raise PipelineError(
                f"{path} is the journal of an unfinished redrive by an older version of Headrace;"
                " finish it with that version, then redrive again"
            )
        rounds = msgspec.convert(content["rounds"], list[Round])
        return cls(path, content["id"], rounds, msgspec.convert(content["decided"], Decided))

    @property
    def token(self) -> Token:
        """Return the token of the current round's batch."""
        part = self.rounds[0]
        return Token(f"redrive/{self.id}/{part.flow}", part.number)

    def decide(self, decided: Decided) -> None:
        """Record the decision of the current round, before it writes anything."""
        self.decided = decided
        self.write()

    def write(self) -> None:
        content = {"id": self.id, "rounds": self.rounds, "decided": self.decided}
        write_file(self.path, msgspec.json.encode(content))

    def end_round(self) -> None:
        """Go to the next round; the last one removes the journal."""
        self.rounds.pop(0)
        self.decided = Decided()
        if self.rounds:
            self.write()
        else:
            files.unlink_if_there(str(self.path))


NOT_TRACEABLE = (
    "their payloads could not be decoded, and the flow's rows cannot be traced back to single"
    " records"
)
ALREADY_READ = (
    "the table has rows of their records, which another source of the flow could decode; the flow"
    " no longer reads the source that could not"
)
FLOW_GONE = "their flow no longer exists"
UNFINISHED = "their batch is not finished; once the pipeline has run, redrive again"
_NAMELESS = 'topic IS NULL OR "partition" IS NULL OR "offset" IS NULL'
_PER_DELETE = 500
_MOMENT = 'Timestamp(Microsecond, Some("UTC"))'

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Redriven:
    """The number of rows taken out of quarantine, and of those rejected again."""

    taken: int
    refused: int
    left: int = 0
    """Rows that stayed in quarantine unchecked."""
    reasons: dict[str, int] = field(default_factory=dict)
    """The reasons of rows that stayed, with their numbers."""


def check_table(pipeline: model.Pipeline, table: str) -> None:
    """Reject a table whose rows cannot be redriven; done first, as it needs no Spark."""
    target = pipeline.datasets.get(table)
    if not isinstance(target, model.StreamingTable):
        raise PipelineError(no_streaming_table(pipeline, table))
    if not all(model.takes_late_rows(target, flow) for flow in pipeline.flows_into(table)):
        raise PipelineError(
            f"{table} is kept by key, and a row from quarantine may be older than the stored one;"
            " declare the column that orders the rows of a key (SEQUENCE BY column, in"
            " Python sequence_by=), or replay the pipeline instead"
        )


def redrive(run: PipelineRun, table: str, limits: Limits | None = None) -> Redriven:
    """Check every row in a table's quarantine again, round by round.

    An interrupted call is completed first, and alone: rows rejected since then are left to the next
    call.
    """
    check_table(run.pipeline, table)
    flows = {flow.name: flow for flow in run.pipeline.flows_into(table)}
    place = run.targets.quarantine_of(table)
    if place is None:
        raise PipelineError(f"{table} rejects no rows: it has no quarantine to redrive")
    taken = refused = 0
    with run.state.held("redrive"):
        journal, reasons = _begun(run, table, flows, place.table, limits or Limits())
        while journal.rounds:
            part = journal.rounds[0]
            if part.flow in flows:
                rows = rows_of(place.table, part)
                refused += _write_round(run, flows[part.flow], rows, journal)
                with run.generations.place(quarantine_of(table)).held() as quarantine:
                    for condition in journal.decided.deletes:
                        quarantine.delete(condition)
                taken += rows.num_rows - sum(journal.decided.left.values())
                reasons.update(journal.decided.left)
            journal.end_round()
    return Redriven(taken, refused, reasons.total(), dict(reasons))


def _begun(
    run: PipelineRun, table: str, flows: Mapping[str, model.Flow], quarantine: Table, limits: Limits
) -> tuple[Journal, Counter[str]]:
    """Return the planned or remaining rounds, and the reasons of rows that stay."""
    found = index_of(quarantine)
    unfinished = {name: _unfinished(run, flow, quarantine) for name, flow in flows.items()}
    index = without(found, unfinished)
    path = run.state.directory / f"redrive-{table}.json"
    journal = Journal.found(path)
    if journal is None:
        journal = Journal.begun(
            path, [part for flow in flows for part in rounds_of(index, flow, limits)]
        )
    counts = index["flow"].value_counts().to_pylist()
    gone = sum(one["counts"] for one in counts if one["values"] not in flows)
    early = found.num_rows - index.num_rows
    return journal, +Counter({FLOW_GONE: gone, UNFINISHED: early})  # `+` drops counts of 0.


def _unfinished(run: PipelineRun, flow: model.Flow, quarantine: Table) -> set[int]:
    """Return the moments of a batch that is in quarantine but not in the table.

    The batch is under way or was cut off; its next try replaces these rows.
    """
    state = run.folders.of(flow)
    batch = quarantine.last_batch(state.writer()) if state.is_known else None
    if batch is None:
        return set()
    token = Token(state.writer(), batch)
    return set() if run.targets.of(flow).has(token) else set(_moments_added(quarantine, token))


def _moments_added(quarantine: Table, token: Token) -> Iterator[int]:
    files = quarantine.table_files(quarantine.version)
    added = {file.path for file in quarantine.added_by(token)}
    for number, file in enumerate(files.files):
        if file.path in added:
            for rows in files.batches(number, [QUARANTINED_AT]):
                yield from rows.column(0).cast(pa.int64()).unique().to_pylist()


def _write_round(run: PipelineRun, flow: model.Flow, rows: pa.Table, journal: Journal) -> int:
    """Write the current round to the table, once; return the rows rejected again.

    The decision is recorded first: the stored rows would change the result of a second check.
    """
    target = run.targets.of(flow, is_redriven=True)
    if target.has(journal.token):
        return 0
    stored = _stored(run, flow, rows)
    reader = KeptRecordsReader(run.reads_of(flow, is_redriven=True), rows, stored)
    judged = evaluate(flow.query, reader)
    is_rebuilt = pa.array(reader.rebuilt(), pa.bool_())
    is_unreadable = pc.equal(rows["rule"], UNREADABLE)
    left = places_of(rows.filter(pc.and_not(is_unreadable, is_rebuilt)))
    known = stored if reader.is_exact else set()
    reasons = Counter(ALREADY_READ if place in known else NOT_TRACEABLE for place in left)
    deletes = conditions(journal.rounds[0], {place for place in left if place})
    is_none_taken = len(left) == rows.num_rows
    journal.decide(Decided(() if is_none_taken else tuple(deletes), dict(reasons)))
    if is_none_taken:
        return 0
    as_made = rows.filter(pc.invert(pc.or_(is_rebuilt, is_unreadable)))
    if as_made.num_rows:
        again = _unchanged(run, flow, judged, as_made)
        any_rebuilt = is_rebuilt.true_count > 0
        judged = judged.unionByName(again, allowMissingColumns=True) if any_rebuilt else again
    return target.write(judged, journal.token, run.lineage(flow.name)).quarantined


def _stored(run: PipelineRun, flow: model.Flow, rows: pa.Table) -> set[Place]:
    """Return the records of rejected rows of which the table has rows too.

    Rows that replace others by key or sequence may come again. After a topic was recreated, a row
    of the table may be of another record with the same place. It counts as the same one: the
    rejected row is checked unchanged, so no record is stored twice.
    """
    target = run.pipeline.datasets[flow.target]
    table = run.generations.table(flow.target)
    is_kept_by_key = flow.changes is not None or (
        isinstance(target, model.StreamingTable) and bool(target.keys)
    )
    if is_kept_by_key or not set(PLACE) <= set(table.schema.names):
        return set()
    found = rows_at(run.spark, table, table.version, places_of(rows)).select(*PLACE).distinct()
    return {(row[0], row[1], row[2]) for row in found.collect()}


def _unchanged(
    run: PipelineRun, flow: model.Flow, rebuilt: "DataFrame", rows: pa.Table
) -> "DataFrame":
    """Return rejected rows unchanged, from their JSON.

    Types are the table's; events of a change flow have columns that the table has not.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    table = run.generations.table(flow.target)
    known = [] if flow.changes is not None else schema_of(table.schema).fields
    names = {field.name for field in known}
    others = rebuilt.drop(*model.RESERVED).schema.fields
    schema = StructType([*known, *(field for field in others if field.name not in names)])
    given = run.spark.createDataFrame(rows.select(["row", "payload"]))
    made = F.from_json("row", schema).alias("r")
    return given.select(made, F.col("payload").alias(model.PAYLOAD)).select("r.*", model.PAYLOAD)


def conditions(part: Round, left: Set[Place]) -> Iterator[str]:
    """Yield SQL conditions for the rows of a round, without unreadable rows that stay.

    Moments identify the batches, because a later batch may have rejected rows of the same records.
    Unreadable rows without a place always stay.
    """
    named = [f"({' OR '.join(some)}){_but(left)}" for some in _portions(list(_ranges(part)))]
    nameless = [f"({_NAMELESS}) AND rule <> '{UNREADABLE}'"]
    for moments in _portions(part.moments):
        times = ", ".join(f"arrow_cast({moment}, '{_MOMENT}')" for moment in moments)
        for which in named or nameless:
            yield f"flow = {_quoted(part.flow)} AND {QUARANTINED_AT} IN ({times}) AND ({which})"


def _ranges(part: Round) -> Iterator[str]:
    for one in part.spans:
        yield (
            f'(topic = {_quoted(one.topic)} AND "partition" = {one.partition}'
            f' AND "offset" BETWEEN {one.first} AND {one.end - 1})'
        )


def _but(left: Set[Place]) -> str:
    """Return the condition that excludes the unreadable rows of some records."""
    offsets: dict[tuple[str, int], list[str]] = {}
    for topic, partition, offset in sorted(left):
        offsets.setdefault((topic, partition), []).append(str(offset))
    places = " OR ".join(
        f'(topic = {_quoted(topic)} AND "partition" = {partition}'
        f' AND "offset" IN ({", ".join(some)}))'
        for (topic, partition), some in offsets.items()
    )
    return f" AND NOT (rule = '{UNREADABLE}' AND ({places}))" if places else ""


def _portions(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Split items into portions that fit into one condition."""
    return (items[at : at + _PER_DELETE] for at in range(0, len(items), _PER_DELETE))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
