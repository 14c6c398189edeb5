"""Two days of flights of three airlines, reported by several systems in no particular order.

Airlines and airports report in JSON, the tower in CSV, to a topic of its own.

python -m examples.pipelines.flight_status.generate
"""

import datetime as dt
import random
from collections.abc import Iterator

from examples.pipelines.feeding import Record, event, main

EVENTS, TOWER = "flight-events", "tower-reports"
TOPICS = (EVENTS, TOWER)
DAYS = (dt.date(2026, 3, 2), dt.date(2026, 3, 3))
AIRLINES = ("HR", "KF", "SP")
FLIGHTS = 30


def records(seed: int = 1) -> Iterator[Record]:
    """Return all reports; those of the last hour before a flight are shuffled."""
    chance = random.Random(seed)
    reports = [
        report
        for day in DAYS
        for airline in AIRLINES
        for number in range(101, 101 + FLIGHTS)
        for report in _reports(chance, f"{airline} {number}", day)
    ]
    chance.shuffle(reports)
    yield from reports


def _reports(chance: random.Random, flight: str, day: dt.date) -> Iterator[Record]:
    midnight = dt.datetime.combine(day, dt.time(), dt.UTC)
    scheduled = midnight + dt.timedelta(minutes=chance.randrange(6 * 60, 23 * 60))
    expected, gate = scheduled, f"{chance.choice('ABC')}{chance.randrange(1, 20)}"
    yield _report(flight, day, "scheduled", gate, scheduled, expected, midnight)
    for step in range(chance.randrange(4)):
        expected += dt.timedelta(minutes=max(0, round(chance.gauss(4, 12))))
        reported = scheduled - dt.timedelta(minutes=60 - 10 * step)
        is_of_tower = step == 2  # The tower reports the delay of a waiting flight last.
        report = _tower_report if is_of_tower else _report
        yield report(flight, day, "delayed", gate, scheduled, expected, reported)
    fate = chance.random()
    if fate < 0.04:
        yield _report(flight, day, "cancelled", gate, scheduled, expected, scheduled)
    elif fate < 0.06:
        yield _report(flight, day, "withdrawn", gate, scheduled, expected, scheduled)


def _report(
    flight: str,
    day: dt.date,
    status: str,
    gate: str,
    scheduled: dt.datetime,
    expected: dt.datetime,
    reported: dt.datetime,
) -> Record:
    return event(
        EVENTS,
        flight,
        flight=flight,
        day=day.isoformat(),
        status=status,
        gate=gate,
        scheduled_at=scheduled.isoformat(),
        expected_at=expected.isoformat(),
        reported_at=reported.isoformat(),
    )


def _tower_report(flight: str, day: dt.date, *fields: str | dt.datetime) -> Record:
    texts = [field if isinstance(field, str) else field.isoformat() for field in fields]
    return Record(TOWER, flight, ",".join([flight, day.isoformat(), *texts]))


if __name__ == "__main__":
    main(TOPICS, records)
