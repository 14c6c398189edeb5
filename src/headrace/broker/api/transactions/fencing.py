"""The error of a replaced producer, by the version of its client."""

from headrace.errors import InvalidProducerEpoch, KafkaError, ProducerFenced


def for_age(error: KafkaError, version: int, fenced_from: int) -> KafkaError:
    """Return INVALID_PRODUCER_EPOCH for old clients, which treat it like PRODUCER_FENCED."""
    if isinstance(error, ProducerFenced) and version < fenced_from:
        return InvalidProducerEpoch(str(error))
    return error
