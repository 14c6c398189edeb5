"""The first records of a leader."""

from headrace.controller.activation import activate
from headrace.controller.decision import ClusterDefaults
from headrace.metadata.features import DEFAULT_LEVELS
from headrace.metadata.image import EMPTY
from headrace.metadata.image_records import feature_records
from headrace.metadata.loader import MetadataLoader
from headrace.metadata.records import MetadataBatch
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from tests.builders.metadata_images import KAFKA_LEVELS, image_with

DEFAULTS = ClusterDefaults(min_insync_replicas=2)


def written(decision_records: list[Message]) -> MetadataLoader:
    loader = MetadataLoader()
    last = len(decision_records) - 1
    loader.replay(MetadataBatch(0, last, 1, 0, False, decision_records))
    loader.publish()
    return loader


def test_an_empty_log_is_filled_in_a_transaction() -> None:
    decision = activate(EMPTY, feature_records(DEFAULT_LEVELS), DEFAULTS, in_transaction=False)
    messages = [record.message for record in decision.records]
    assert isinstance(messages[0], BeginTransactionRecord)
    assert isinstance(messages[-1], EndTransactionRecord)
    assert written(messages).image.features == DEFAULT_LEVELS


def test_old_levels_write_no_transactions() -> None:
    bootstrap = [FeatureLevelRecord("metadata.version", 13)]
    decision = activate(EMPTY, bootstrap, DEFAULTS, in_transaction=False)
    assert [record.message for record in decision.records] == bootstrap


def test_eligible_leaders_come_with_min_insync_replicas() -> None:
    decision = activate(EMPTY, feature_records(KAFKA_LEVELS), DEFAULTS, in_transaction=False)
    image = written([record.message for record in decision.records]).image
    assert image.configs_of(4, "") == {"min.insync.replicas": "2"}


def test_a_log_with_content_needs_nothing() -> None:
    assert list(activate(image_with(), (), DEFAULTS, in_transaction=False).records) == []


def test_an_open_transaction_of_a_predecessor_is_aborted() -> None:
    (record,) = activate(image_with(), (), DEFAULTS, in_transaction=True).records
    assert isinstance(record.message, AbortTransactionRecord)


def test_an_interrupted_bootstrap_is_repeated() -> None:
    bootstrap = feature_records(DEFAULT_LEVELS)
    decision = activate(EMPTY, bootstrap, DEFAULTS, in_transaction=True)
    first, second = decision.records[:2]
    assert isinstance(first.message, AbortTransactionRecord)
    assert isinstance(second.message, BeginTransactionRecord)
