"""Errors of running pipelines, each with the advice to correct it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from headrace.errors import HeadraceError
from headrace.pipelines.problems import PipelineError


class ExpectationFailed(PipelineError):
    """Rows broke an expectation that fails the flow; the batch was not written."""


class PromotionRefused(PipelineError):
    """Too many rows of a batch were rejected, so its zone rejects the whole batch."""


class PipelineRuns(PipelineError):
    """Another process runs the pipeline."""


class StateDisagrees(PipelineError):
    """A flow's checkpoint and its table disagree: going on would lose or repeat rows."""


class FlowsFailed(PipelineError):
    """Flows ended with errors; the message has each of them."""

    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__("\n".join(failures))
        self.failures = tuple(failures)


def errors_of_spark() -> tuple[type[Exception], ...]:
    """Return the errors of a Spark that refuses, or that has ended."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, OSError


def expected_errors() -> tuple[type[Exception], ...]:
    """Return the errors that may end a query: those of headrace, and those of Spark."""
    return HeadraceError, *errors_of_spark()


@contextmanager
def spark_ended_with_us(is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Ignore Spark's errors during a stop: the same signal may have ended Spark."""
    try:
        yield
    except errors_of_spark():
        if not is_stopped():
            raise
