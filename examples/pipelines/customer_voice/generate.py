"""Opinions about a shop's products: mails, in the format of mail servers, and posts.

python -m examples.pipelines.customer_voice.generate
"""

import datetime as dt
import random
from collections.abc import Iterator
from email.message import EmailMessage
from email.utils import format_datetime

from examples.pipelines.feeding import Record, event, main

MAILS, POSTS = "shop-mails", "social-posts"
TOPICS = (MAILS, POSTS)
START = dt.datetime(2026, 3, 2, 9, tzinfo=dt.UTC)
PRODUCTS = ("kettle", "teapot", "mug", "grinder", "scale")
PEOPLE = tuple(f"person{number}" for number in range(40))
WORDS = {
    "praise": ("I love my {}", "the {} is great", "best {} ever"),
    "complaint": ("my {} is broken", "the {} leaks, I want a refund", "never again such a {}"),
    "question": ("does the {} come in blue?", "how do I clean the {}?"),
}
MINUTES = 240


def records(seed: int = 31) -> Iterator[Record]:
    chance = random.Random(seed)
    for minute in range(MINUTES):
        moment = START + dt.timedelta(minutes=minute)
        for _ in range(chance.randrange(4)):
            yield from _said(chance, moment)
    yield Record(MAILS, "nobody", "\x00\x01 not a mail at all")
    strange = _mail("0", "nobody", "in a charset of his own", START).value
    yield Record(MAILS, "nobody", strange.replace('"utf-8"', '"x-nobody"'))


def _said(chance: random.Random, moment: dt.datetime) -> Iterator[Record]:
    person, product = chance.choice(PEOPLE), chance.choice(PRODUCTS)
    text = chance.choice(WORDS[chance.choice(list(WORDS))]).format(product)
    identity = f"{chance.getrandbits(48):012x}"
    if chance.random() < 0.4:
        said = _mail(identity, person, text, moment)
    else:
        said = _post(chance, identity, person, text, moment)
    yield said
    if chance.random() < 0.05:
        yield said  # Mail servers deliver at least once, and feeds repeat posts.


def _mail(identity: str, person: str, text: str, moment: dt.datetime) -> Record:
    mail = EmailMessage()
    mail["Message-ID"] = f"<{identity}@example.org>"
    mail["From"] = f"{person.title()} <{person}@example.org>"
    mail["To"] = "shop@example.com"
    mail["Date"] = format_datetime(moment)
    mail["Subject"] = "About what I bought"
    mail.set_content(f"Hello,\n\n{text}\n\n{person.title()}\n")
    return Record(MAILS, person, mail.as_string())


def _post(
    chance: random.Random, identity: str, person: str, text: str, moment: dt.datetime
) -> Record:
    is_advert = chance.random() < 0.15
    return event(
        POSTS,
        person,
        id=identity,
        author=person,
        text=f"{text} #ad" if is_advert else text,
        likes=chance.randrange(50),
        posted_at=moment.isoformat(),
    )


if __name__ == "__main__":
    main(TOPICS, records)
