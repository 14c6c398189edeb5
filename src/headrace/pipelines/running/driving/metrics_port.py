"""The metrics port of a run, for Prometheus.

It has its own thread and reads the last written status: frequent or slow clients delay no batch and
cause no calls to Spark.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from headrace.errors import CannotListen
from headrace.pipelines import metrics
from headrace.pipelines.status import PipelineStatus
from headrace.runtime.addresses import address_text
from headrace.runtime.exposition import Family
from headrace.runtime.observability import Observability
from headrace.runtime.process import process_families

Statuses = Callable[[], Sequence[PipelineStatus]]
Result = TypeVar("Result")

_ANSWER_S_MAX = 10.0
"""The time limit of opening and closing the port."""


@contextmanager
def serving(host: str, port: int, statuses: Statuses) -> Iterator[str]:
    """Serve within the block; yields the address of the page."""
    server = Observability(
        metrics=lambda: _families(statuses()),
        health=lambda: metrics.health(statuses()),
        ready=lambda: metrics.readiness(statuses()),
    )
    with _loop() as run:
        try:
            bound_host, bound_port = run(server.start(host, port))
        except OSError as error:
            advice = "choose another port with --metrics"
            raise CannotListen(f"{host}:{port}", error, advice=advice) from error
        try:
            yield f"http://{address_text(bound_host, bound_port)}/metrics"
        finally:
            run(server.stop())


def _families(statuses: Sequence[PipelineStatus]) -> Iterator[Family]:
    yield from metrics.families(statuses)
    yield from process_families()


@contextmanager
def _loop() -> Iterator[Callable[[Coroutine[Any, Any, Result]], Result]]:
    """Run an event loop in a thread; yields a function that runs a coroutine there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="metrics port", daemon=True)
    thread.start()
    try:
        yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(_ANSWER_S_MAX)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_ANSWER_S_MAX)
        loop.close()
