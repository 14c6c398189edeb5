"""Metadata answers kept as bytes: clients ask the same question over and over.

An answer is good for as long as every part of the image that it shows is still the same object;
images share what did not change, so that is a comparison of identities and costs the same
whether the cluster has ten partitions or ten thousand.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from headrace.metadata.image import BrokerImage, MetadataImage, TopicImage

_BODY_BYTES_MAX = 256 * 1024
_TOTAL_BYTES_MAX = 1024 * 1024


class Answer(NamedTuple):
    """An encoded answer, and how often it tells which error: whoever sends it counts them."""

    body: bytes
    errors: tuple[tuple[int, int], ...] = ()


class _Kept(NamedTuple):
    brokers: Mapping[int, BrokerImage]
    topics: Sequence[TopicImage] | None
    all_topics: Mapping[str, TopicImage] | None
    answer: Answer


class MetadataAnswers:
    """Encoded answers by question, within a bound on their total size."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}
        self._size_bytes = 0

    def find(self, question: Hashable, image: MetadataImage) -> Answer | None:
        """The answer given last time, if nothing that it shows has changed."""
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
        """Remember an answer that shows these topics, or all of them if `topics` is None."""
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
