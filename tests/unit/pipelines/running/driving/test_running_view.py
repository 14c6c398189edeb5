"""Views that are computed while their pipeline runs."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

from headrace.pipelines.running.driving.running_view import RunningView


def test_a_view_that_finds_no_room_has_failed_and_ends_nothing(tmp_path: Path) -> None:
    def refresh() -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "report.json")

    state = SimpleNamespace(spark_log=tmp_path / "spark.log")
    view = SimpleNamespace(name="refined.n", refresh=refresh, run=SimpleNamespace(state=state))
    running = RunningView(cast(Any, view), cast(Any, None))
    assert not running.refresh()
    assert running.failure is not None
    assert "make room" in running.failure
