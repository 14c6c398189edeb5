"""A cache of encoded Metadata responses, because clients repeat the same request.

A response is valid while every part of the image that it shows is the same object. Images share
unchanged parts, so the check compares identities, at a cost independent of the partitions.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from headrace.metadata.image import BrokerImage, MetadataImage, TopicImage

_BODY_BYTES_MAX = 256 * 1024
_TOTAL_BYTES_MAX = 1024 * 1024


class Answer(NamedTuple):
    """An encoded response, and its error codes with their counts for the metrics."""

    body: bytes
    errors: tuple[tuple[int, int], ...] = ()


class _Kept(NamedTuple):
    brokers: Mapping[int, BrokerImage]
    topics: Sequence[TopicImage] | None
    all_topics: Mapping[str, TopicImage] | None
    answer: Answer


class MetadataAnswers:
    """Encoded responses by request, within a bound on their total size."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}
        self._size_bytes = 0

    def find(self, question: Hashable, image: MetadataImage) -> Answer | None:
        """Return the cached response if it is still valid."""
        kept = self._kept.get(question)
        if kept is None or kept.brokers is not image.brokers:
            return None
        if kept.topics is None:
            return kept.answer if kept.all_topics is image.topics else None
        by_id = image.topics_by_id
        for topic in kept.topics:
            if by_id.get(topic.id) is not topic:
                return None
        return kept.answer

    def keep(
        self,
        question: Hashable,
        image: MetadataImage,
        topics: Sequence[TopicImage] | None,
        answer: Answer,
    ) -> None:
        """Cache a response that shows these topics, or all topics if `topics` is None."""
        size_bytes = len(answer.body)
        if size_bytes > _BODY_BYTES_MAX:
            return
        replaced = self._kept.pop(question, None)
        if replaced is not None:
            self._size_bytes -= len(replaced.answer.body)
        if self._size_bytes + size_bytes > _TOTAL_BYTES_MAX:
            self._kept.clear()
            self._size_bytes = 0
        all_topics = image.topics if topics is None else None
        self._kept[question] = _Kept(image.brokers, topics, all_topics, answer)
        self._size_bytes += size_bytes
