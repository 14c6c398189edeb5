"""A served lake in a folder of the test's."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders.lake_services import ServedLake


@pytest.fixture
def make_served(tmp_path: Path) -> Iterator[Callable[..., ServedLake]]:
    made: list[ServedLake] = []

    def make(**settings: Any) -> ServedLake:
        made.append(ServedLake(tmp_path / "lake", **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def served(make_served: Callable[..., ServedLake]) -> ServedLake:
    return make_served()
