"""What is written down of a redrive that is under way, so that another call can finish it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from headrace.lake.commits import Token
from headrace.pipelines.running.redrive_fates import Plan
from headrace.pipelines.running.redrive_rounds import Round
from headrace.pipelines.running.state import read_json, write_file
from headrace.runtime import files


@dataclass(slots=True)
class Note:
    """Which rounds a redrive has before it, under which name, and what was decided of the first's.

    It is written before the rows are: after a crash the next call finishes the same rows, each
    once, also if records that were read then are gone by now. Rows are known by the moments of
    their batches and not by the version that had them, whose files may be vacuumed by then. All
    of a round are there until they are written, and those that are missing are done. What was
    refused again is of a later moment, so no round has it, before a crash or after.
    """

    path: Path
    id: str
    rounds: list[Round]
    """The first is under way."""
    plans: dict[str, Plan] = field(default_factory=dict)
    """By flow; of others than that of the first round only if an older version wrote them."""

    @classmethod
    def begun(cls, path: Path, rounds: list[Round]) -> "Note":
        """A new note of these rounds."""
        note = cls(path, uuid4().hex, rounds)
        if rounds:
            note.write()
        return note

    @classmethod
    def found(cls, path: Path) -> "Note | None":
        """What an earlier call has left to do; None if that is nothing."""
        noted = read_json(path)
        rounds = _rounds(noted)
        if not rounds:
            return None
        plans = {flow: Plan.from_json(plan) for flow, plan in noted.get("plans", {}).items()}
        return cls(path, noted["id"], rounds, plans)

    def write(self) -> None:
        plans = {flow: plan.to_json() for flow, plan in self.plans.items()}
        rounds = msgspec.to_builtins(self.rounds)
        write_file(
            self.path, json.dumps({"id": self.id, "rounds": rounds, "plans": plans}).encode()
        )

    def end_round(self) -> None:
        """Go on to the next round; behind the last there is nothing to note."""
        done = self.rounds.pop(0)
        self.plans.pop(done.flow, None)
        if self.rounds:
            self.write()
        else:
            files.unlink_if_there(str(self.path))

    def tokens(self, part: Round) -> tuple[Token, Token]:
        """The names of a round's two batches: rows made anew, and those judged as they were."""
        writer = f"redrive/{self.id}/{part.flow}"
        return Token(writer, 2 * part.number), Token(writer, 2 * part.number + 1)


def _rounds(noted: dict[str, Any]) -> list[Round]:
    """The rounds in a note.

    Older versions redrove all rows of a flow at once and noted their moments alone. Such a redrive
    is finished as it was begun: what is in the table and what is not is told by these rows as one.
    """
    if "moments" not in noted:
        return msgspec.convert(noted.get("rounds", []), list[Round])
    moments = {flow: tuple(found) for flow, found in noted["moments"].items()}
    return [Round(flow, 0, found, None, found) for flow, found in moments.items()]
