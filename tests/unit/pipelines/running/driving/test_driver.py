"""Several pipelines in one driver: what one suffers is not the others'."""

import errno
import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from headrace.lake.errors import WriteFailed
from headrace.pipelines.running.driving.driver import run_continuously
from headrace.pipelines.running.driving.runner import PipelineRunner
from headrace.runtime import files
from headrace.spark import pool_preemption
from tests.builders.pipeline_runs import Clock, standing_run


class Room:
    """The space on the disk of some folder: left or not."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_left = True
        self._folder = str(folder)
        self._replace_file = files.replace_file
        monkeypatch.setattr(files, "replace_file", self.replace_file)

    def replace_file(self, path: str, content: bytes, *, sync: bool = True) -> None:
        if path.startswith(self._folder) and not self.is_left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self._replace_file(path, content, sync=sync)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PipelineRunner]:
    """The runners of two pipelines, each with a lake of its own, in one driver."""
    monkeypatch.setattr(pool_preemption, "preemption", lambda *_: nullcontext())
    return [PipelineRunner(standing_run(tmp_path / name, name)) for name in ("shop", "bank")]


def test_a_pipeline_runs_on_with_a_full_disk_and_reports_it_once(
    two: list[PipelineRunner],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    room, shown = Room(tmp_path / "shop", monkeypatch), list[list[str]]()

    def show(runners: list[PipelineRunner]) -> None:
        shown.append([runner.status.state for runner in runners])
        room.is_left = len(shown) in (3, 4)

    room.is_left = False
    run_continuously(two, lambda: len(shown) == 6, show, Clock())
    assert shown == [["running", "running"]] * 6
    assert caplog.messages == ["pipeline status not written"] * 2
    assert all("make room" in vars(one)["error"] for one in caplog.records)
    written = [runner.run.state.read_status() for runner in two]
    assert [one.state for one in written if one is not None] == ["running", "stopped"]


def test_every_pipeline_is_ended_even_if_another_fails_to_end(
    two: list[PipelineRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(is_stopped: object) -> NoReturn:
        raise ValueError("half of a note")

    monkeypatch.setattr(two[0], "end", fail)
    with pytest.raises(ValueError, match="half of a note"):
        run_continuously(two, lambda: True, lambda runners: None, Clock())
    written = two[1].run.state.read_status()
    assert written is not None
    assert written.state == "stopped"


def test_failing_to_move_readers_on_a_full_disk_ends_no_run(
    two: list[PipelineRunner], caplog: pytest.LogCaptureFixture
) -> None:
    def complete() -> NoReturn:
        raise WriteFailed("catalog.json could not be written")

    shown: list[str] = []
    two[0].migrations = cast(Any, SimpleNamespace(views={"refined.n"}, complete=complete))
    run_continuously(two, lambda: len(shown) == 3, lambda runners: shown.append(""))
    assert caplog.messages == ["readers not switched to the new tables"]
    assert vars(caplog.records[0])["error"] == "catalog.json could not be written"
