"""What a broker must tell the controller, told again until it is heard.

Kafka's brokers repeat AssignReplicasToDirs and the news of a failed directory in their heartbeats.
Here the controller is in the same process and refuses only when its disk is full or the
registration is not through yet; a report that was dropped then would leave the metadata wrong for
as long as the node runs. A disk may be full for days, so the attempts never end; the waits between
them grow to a few seconds and no further.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from headrace.controller.decision import Decide
from headrace.errors import KafkaError

_log = logging.getLogger(__name__)

_FIRST_WAIT_S = 0.1
_WAIT_S_MAX = 10.0

T = TypeVar("T")


async def report(
    submit: Callable[[Decide[T]], Awaitable[T]],
    decide: Decide[T],
    name: str,
    wait: Callable[[float], Awaitable[None]],
) -> None:
    """Have a decision carried out, however often it is refused.

    It is decided anew on the image of each attempt, so news that came meanwhile counts.
    """
    for attempt, pause_s in enumerate(waits()):
        try:
            await submit(decide)
        except KafkaError as error:
            if not attempt:
                _log.warning("the %s was refused and is told again: %s", name, error)
        else:
            return
        await wait(pause_s)


def waits() -> Iterator[float]:
    """How long to wait after each refusal, in seconds."""
    pause_s = _FIRST_WAIT_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 2, _WAIT_S_MAX)
