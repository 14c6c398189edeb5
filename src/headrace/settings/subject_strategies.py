"""The names of the strategies by which the subject of a payload's schema is found."""

from enum import StrEnum


class SubjectNameStrategy(StrEnum):
    """Confluent's classes, without their package."""

    TOPIC = "TopicNameStrategy"
    RECORD = "RecordNameStrategy"
    TOPIC_RECORD = "TopicRecordNameStrategy"
