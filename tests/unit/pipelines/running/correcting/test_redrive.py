"""Rows that a redrive removes from quarantine."""

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.quarantine import QUARANTINE_SCHEMA, UNREADABLE
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.correcting.redrive import Decided, Journal, conditions
from headrace.pipelines.running.correcting.redrive_rounds import Round
from headrace.spark.side_output import Span
from tests.builders.lakes import written

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
LATER = NOW + dt.timedelta(seconds=1)
MOMENT = int(NOW.timestamp()) * 1_000_000


def refused(offset: int | None, **more: Any) -> dict[str, Any]:
    """A row of quarantine; without an offset it has no place."""
    place = ("it's", 0, offset) if offset is not None else (None, None, None)
    named = dict(zip(("topic", "partition", "offset"), place, strict=True))
    row = {"quarantined_at": NOW, "flow": "o", "rule": "dear", **named, **more}
    return {name: row.get(name) for name in QUARANTINE_SCHEMA.names}


OWN = [refused(offset) for offset in (0, 1, 3)]
UNREAD = [refused(offset, rule=UNREADABLE) for offset in (1, 2)]
NAMELESS = refused(None)
OTHERS = [
    refused(3, quarantined_at=LATER),
    refused(3, flow="another"),
    refused(5),
    refused(None, rule=UNREADABLE),
]


@pytest.mark.parametrize(
    ("spans", "left", "stays"),
    [
        pytest.param((0, 4), set(), [NAMELESS], id="all records"),
        pytest.param((0, 4), {("it's", 0, 2)}, [NAMELESS, UNREAD[1]], id="an unreadable one stays"),
        pytest.param((1, 3), set(), [NAMELESS, OWN[0], OWN[2]], id="some offsets"),
        pytest.param(None, set(), [*OWN, *UNREAD], id="no place"),
    ],
)
def test_the_rows_of_a_round_are_removed_and_no_others(
    spans: tuple[int, int] | None,
    left: set[tuple[str, int, int]],
    stays: list[dict[str, Any]],
    tmp_path: Path,
) -> None:
    quarantine = Lake(tmp_path).create("quarantine.o", QUARANTINE_SCHEMA)
    quarantine.append(written(quarantine, [*OWN, *UNREAD, NAMELESS, *OTHERS]))
    found = () if spans is None else (Span("it's", 0, *spans), Span("it's", 1, *spans))
    for condition in conditions(Round("o", 0, (MOMENT,), found), left):
        quarantine.delete(condition)
    rows = quarantine.rows().to_pylist()
    assert Counter(map(key, rows)) == Counter(map(key, [*stays, *OTHERS]))


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["quarantined_at"], row["flow"], row["offset"], row["rule"]


ROUNDS = [Round("o", 0, (7,), (Span("a", 0, 3, 5),)), Round("o", 1, (8,), ())]
DECIDED = Decided(("offset = 3",), {"no bytes": 2})


def test_a_note_is_found_as_it_was_written(tmp_path: Path) -> None:
    note = Journal.begun(tmp_path / "note", list(ROUNDS))
    note.decide(DECIDED)
    assert Journal.found(tmp_path / "note") == note


def test_the_next_round_starts_undecided(tmp_path: Path) -> None:
    note = Journal.begun(tmp_path / "note", list(ROUNDS))
    note.decide(DECIDED)
    note.end_round()
    assert Journal.found(tmp_path / "note") == Journal(tmp_path / "note", note.id, ROUNDS[1:])


def test_the_last_round_removes_the_note(tmp_path: Path) -> None:
    Journal.begun(tmp_path / "note", ROUNDS[1:]).end_round()
    assert not (tmp_path / "note").exists()


def test_a_redrive_without_rounds_writes_no_note(tmp_path: Path) -> None:
    Journal.begun(tmp_path / "note", [])
    assert Journal.found(tmp_path / "note") is None


def test_each_round_has_its_own_token() -> None:
    tokens = [Journal(Path("note"), "id", [part]).token for part in ROUNDS]
    assert tokens == [Token("redrive/id/o", 0), Token("redrive/id/o", 1)]


def test_a_note_of_an_older_version_is_rejected(tmp_path: Path) -> None:
    """Its batches have other tokens, so rows that it stored would be stored twice."""
    old = {"id": "id", "rounds": [["o", 0, [7], None, [7]]], "plans": {}}
    (tmp_path / "note").write_text(json.dumps(old))
    with pytest.raises(PipelineError, match="older version"):
        Journal.found(tmp_path / "note")
