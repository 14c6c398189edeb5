"""Several pipelines in one driver: what one suffers is not the others'."""

import errno
import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from headrace.lake.errors import WriteFailed
from headrace.pipelines.running import driver, runner
from headrace.pipelines.running.driver import run_continuously
from headrace.pipelines.running.runner import PipelineRunner
from headrace.runtime import files
from headrace.spark import fair_shares
from tests.standing_runs import Clock, standing_run


class Room:
    """Whether there is any on the disk of some folder."""

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
    clock = Clock()
    for module in (driver, runner):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(fair_shares, "kept", lambda *_: nullcontext())
    return [PipelineRunner(standing_run(tmp_path / name, name)) for name in ("shop", "bank")]


def test_a_pipeline_whose_disk_is_full_runs_on_and_says_so_once_until_there_is_room(
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
    run_continuously(two, lambda: len(shown) == 6, show)
    assert shown == [["running", "running"]] * 6
    assert [one.message.partition(":")[0] for one in caplog.records] == [
        "how shop stands is not written down"
    ] * 2
    assert "make room" in caplog.text
    written = [runner.run.state.read_status() for runner in two]
    assert [one.state for one in written if one is not None] == ["running", "stopped"]


def test_every_pipeline_is_ended_whatever_the_end_of_another_raises(
    two: list[PipelineRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(is_stopped: object) -> NoReturn:
        raise ValueError("half of a note")

    monkeypatch.setattr(two[0], "end", fail)
    with pytest.raises(ValueError, match="half of a note"):
        run_continuously(two, lambda: True, lambda runners: None)
    written = two[1].run.state.read_status()
    assert written is not None
    assert written.state == "stopped"


def test_readers_who_cannot_be_moved_for_want_of_room_end_nothing(
    two: list[PipelineRunner], caplog: pytest.LogCaptureFixture
) -> None:
    def settle() -> NoReturn:
        raise WriteFailed("catalog.json could not be written")

    shown: list[str] = []
    two[0].moving = cast(Any, SimpleNamespace(views={"refined.n"}, settle=settle))
    run_continuously(two, lambda: len(shown) == 3, lambda runners: shown.append(""))
    (told,) = caplog.messages
    assert told.startswith("readers of shop stay with the tables of before: catalog.json")
