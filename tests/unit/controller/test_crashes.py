"""A node killed at any step of its life starts again with everything it had acknowledged."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.topics import TopicResult, create_topics
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas.create_topics import CreatableTopic
from headrace.runtime import files
from tests.builders.metadata_nodes import RULES, FixedClock, formatted, started

STEPS = ("pwrite", "fsync", "replace", "rename", "unlink", "ftruncate")


class Crashes:
    """Copies of a directory as it was before each step, with what clients knew by then."""

    def __init__(self, directory: Path, copies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.copies = copies
        self.acknowledged: list[str] = []
        self.taken: list[tuple[Path, list[str]]] = []
        for name in STEPS:
            monkeypatch.setattr(files, name, self._recording(getattr(files, name)))

    def _recording(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def record(*args: Any) -> Any:
            if (self.directory / "meta.properties").exists():
                copy = self.copies / str(len(self.taken))
                shutil.copytree(self.directory, copy)
                self.taken.append((copy, list(self.acknowledged)))
            return step(*args)

        return record


async def live(directory: Path, crashes: Crashes) -> None:
    """Start, create topics, take a snapshot, create more, stop."""
    clock = FixedClock()
    controller = await started(formatted(directory), clock=clock)
    for name in ("first", "second", "third", "fourth"):
        await controller.submit(partial(created, name=name))
        crashes.acknowledged.append(name)
        if name == "second":
            clock.now += 1_000_000_000
            await controller.maintain()
    await controller.stop(1)


def created(image: MetadataImage, *, name: str) -> Decision[list[TopicResult]]:
    topics = [CreatableTopic(name, 2, 1)]
    return create_topics(image, topics, ClusterDefaults(), RULES)


async def test_nothing_acknowledged_is_lost_in_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-11, for metadata."""
    crashes = Crashes(tmp_path / "data", tmp_path / "copies", monkeypatch)
    await live(tmp_path / "data", crashes)
    monkeypatch.undo()
    assert len(crashes.taken) > 20
    for copy, acknowledged in crashes.taken:
        controller = await started(copy)
        assert controller.image.is_active(1)
        assert set(acknowledged) <= set(controller.image.topics)
        await controller.stop(1)
