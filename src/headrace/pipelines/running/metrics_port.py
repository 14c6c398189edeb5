"""The metrics port of a run: how its pipelines stood a moment ago, for Prometheus.

It has a thread of its own, and reads what the run has last written down: who asks often, or reads
slowly, keeps no batch waiting, and Spark hears nothing of it.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from headrace.errors import HeadraceError
from headrace.pipelines import metrics
from headrace.pipelines.status import PipelineStatus
from headrace.runtime.exposition import Family
from headrace.runtime.observability import Observability
from headrace.runtime.process import process_families
from headrace.runtime.supervision import CANNOT_LISTEN

Statuses = Callable[[], Sequence[PipelineStatus]]
Result = TypeVar("Result")

_ANSWER_S_MAX = 10.0
"""How long opening and closing the port may take."""


class CannotListen(HeadraceError):
    """The address is taken, or not this machine's."""

    exit_code = CANNOT_LISTEN


@contextmanager
def serving(host: str, port: int, statuses: Statuses) -> Iterator[str]:
    """Answer until the block is left; gives the address of the page."""
    server = Observability(
        metrics=lambda: _families(statuses()),
        health=lambda: metrics.health(statuses()),
        ready=lambda: metrics.readiness(statuses()),
    )
    with _loop() as run:
        try:
            bound_host, bound_port = run(server.start(host, port))
        except OSError as error:
            raise CannotListen(
                f"cannot listen on {host}:{port}: {error.strerror or error}; choose another port"
                " with --metrics"
            ) from error
        try:
            shown = f"[{bound_host}]" if ":" in bound_host else bound_host
            yield f"http://{shown}:{bound_port}/metrics"
        finally:
            run(server.stop())


def _families(statuses: Sequence[PipelineStatus]) -> Iterator[Family]:
    yield from metrics.families(statuses)
    yield from process_families()


@contextmanager
def _loop() -> Iterator[Callable[[Coroutine[Any, Any, Result]], Result]]:
    """An event loop in a thread; what is given runs there, and its result comes back."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="metrics port", daemon=True)
    thread.start()
    try:
        yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(_ANSWER_S_MAX)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_ANSWER_S_MAX)
        loop.close()
