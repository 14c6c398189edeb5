"""Records of a bank's customers, cards and payments, with typical faults.

    python -m examples.pipelines.bank_customer_360.generate

Changes come out of order, payments twice; some are refunds by mistake, one is not JSON.
"""

import datetime as dt
import random
from collections.abc import Iterator

from examples.pipelines.feeding import Record, event, main

TOPICS = ("personal", "cards", "payments")
CITIES = {"Lisbon": "PT", "Paris": "FR", "Rome": "IT", "Vienna": "AT"}
START = dt.datetime(2026, 3, 2, 8, tzinfo=dt.UTC)
CUSTOMERS, PAYMENTS = 40, 600


def records(seed: int = 8) -> Iterator[Record]:
    chance = random.Random(seed)
    yield from personal(chance)
    yield from cards(chance)
    yield from payments(chance)
    yield Record("payments", "c-1", '{"payment_id": "p-broken", "amount": ')


def personal(chance: random.Random) -> Iterator[Record]:
    changes = []
    for number in range(CUSTOMERS):
        who, city = f"u-{number}", chance.choice(sorted(CITIES))
        changes.append((number, who, "opened", city))
        if chance.random() < 0.3:
            changes.append((100 + number, who, "moved", chance.choice(sorted(CITIES))))
        if chance.random() < 0.1:
            changes.append((200 + number, who, "closed", city))
    chance.shuffle(changes)
    for minute, who, what, city in changes:
        yield event(
            "personal",
            who,
            customer_id=who,
            name=f"Customer {who}",
            city=city,
            country=CITIES[city],
            event=what,
            changed_at=at(minute),
        )


def cards(chance: random.Random) -> Iterator[Record]:
    for number in range(CUSTOMERS + CUSTOMERS // 2):
        card = f"c-{number}"
        states = ["active"] if chance.random() < 0.9 else ["blocked", "active"]  # The newer first.
        for minute, status in zip((10, 5), states, strict=False):
            yield event(
                "cards",
                card,
                card_id=card,
                customer_id=f"u-{number % CUSTOMERS}",
                status=status,
                credit_limit=1000.0 * chance.randrange(1, 4),
                changed_at=at(minute),
            )


def payments(chance: random.Random) -> Iterator[Record]:
    for number in range(PAYMENTS):
        cents = round(chance.paretovariate(1.1) * 1000)
        payment = event(
            "payments",
            card := f"c-{chance.randrange(CUSTOMERS + CUSTOMERS // 2)}",
            payment_id=f"p-{number}",
            card_id=card,
            amount=(-cents if chance.random() < 0.01 else cents) / 100,
            country=chance.choice(sorted(CITIES.values())),
            paid_at=at(300 + number),
        )
        yield payment
        if chance.random() < 0.05:
            yield payment


def at(minute: int) -> str:
    return (START + dt.timedelta(minutes=minute)).isoformat()


if __name__ == "__main__":
    main(TOPICS, records)
