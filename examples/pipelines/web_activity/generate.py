"""Page views of a shop's visitors, with probes, repeated views and views without a visitor.

python -m examples.pipelines.web_activity.generate
"""

import datetime as dt
import random
from collections.abc import Iterator

from examples.pipelines.feeding import Record, event, main

TOPIC = "page-views"
TOPICS = (TOPIC,)
START = dt.datetime(2026, 3, 2, 6, tzinfo=dt.UTC)
PAGES = {
    "/": ["/shoes", "/hats", "/sale"],
    "/shoes": ["/shoes/red", "/shoes/blue", "/cart"],
    "/shoes/red": ["/cart", "/shoes/blue", "/laces"],
    "/shoes/blue": ["/cart", "/laces", "/"],
    "/laces": ["/cart", "/"],
    "/hats": ["/hats/straw", "/", "/sale"],
    "/hats/straw": ["/cart", "/hats"],
    "/sale": ["/shoes", "/hats", "/cart"],
    "/cart": ["/", "/sale"],
}
"""The next pages of each page."""
VISITORS = 120


def records(seed: int = 2) -> Iterator[Record]:
    chance = random.Random(seed)
    for visitor in range(VISITORS):
        moment = START + dt.timedelta(minutes=chance.randrange(12 * 60))
        for _ in range(chance.randrange(1, 4)):
            yield from _visit(chance, f"v-{visitor}", moment)
            moment += dt.timedelta(hours=chance.randrange(2, 5))


def _visit(chance: random.Random, visitor: str, moment: dt.datetime) -> Iterator[Record]:
    page = "/"
    for _ in range(chance.randrange(1, 9)):
        seen = _view(chance, visitor, page, moment)
        yield seen
        luck = chance.random()
        if luck < 0.05:
            yield seen  # The browser was not sure that it arrived.
        elif luck < 0.08:
            yield _view(chance, None, page, moment)
        elif luck < 0.12:
            yield _view(chance, "probe", "/health", moment)
        page = chance.choice(PAGES[page])
        moment += dt.timedelta(seconds=chance.randrange(5, 600))


def _view(chance: random.Random, visitor: str | None, page: str, moment: dt.datetime) -> Record:
    return event(
        TOPIC,
        visitor or "nobody",
        view_id=f"{chance.getrandbits(64):016x}",
        visitor=visitor,
        page=page,
        viewed_at=moment.isoformat(),
    )


if __name__ == "__main__":
    main(TOPICS, records)
