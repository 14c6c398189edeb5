"""Two files of a real access log, line by line, or in a loop as current traffic.

    python -m examples.pipelines.access_logs.generate
    python -m examples.pipelines.access_logs.generate --per-second 50

A record's key is the file and the number of its line, so a repeated line is recognised.
"""

import datetime as dt
import itertools
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from examples.pipelines.feeding import Record, main

TOPIC = "access-log"
TOPICS = (TOPIC,)
DATA = Path(__file__).parent / "data"

LINE = re.compile(
    r'(?P<ip>\S+) - - \[[^]]+\] "(?P<method>[A-Z]+) (?P<path>\S+) HTTP/1.1"'
    r' (?P<status>\d+) (?P<size>\d+) "-" "(?P<agent>[^"]*)"'
)
CHANNELS = ("ISS/position", "bbt_raspi/memory", "bbt_raspi/eth0", "Hamra/statusHamra6")
AGENTS = ("curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0")
FAILURES = ("400", "401", "404", "404", "429", "500", "503")
VARIED = 0.3
"""The share of varied lines; the others differ from the files in their time only."""
MALFORMED = (
    "",
    "-- log rotated --",
    '::ffff:54.221.205.80 - - [32/Mar/2018:23:07:31 +0000] "POST / HTTP/1.1" 200 4 "-" "curl"',
    '::ffff:54.221.205.80 - - [01/Mar/2018:23:07:31 +0000] "POST /v1/data/pub',
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)


def records() -> Iterator[Record]:
    """Yield the lines of both files."""
    for path in sorted(DATA.glob("*.txt")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            yield Record(TOPIC, f"{path.name}:{number}", line)


def traffic(
    seed: int = 1, now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)
) -> Iterator[Record]:
    """Yield the files' lines in a loop: some varied, some malformed, some repeated."""
    chance = random.Random(seed)
    run = now().strftime("%Y%m%dT%H%M%S")
    previous: Record | None = None
    for number, real in enumerate(itertools.cycle(records()), start=1):
        if previous is not None and chance.random() < 0.01:
            yield previous
        is_malformed = chance.random() < 0.01
        value = chance.choice(MALFORMED) if is_malformed else _again(real.value, now(), chance)
        previous = Record(TOPIC, f"web-{run}.log:{number}", value)
        yield previous


def _again(line: str, now: dt.datetime, chance: random.Random) -> str:
    """Return a line of the files with the current time."""
    found = LINE.fullmatch(line)
    assert found is not None, "the files have such lines only"
    parts = found.groupdict()
    if chance.random() < VARIED:
        parts |= chance.choice((_visitor, _reading, _failure, _elsewhere))(parts, chance)
    return (
        f"{parts['ip']} - - [{now:%d/%b/%Y:%H:%M:%S %z}]"
        f' "{parts["method"]} {parts["path"]} HTTP/1.1" {parts["status"]} {parts["size"]}'
        f' "-" "{parts["agent"]}"'
    )


def _visitor(parts: dict[str, str], chance: random.Random) -> dict[str, str]:
    """Return the same request by another client."""
    address = f"::ffff:203.0.113.{chance.randrange(1, 255)}"
    return {"ip": address, "agent": chance.choice(AGENTS)}


def _reading(parts: dict[str, str], chance: random.Random) -> dict[str, str]:
    """Return a read of the path that was written."""
    path = re.sub("/(publish|write)/", "/read/", parts["path"])
    return {"method": "GET", "path": path, "size": str(chance.randrange(20, 400))}


def _failure(parts: dict[str, str], chance: random.Random) -> dict[str, str]:
    return {"status": chance.choice(FAILURES), "size": str(chance.randrange(20, 400))}


def _elsewhere(parts: dict[str, str], chance: random.Random) -> dict[str, str]:
    """Return the same request for another channel."""
    start = "/".join(parts["path"].split("/")[:4])
    return {"path": f"{start}/{chance.choice(CHANNELS)}"}


if __name__ == "__main__":
    main(TOPICS, records, traffic)
