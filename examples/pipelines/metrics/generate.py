"""Reports of services about their requests, some duplicate, some invalid.

The key of a record is the request, so a duplicate is recognised.

    python -m examples.pipelines.metrics.generate
"""

import datetime as dt
import random
from collections.abc import Iterator

from examples.pipelines.feeding import Record, event, main

TOPIC = "requests"
TOPICS = (TOPIC,)
START = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)
FAILURES = {"checkout": 0.01, "search": 0.06, "catalog": 0.005}
REQUESTS = 1500


def records(seed: int = 3) -> Iterator[Record]:
    chance = random.Random(seed)
    for number in range(REQUESTS):
        service = chance.choice(sorted(FAILURES))
        request = event(
            TOPIC,
            f"r-{number}",
            request_id=f"r-{number}",
            service=service,
            status=503 if chance.random() < FAILURES[service] else 200,
            took_ms=-1 if chance.random() < 0.01 else round(chance.expovariate(1 / 80)),
            ended_at=(START + dt.timedelta(seconds=number // 5)).isoformat(),
        )
        yield request
        if chance.random() < 0.04:
            yield request


if __name__ == "__main__":
    main(TOPICS, records)
