"""Questions asked together: each has its own answer, whatever becomes of the others."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from headrace.serving.gathering import TOGETHER_MAX, Gathering
from tests.nodes import eventually

Together = Callable[[Sequence[int]], list[int] | None]


def doubled(values: Sequence[int]) -> list[int] | None:
    return [2 * value for value in values]


class Questions:
    """Threads that ask; the first is held back until the others wait for it."""

    def __init__(self) -> None:
        self.gathering: Gathering[int, int] = Gathering()
        self.together: Together = doubled
        self.asked: list[list[int]] = []
        self.held = threading.Event()
        self._threads = ThreadPoolExecutor(20)

    def ask(self, value: int, seconds: float = 30) -> Future[int]:
        return self._threads.submit(
            self.gathering.ask,
            value,
            alone=lambda: self._alone(value),
            together=self._for_all,
            seconds=seconds,
        )

    def ask_at_once(self, *values: int) -> list[Future[int]]:
        """The first alone, and the others while it asks."""
        futures = [self.ask(values[0])]
        eventually(lambda: self.asked == [[values[0]]])
        for value in values[1:]:
            waiting = self.gathering.waiting + 1
            futures.append(self.ask(value))
            eventually(lambda: self.gathering.waiting, expect=waiting.__eq__)
        return futures

    def close(self) -> None:
        self.held.set()
        self._threads.shutdown()

    def _alone(self, value: int) -> int:
        self.asked.append([value])
        assert self.held.wait(30)
        return 2 * value

    def _for_all(self, values: Sequence[int]) -> list[int] | None:
        self.asked.append(list(values))
        return self.together(values)


@pytest.fixture
def questions() -> Iterator[Questions]:
    questions = Questions()
    yield questions
    questions.close()


def answers(futures: Sequence[Future[int]]) -> list[int]:
    return [future.result(30) for future in futures]


def test_who_comes_while_one_asks_is_asked_for_together_with_the_others(
    questions: Questions,
) -> None:
    futures = questions.ask_at_once(1, 2, 3, 4)
    questions.held.set()
    assert answers(futures) == [2, 4, 6, 8]
    assert questions.asked == [[1], [2, 3, 4]]
    assert answers([questions.ask(5)]) == [10]
    assert questions.asked[-1] == [5]


def test_so_many_are_asked_for_at_once_and_no_more(questions: Questions) -> None:
    futures = questions.ask_at_once(*range(TOGETHER_MAX + 3))
    questions.held.set()
    assert answers(futures) == [2 * one for one in range(TOGETHER_MAX + 3)]
    assert [len(group) for group in questions.asked] == [1, TOGETHER_MAX, 2]


def test_what_goes_wrong_together_is_asked_alone(questions: Questions) -> None:
    questions.together = lambda _: None
    futures = questions.ask_at_once(1, 2, 3)
    questions.held.set()
    assert answers(futures) == [2, 4, 6]
    assert sorted(map(len, questions.asked)) == [1, 1, 1, 2]


def test_who_asks_for_all_may_fail_and_the_others_are_answered(questions: Questions) -> None:
    def stopped(_: Sequence[int]) -> list[int]:
        raise TimeoutError("stopped")

    questions.together = stopped
    first, leading, *others = questions.ask_at_once(1, 2, 3, 4)
    questions.held.set()
    assert answers([first, *others]) == [2, 6, 8]
    with pytest.raises(TimeoutError, match="stopped"):
        leading.result(30)
    assert answers([questions.ask(5)]) == [10]


def test_who_has_waited_too_long_asks_alone_and_holds_nobody_up(questions: Questions) -> None:
    (first,) = questions.ask_at_once(1)
    late = questions.ask(2, seconds=0)
    eventually(lambda: questions.asked == [[1], [2]])
    assert questions.gathering.waiting == 0
    questions.held.set()
    assert answers([first, late, questions.ask(3)]) == [2, 4, 6]


def test_everyone_gets_its_own_answer_however_they_come(questions: Questions) -> None:
    chance = random.Random(7)
    questions.held.set()
    questions.together = lambda values: None if chance.random() < 0.2 else doubled(values)
    values = [chance.randrange(1000) for _ in range(2000)]
    waits = [0.0 if chance.random() < 0.1 else 30.0 for _ in values]
    futures = [questions.ask(*one) for one in zip(values, waits, strict=True)]
    assert answers(futures) == [2 * value for value in values]
