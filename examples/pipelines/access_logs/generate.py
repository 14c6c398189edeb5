"""Two files of a real access log, line by line; or endless traffic that looks like them.

    python -m examples.pipelines.access_logs.generate
    python -m examples.pipelines.access_logs.generate --per-second 50

A record's key is the file and the number of its line, so a line that is sent again is known.
"""

import datetime as dt
import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from examples.pipelines.feeding import Record, main

TOPIC = "access-log"
TOPICS = (TOPIC,)
DATA = Path(__file__).parent / "data"

ACTIONS = ("publish", "publish", "publish", "write", "write", "read")
CHANNELS = ("ISS/position", "ISS/pos", "bbt_raspi/cpu", "bbt_raspi/disk", "Hamra/statusHamra6")
AGENTS = (
    *("python-requests/2.13.0",) * 6,
    *("beebotte node.js SDK v1.2.0",) * 2,
    "curl/8.5.0",
    "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0",
)
STATUSES = (*(200,) * 40, 201, 304, 400, 401, 404, 404, 429, 500, 503)
MALFORMED = (
    "",
    "-- log rotated --",
    '::ffff:54.221.205.80 - - [32/Mar/2018:23:07:31 +0000] "POST / HTTP/1.1" 200 4 "-" "curl"',
    '::ffff:54.221.205.80 - - [01/Mar/2018:23:07:31 +0000] "POST /v1/data/pub',
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)


def records() -> Iterator[Record]:
    """The lines of both files."""
    for path in sorted(DATA.glob("*.txt")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            yield Record(TOPIC, f"{path.name}:{number}", line)


def traffic(
    seed: int = 1, now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)
) -> Iterator[Record]:
    """Endless lines: one in a hundred is malformed, and now and then the shipper repeats one."""
    chance = random.Random(seed)
    run = now().strftime("%Y%m%dT%H%M%S")
    previous: Record | None = None
    for number in itertools.count(1):
        if previous is not None and chance.random() < 0.01:
            yield previous
        value = chance.choice(MALFORMED) if chance.random() < 0.01 else _line(chance, now())
        previous = Record(TOPIC, f"web-{run}.log:{number}", value)
        yield previous


def _line(chance: random.Random, now: dt.datetime) -> str:
    address = f"::ffff:54.{chance.choice((221, 243))}.{chance.randrange(256)}.{chance.randrange(9)}"
    action = chance.choice(ACTIONS)
    method = "GET" if action == "read" else "POST"
    status = chance.choice(STATUSES)
    size = 4 if status == 200 else chance.randrange(20, 400)
    return (
        f"{address} - - [{now:%d/%b/%Y:%H:%M:%S %z}]"
        f' "{method} /v1/data/{action}/{chance.choice(CHANNELS)} HTTP/1.1" {status} {size}'
        f' "-" "{chance.choice(AGENTS)}"'
    )


if __name__ == "__main__":
    main(TOPICS, records, traffic)
