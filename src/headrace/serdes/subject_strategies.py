"""Strategies for the subject of a record's key or value schema.

Serializers receive one of the functions; topics name one by Confluent's words.
"""

from collections.abc import Callable

from headrace.errors import HeadraceError
from headrace.settings.subject_strategies import SubjectNameStrategy

SubjectName = Callable[[str, str, str | None], str]
"""Receives the topic, the part of the record (`key` or `value`) and the schema's own name."""


class NoSubject(HeadraceError):
    """A schema needs a name for its subject and has none."""


def topic_subject(topic: str, part: str, name: str | None) -> str:
    """Return `orders-value`: one schema for each topic."""
    return f"{topic}-{part}"


def record_subject(topic: str, part: str, name: str | None) -> str:
    """Return `com.shop.Order`: the same schema in all topics."""
    return _required(name)


def topic_record_subject(topic: str, part: str, name: str | None) -> str:
    """Return `orders-com.shop.Order`: several kinds of records in a topic, versioned separately."""
    return f"{topic}-{_required(name)}"


def strategy_named(name: str) -> SubjectNameStrategy:
    """Return a strategy by its short name, or by the name of Confluent's class."""
    return SubjectNameStrategy(name.rpartition(".")[2])


def _required(name: str | None) -> str:
    if not name:
        raise NoSubject(
            "the subject contains the schema's name, which this schema lacks: give an Avro record a"
            " name, a JSON Schema a title, or use topic_subject"
        )
    return name
