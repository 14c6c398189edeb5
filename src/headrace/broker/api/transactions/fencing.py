"""How producers of different ages are told that they were replaced."""

from headrace.errors import InvalidProducerEpoch, KafkaError, ProducerFenced


def for_age(error: KafkaError, version: int, fenced_from: int) -> KafkaError:
    """Old clients know INVALID_PRODUCER_EPOCH only, and take it as they should PRODUCER_FENCED."""
    if isinstance(error, ProducerFenced) and version < fenced_from:
        return InvalidProducerEpoch(str(error))
    return error
