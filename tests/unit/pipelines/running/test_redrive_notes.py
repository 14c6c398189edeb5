"""What the next call finds of a redrive that was cut off."""

import json
from pathlib import Path

from headrace.lake.commits import Token
from headrace.pipelines.running.redrive_fates import Plan
from headrace.pipelines.running.redrive_notes import Note
from headrace.pipelines.running.redrive_rounds import Round
from headrace.spark.refuge import Span

ROUNDS = [
    Round("o", 0, (7,), (Span("a", 0, 3, 5),), (6, 7)),
    Round("o", 1, (8,), (), ()),
]
PLAN = Plan(lost=frozenset({("a", 0, 3)}))


def test_a_note_is_found_as_it_was_written(tmp_path: Path) -> None:
    note = Note.begun(tmp_path / "note", list(ROUNDS))
    note.plans["o"] = PLAN
    note.write()
    assert Note.found(tmp_path / "note") == note


def test_the_next_round_has_a_plan_of_its_own(tmp_path: Path) -> None:
    note = Note.begun(tmp_path / "note", list(ROUNDS))
    note.plans["o"] = PLAN
    note.end_round()
    assert Note.found(tmp_path / "note") == Note(tmp_path / "note", note.id, ROUNDS[1:])


def test_behind_the_last_round_there_is_no_note(tmp_path: Path) -> None:
    Note.begun(tmp_path / "note", ROUNDS[1:]).end_round()
    assert not (tmp_path / "note").exists()


def test_a_redrive_of_nothing_leaves_no_note(tmp_path: Path) -> None:
    Note.begun(tmp_path / "note", [])
    assert Note.found(tmp_path / "note") is None


def test_no_two_batches_of_a_flow_have_one_name() -> None:
    note = Note(Path("note"), "id", [])
    tokens = [token for part in ROUNDS for token in note.tokens(part)]
    assert tokens == [Token("redrive/id/o", batch) for batch in range(4)]


def test_a_note_of_an_older_version_is_finished_as_it_was_begun(tmp_path: Path) -> None:
    """All rows of a flow at once, under the names that its table may know already."""
    old = {"id": "id", "moments": {"o": [7, 8], "p": [7]}, "plans": {"o": PLAN.to_json()}}
    (tmp_path / "note").write_text(json.dumps(old))
    note = Note.found(tmp_path / "note")
    rounds = [Round("o", 0, (7, 8), None, (7, 8)), Round("p", 0, (7,), None, (7,))]
    assert note == Note(tmp_path / "note", "id", rounds, {"o": PLAN})
    assert note.tokens(rounds[1]) == (Token("redrive/id/p", 0), Token("redrive/id/p", 1))
    note.write()
    assert Note.found(tmp_path / "note") == note


def test_a_note_of_an_older_version_that_has_no_rows_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "note").write_text(json.dumps({"id": "id", "moments": {}, "plans": {}}))
    assert Note.found(tmp_path / "note") is None
