"""The files of a pipeline next to its tables: lock, checkpoints and status.

    <lake>/_headrace/pipelines/<pipeline>/
        lock                            held by the process that runs it
        status.json                     its status, for `headrace pipelines status`
        stop                            exists after a request to stop
        spark.log                       Spark's output, with its traces
        switches.json                   the ways back from replays, the numbers in use, and the
                                        tables under construction for another architecture
        flows/<flow>/g<generation>/     identity, checkpoint/, starts/, report.json

A flow has one folder per generation of its table: a replay builds the next generation next to the
running one. Only the lake's catalog decides which of them is current.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from headrace.lake.errors import WriteFailed
from headrace.pipelines.model import Pipeline
from headrace.pipelines.running.errors import PipelineRuns, StateDisagrees
from headrace.pipelines.status import PipelineStatus
from headrace.runtime import files
from headrace.spark import checkpoints

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True, slots=True)
class FlowState:
    """The folder of one flow and generation."""

    directory: Path

    @property
    def generation(self) -> int:
        return int(self.directory.name[1:])

    @property
    def checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    @property
    def starts(self) -> Path:
        """The folder with the Kafka source's starting offsets."""
        return self.directory / "starts"

    @property
    def report(self) -> Path:
        return self.directory / "report.json"

    def start_after(self, versions: Mapping[str, int]) -> None:
        """Set the versions of tables after which the flow begins."""
        write_file(self.directory / "start_after.json", json.dumps(dict(versions)).encode())

    def started_after(self) -> dict[str, int]:
        return read_json(self.directory / "start_after.json")

    @property
    def is_known(self) -> bool:
        """Return whether the flow was ever prepared to run."""
        return (self.directory / "identity").exists()

    def writer(self) -> str:
        """Return the name of this checkpoint's batches in the tables' logs.

        It is created once per checkpoint: a new checkpoint repeats the batch numbers of a removed
        one and needs another name.
        """
        path = self.directory / "identity"
        if not path.exists():
            write_file(path, uuid4().hex.encode())
        return path.read_text()

    def started_at(self) -> dict[str, dict[str, int]]:
        """Return the first offsets of the flow's topics.

        Each source of a flow keeps its own; for a topic of two sources the earlier offset counts.
        """
        found: dict[str, dict[str, int]] = {}
        for path in sorted(self.starts.glob("*/starts.json")):
            for topic, partitions in read_json(path).get("offsets", {}).items():
                known = found.setdefault(topic, {})
                for partition, offset in partitions.items():
                    known[partition] = min(int(offset), known.get(partition, int(offset)))
        return found

    def check(self, flow: str, table: str, written: int | None) -> None:
        """Compare the checkpoint with the last batch of this flow in the table.

        A batch is in the table before it is in the checkpoint, so the table may be one ahead.
        """
        committed = checkpoints.newest_commit(self.checkpoint)
        last = -1 if written is None else written
        advice = (
            f" Rebuild {table} with `headrace pipelines replay FOLDER`, or restore the removed"
            f" part: {self.directory} and the table belong together"
        )
        is_begun_anew = checkpoints.newest_plan(self.checkpoint) < 0 <= last
        if last > committed + 1 or is_begun_anew:
            raise StateDisagrees(
                f"the checkpoint of {flow} ends at batch {committed}, but {table} has its batches"
                f" up to {last}: going on would skip rows." + advice
            )
        if last < committed:
            raise StateDisagrees(
                f"the checkpoint of {flow} is at batch {committed}, but {table} has its batches"
                f" only up to {last}: going on would lose rows." + advice
            )


