"""Readings of sensors in a greenhouse, as CSV; one sensor was offline and sends an hour late.

python -m examples.pipelines.iot_sensors.generate
"""

import datetime as dt
import random
from collections.abc import Iterator

from examples.pipelines.feeding import Record, main

TOPIC = "sensor-readings"
TOPICS = (TOPIC,)
START = dt.datetime(2026, 3, 2, 14, tzinfo=dt.UTC)
SENSORS = tuple(f"bed-{number}" for number in range(1, 7))
OFFLINE = "bed-3"
MINUTES = 60


def records(seed: int = 13) -> Iterator[Record]:
    chance = random.Random(seed)
    late = []
    for minute in range(MINUTES):
        for sensor in SENSORS:
            for reading in _readings(chance, sensor, START + dt.timedelta(minutes=minute)):
                if sensor == OFFLINE and minute < MINUTES - 5:
                    late.append(reading)
                else:
                    yield reading
    yield Record(TOPIC, "bed-1", "bed-1,temperature")  # The battery was low.
    yield from late


def _readings(chance: random.Random, sensor: str, moment: dt.datetime) -> Iterator[Record]:
    heat = chance.gauss(24, 2)
    if chance.random() < 0.02:
        heat = chance.choice([75.5, 81.0, 999.0])  # A fire, or a broken wire.
    for kind, value in (("temperature", heat), ("humidity", chance.uniform(40, 80))):
        yield Record(TOPIC, sensor, f"{sensor},{kind},{value:.1f},{moment.isoformat()}")


if __name__ == "__main__":
    main(TOPICS, records)
