"""What can go wrong while a pipeline runs, in words that say what to do."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from headrace.errors import HeadraceError
from headrace.pipelines.problems import PipelineError


class ExpectationFailed(PipelineError):
    """Rows broke an expectation whose violation fails the flow; nothing of the batch was kept."""


class PromotionRefused(PipelineError):
    """So many rows of a batch were refused that its zone takes none of it."""


class PipelineRuns(PipelineError):
    """A pipeline is run by another process already."""


class StateDisagrees(PipelineError):
    """A flow's checkpoint and its table tell different stories: going on would lose or repeat."""


class FlowsFailed(PipelineError):
    """Flows ended with errors; the message has each of them."""

    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__("\n".join(failures))
        self.failures = tuple(failures)


def errors_of_spark() -> tuple[type[Exception], ...]:
    """What is raised by a Spark that refuses, or that is not there any more."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, OSError


def expected_errors() -> tuple[type[Exception], ...]:
    """What a query may fail by: ours, told by whatever it reads or writes, and Spark's."""
    return HeadraceError, *errors_of_spark()


@contextmanager
def spark_ended_with_us(is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Take no error of Spark for one when we are to stop: the same signal may have ended it."""
    try:
        yield
    except errors_of_spark():
        if not is_stopped():
            raise
