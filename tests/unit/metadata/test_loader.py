"""Batches become images; transactions become visible when they end, or never."""

import pytest

from headrace.metadata.image import EMPTY
from headrace.metadata.loader import MetadataLoader
from headrace.metadata.records import MetadataBatch, UnreplayableRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.control import LeaderChangeMessage
from headrace.protocol.schemas.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
)


def batch(base_offset: int, *records: Message, epoch: int = 1) -> MetadataBatch:
    last_offset = base_offset + len(records) - 1
    return MetadataBatch(base_offset, last_offset, epoch, 5 * last_offset, False, records)


def config(name: str) -> ConfigRecord:
    return ConfigRecord(4, "", name, "x")


def names(loader: MetadataLoader) -> list[str]:
    return sorted(loader.image.configs_of(4, ""))


def test_an_image_has_the_offset_of_its_last_record() -> None:
    loader = MetadataLoader()
    loader.replay(batch(0, config("a"), config("b")))
    loader.replay(batch(2, config("c"), epoch=3))
    image = loader.publish().image
    assert (image.offset, image.epoch, image.timestamp_ms) == (2, 3, 10)


def test_one_publication_covers_all_batches_since_the_last() -> None:
    loader = MetadataLoader()
    loader.replay(batch(0, config("a")))
    loader.replay(batch(1, config("b")))
    delta, image = loader.publish()
    assert delta.base is EMPTY
    assert sorted(image.configs_of(4, "")) == ["a", "b"]
    assert loader.publish().delta.base is image


def test_control_batches_move_the_offset_only() -> None:
    loader = MetadataLoader()
    loader.replay(MetadataBatch(0, 0, 4, 7, True, [LeaderChangeMessage()]))
    assert (loader.publish().image.offset, loader.image.epoch, loader.image.is_empty) == (
        0,
        4,
        True,
    )


def test_a_transaction_shows_when_it_ends() -> None:
    loader = MetadataLoader()
    loader.replay(batch(0, config("a"), BeginTransactionRecord("n"), config("b")))
    loader.publish()
    assert names(loader) == ["a"]
    assert loader.transaction_offset == 1
    loader.replay(batch(3, config("c"), EndTransactionRecord(), config("d")))
    loader.publish()
    assert names(loader) == ["a", "b", "c", "d"]
    assert loader.transaction_offset is None


def test_an_open_transaction_does_not_move_the_published_offset() -> None:
    """A snapshot there would miss the records that are held back."""
    loader = MetadataLoader()
    loader.replay(batch(0, config("a")))
    loader.replay(batch(1, BeginTransactionRecord(), config("b")))
    assert loader.publish().image.offset == 0


def test_an_aborted_transaction_never_happened() -> None:
    loader = MetadataLoader()
    loader.replay(batch(0, config("a"), BeginTransactionRecord(), config("b")))
    loader.replay(batch(3, AbortTransactionRecord("why"), config("c")))
    loader.publish()
    assert names(loader) == ["a", "c"]


@pytest.mark.parametrize(
    "records",
    [
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
    ],
)
def test_transactions_must_nest_properly(records: list[Message]) -> None:
    with pytest.raises(UnreplayableRecord):
        MetadataLoader().replay(batch(0, *records))


def test_a_batch_that_goes_back_is_refused() -> None:
    loader = MetadataLoader()
    loader.replay(batch(5, config("a")))
    with pytest.raises(UnreplayableRecord):
        loader.replay(batch(5, config("b")))


def test_a_snapshot_replaces_all_records_before_it() -> None:
    loader = MetadataLoader()
    loader.replay_snapshot([config("a")], end_offset=47, epoch=2, timestamp_ms=9)
    loader.replay(batch(47, config("b"), epoch=3))
    image = loader.publish().image
    assert (image.offset, image.epoch, names(loader)) == (47, 3, ["a", "b"])


def test_a_loader_resumes_in_the_middle_of_a_transaction() -> None:
    loader = MetadataLoader()
    loader.replay(batch(0, config("a"), BeginTransactionRecord("t"), config("b")))
    loader.publish()
    state = loader.state()
    loader.replay(batch(3, AbortTransactionRecord("given up")))
    resumed = MetadataLoader.resume(state)
    assert resumed.transaction_offset == 1
    resumed.replay(batch(3, config("c"), EndTransactionRecord()))
    resumed.publish()
    assert names(resumed) == ["a", "b", "c"]
    assert resumed.image.offset == 4
