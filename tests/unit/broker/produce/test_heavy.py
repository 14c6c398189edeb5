"""Heavy batches are validated a few at a time, and a refusal is a result."""

import asyncio
from collections.abc import Callable
from typing import Any

from headrace.broker.produce.heavy import HeavyValidation
from headrace.errors import InvalidRecord
from headrace.storage.config import LogConfig
from headrace.storage.validation import CheckedBatch, is_heavy
from tests.builders.logs import NOW, batch_of

COMPACTED = LogConfig(cleanup_policy=frozenset(("compact",)))


class Threads:
    """Counts the functions that run at the same time."""

    def __init__(self) -> None:
        self.running = self.running_max = 0

    async def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.running += 1
        self.running_max = max(self.running, self.running_max)
        await asyncio.sleep(0)
        self.running -= 1
        return function(*arguments)


def test_many_batches_take_turns() -> None:
    async def scenario() -> Threads:
        threads = Threads()
        validation = HeavyValidation(threads)
        records = [batch_of(b"value") for _ in range(10)]
        checked = await asyncio.gather(
            *(validation.validate(one, COMPACTED, NOW) for one in records)
        )
        assert all(isinstance(one, CheckedBatch) for one in checked)
        return threads

    assert asyncio.run(scenario()).running_max == 2


def test_a_refused_batch_gets_its_error() -> None:
    async def scenario() -> object:
        return await HeavyValidation(Threads()).validate(batch_of(b"value")[:-1], COMPACTED, NOW)

    assert isinstance(asyncio.run(scenario()), InvalidRecord)


def test_size_and_count_make_a_batch_heavy() -> None:
    assert not is_heavy(batch_of(b"value"))
    assert not is_heavy(memoryview(b"no header"))
    assert is_heavy(batch_of(b"x" * 70_000))
    assert is_heavy(batch_of(*[b""] * 1_001))