@dataclass(frozen=True, slots=True)
class PipelineState:
    """The folder of one pipeline in a lake."""

    directory: Path

    @classmethod
    def of(cls, lake: Path, pipeline: str) -> "PipelineState":
        return cls(lake / "_headrace" / "pipelines" / safe_name(pipeline))

    @classmethod
    def all_of(cls, lake: Path) -> "list[PipelineState]":
        """Return the folders of all pipelines that ever ran on a lake."""
        return [cls(path) for path in sorted(lake.glob("_headrace/pipelines/*")) if path.is_dir()]

    @property
    def lake(self) -> Path:
        return self.directory.parents[2]

    @property
    def spark_log(self) -> Path:
        return self.directory / "spark.log"

    def flow(self, name: str, generation: int) -> FlowState:
        return FlowState(self.directory / "flows" / safe_name(name) / f"g{generation}")

    def flows(self) -> list[FlowState]:
        """Return the folders of all flows, except for dropped generations."""
        found = sorted(self.directory.glob("flows/*/g*"))
        return [FlowState(path) for path in found if path.name[1:].isdigit()]

    def former_flows(self, generation: int, declared: Collection[str]) -> list[FlowState]:
        """Return the folders of a generation's flows that are no longer declared."""
        kept = {safe_name(name) for name in declared}
        found = sorted(self.directory.glob(f"flows/*/g{generation}/identity"))
        return [FlowState(path.parent) for path in found if path.parts[-3] not in kept]

    @contextlib.contextmanager
    def held(self, purpose: str = "run") -> Iterator[None]:
        """Lock the pipeline for this process; the error of a second process names the first.

        The kernel releases the lock when the process ends for any reason.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / f"{purpose}.lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                process = file.read().strip() or "unknown"
                raise PipelineRuns(
                    f"{self.directory.name} is in use already ({purpose}) by process {process};"
                    f" {self._way_out(purpose, process)}"
                ) from None
            with contextlib.suppress(OSError):  # On a full disk the process id is missing.
                os.ftruncate(file.fileno(), 0)
                os.write(file.fileno(), str(os.getpid()).encode())
            yield

    def _way_out(self, purpose: str, process: str) -> str:
        """Return advice about the process that holds the pipeline; only runs can be stopped."""
        if purpose == "run":
            stop = f"`headrace pipelines stop FOLDER --lake {self.lake}`"
            return f"stop it with {stop}, or wait until it has ended"
        return f"wait until that {purpose} has ended, or end process {process}"

    def is_held(self, purpose: str = "run") -> bool:
        """Return whether a process holds the pipeline now."""
        try:
            with (self.directory / f"{purpose}.lock").open("r") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def mark_sink(self, state: FlowState) -> None:
        """Mark, outside of its folder, that a flow has sent records to a topic."""
        marks = self.directory / "sinks"
        marks.mkdir(parents=True, exist_ok=True)
        (marks / f"{state.directory.parent.name}.{state.directory.name}").touch()

    def check_sink(self, state: FlowState, flow: str, batch: int) -> None:
        """Reject a new start of a flow to a topic, whose records cannot be taken back."""
        mark = self.directory / "sinks" / f"{state.directory.parent.name}.{state.directory.name}"
        is_gone = not state.is_known or checkpoints.newest_plan(state.checkpoint) < 0 <= batch
        if mark.exists() and is_gone:
            raise StateDisagrees(
                f"the flow {flow} has sent records to its topic, but its checkpoint is gone:"
                f" {state.checkpoint}. Restore the folder {state.directory}; or rename"
                " the flow, which sends everything again"
            )

    def record_switch(self, before: Mapping[str, int]) -> None:
        """Note the generations before a switch, for the way back."""
        content = self._switches()
        content["before"] = [*content.get("before", []), dict(before)]
        self._write_switches(content)

    def last_switch(self) -> dict[str, int]:
        """Return the generations before the last switch."""
        notes = self._switches().get("before", [])
        return dict(notes[-1]) if notes else {}

    def ways_back(self) -> set[int]:
        """Return all generations that can be switched back to, one switch after the other."""
        notes = self._switches().get("before", [])
        return {generation for note in notes for generation in note.values()}

    def forget_switch(self) -> None:
        content = self._switches()
        content["before"] = content.get("before", [])[:-1]
        self._write_switches(content)

    def record_drop(self, generation: int, tables: Collection[str]) -> None:
        """Remove the ways back to dropped tables, and all ways behind them.

        Each entry has the generations before the next entry's switch, so it is valid only after a
        switch back to the next one. No generation number is used twice: a flow to a topic may have
        read tables with that number, and would mistake new tables for them.
        """
        content = self._switches()
        notes = content.get("before", [])
        shut = [any(note.get(table) == generation for table in tables) for note in notes]
        content["before"] = notes[len(shut) - shut[::-1].index(True) :] if any(shut) else notes
        content["building"] = {
            name: number
            for name, number in self.building().items()
            if (name, number) not in {(table, generation) for table in tables}
        }
        content["newest"] = max(generation, self.newest_dropped())
        self._write_switches(content)

    def building(self) -> dict[str, int]:
        """Return the tables under construction for another architecture, with their generations."""
        return dict(self._switches().get("building", {}))

    def record_building(self, generations: Mapping[str, int]) -> None:
        """Note the tables under construction until readers see them."""
        content = self._switches()
        content["building"] = dict(generations)
        self._write_switches(content)

    def newest_dropped(self) -> int:
        """Return the highest number of a dropped generation; 0 before the first drop."""
        return int(self._switches().get("newest", 0))

    def _switches(self) -> dict[str, Any]:
        return read_json(self.directory / "switches.json")

    def _write_switches(self, content: Mapping[str, Any]) -> None:
        write_file(self.directory / "switches.json", json.dumps(content).encode())

    def forget_flows(self, names: Iterable[str], generation: int) -> int:
        """Remove the checkpoints of flows of dropped tables; return the freed bytes."""
        freed = 0
        for name in names:
            directory = self.flow(name, generation).directory
            if directory.is_dir():
                freed += files.tree_size(str(directory))
                shutil.rmtree(directory)
        return freed

    def ask_to_stop(self) -> None:
        files.replace_file(str(self.directory / "stop"), b"")

    def forget_stop(self) -> None:
        files.unlink_if_there(str(self.directory / "stop"))

    def is_asked_to_stop(self) -> bool:
        return (self.directory / "stop").exists()

    def write_status(self, status: PipelineStatus) -> None:
        write_file(self.directory / "status.json", msgspec.json.encode(status), sync=False)

    def read_status(self) -> PipelineStatus | None:
        """Return the last written status; None before the first run."""
        try:
            content = (self.directory / "status.json").read_bytes()
            return msgspec.json.decode(content, type=PipelineStatus)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            return None  # Not synced, so a crash of the machine may leave half of it.


def state_of(pipeline: Pipeline) -> PipelineState:
    """Return the folder of a pipeline."""
    return PipelineState.of(Path(pipeline.settings.lake), pipeline.settings.name)


def safe_name(name: str) -> str:
    """Return the name of a pipeline's or flow's folder."""
    return _UNSAFE.sub("_", name)


def write_file(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Replace a small file; an error has advice."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace_file(str(path), content, sync=sync)
    except OSError as error:
        raise WriteFailed(
            f"{path} could not be written: {error}. No row is lost or duplicated; make room or"
            " repair the disk, and run again"
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a small file; empty if there is no file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return content if isinstance(content, dict) else {}
