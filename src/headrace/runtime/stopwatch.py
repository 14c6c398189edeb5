"""Measures how long a coroutine runs, without the time for which it waits."""

from collections.abc import Coroutine, Generator
from time import perf_counter_ns
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Stopwatch(Generic[T]):
    """An awaitable around a coroutine, which adds up the time of its steps."""

    __slots__ = ("_coroutine", "spent_ns")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self.spent_ns = 0

    def __await__(self) -> Generator[Any, Any, T]:
        step: Any = self._coroutine.send
        value: Any = None
        while True:
            began_ns = perf_counter_ns()
            try:
                awaited = step(value)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self.spent_ns += perf_counter_ns() - began_ns
            try:
                value = yield awaited
                step = self._coroutine.send
            except BaseException as error:  # Also a cancellation belongs to the coroutine.
                step, value = self._coroutine.throw, error
