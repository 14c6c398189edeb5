"""Under which subject the schema of a record's key or value is registered: the strategies.

Serializers are given one of the functions; topics name one by Confluent's words.
"""

from collections.abc import Callable

from headrace.errors import HeadraceError
from headrace.settings.subject_strategies import SubjectNameStrategy

SubjectName = Callable[[str, str, str | None], str]
"""From the topic, the part of the record (`key` or `value`) and the schema's own name."""


class NoSubject(HeadraceError):
    """A schema without a name, where the subject is made of it."""


def topic_subject(topic: str, part: str, name: str | None) -> str:
    """`orders-value`: one schema for each topic."""
    return f"{topic}-{part}"


def record_subject(topic: str, part: str, name: str | None) -> str:
    """`com.shop.Order`: a schema is the same in all topics."""
    return _required(name)


def topic_record_subject(topic: str, part: str, name: str | None) -> str:
    """`orders-com.shop.Order`: several kinds of records in a topic, each with its own versions."""
    return f"{topic}-{_required(name)}"


def strategy_named(name: str) -> SubjectNameStrategy:
    """By the short name, or by that of Confluent's class."""
    return SubjectNameStrategy(name.rpartition(".")[2])


def _required(name: str | None) -> str:
    if not name:
        raise NoSubject(
            "the subject is made of the schema's name, which this one lacks: give an Avro record a"
            " name, a JSON Schema a title, or take topic_subject"
        )
    return name
