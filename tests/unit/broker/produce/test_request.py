"""The batches of a request are appended or refused one by one, and each is accounted for."""

from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.direct_call import DirectCall
from headrace.broker.produce.admission import Admission
from headrace.broker.produce.request import ProduceRequest
from headrace.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidRequiredAcks,
    KafkaError,
    NotEnoughReplicas,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedCompressionType,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.compression import Codec
from headrace.protocol.hot_produce import PartitionRecords, ProduceView, TopicKey
from headrace.storage.config import LogConfig
from headrace.storage.producer_state import NOT_VERIFIED
from tests.builders.logs import batch_of
from tests.unit.broker.api.builders import UnitBroker, a_broker, a_topic

KEY = b"orders"
VERSION = 9


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    broker = a_broker(tmp_path)
    broker._host(a_topic("orders", partitions=3))
    return broker


Topics = list[tuple[TopicKey, list[PartitionRecords]]]


def request_of(
    broker: UnitBroker,
    topics: Topics,
    version: int = VERSION,
    refused: dict[tuple[bytes, int], KafkaError] | None = None,
) -> ProduceRequest:
    call = DirectCall(cast(Any, broker), cast(Any, None), ApiKey.PRODUCE, version, 7)
    view = ProduceView(None, 1, 1000, topics)
    return ProduceRequest(call, view, Admission(refused or {}, NOT_VERIFIED))


def after_appends(broker: UnitBroker, topics: Topics, **options: Any) -> ProduceRequest:
    made = request_of(broker, topics, **options)
    made.append_all()
    return made


def codes(made: ProduceRequest) -> dict[tuple[bytes, int], int]:
    return {place: error.code for place, error in made.failures.items()}


async def test_an_invalid_batch_does_not_fail_others(broker: UnitBroker) -> None:
    broken = batch_of(b"broken")
    broken[-1] ^= 1
    made = after_appends(broker, [(KEY, [(0, batch_of(b"a")), (1, broken), (2, batch_of(b"b"))])])
    ((_, appended),) = made.done
    assert [(one.partition, one.base_offset) for one in appended] == [(0, 0), (2, 0)]
    assert codes(made) == {(KEY, 1): CorruptMessage.code}
    metrics = broker.partitions.by_wire_name[KEY].metrics
    assert (metrics.produce_requests, metrics.failed_produce_requests) == (2, 1)
    assert metrics.bytes_rejected == len(broken)


@pytest.mark.parametrize(("version", "error"), [(9, UnknownTopicOrPartition), (13, UnknownTopicId)])
async def test_an_unknown_topic_gets_the_error_of_the_version(
    broker: UnitBroker, version: int, error: type[KafkaError]
) -> None:
    made = after_appends(broker, [(b"nobody", [(0, batch_of(b"v"))])], version=version)
    assert codes(made) == {(b"nobody", 0): error.code}
    assert broker.metrics.failed_produce_requests == 1


async def test_no_records_are_refused(broker: UnitBroker) -> None:
    made = after_appends(broker, [(KEY, [(0, None)])])
    assert codes(made) == {(KEY, 0): InvalidRecord.code}


async def test_zstd_needs_a_version_that_defines_it(broker: UnitBroker) -> None:
    made = after_appends(broker, [(KEY, [(0, batch_of(b"v", codec=Codec.ZSTD))])], version=6)
    assert codes(made) == {(KEY, 0): UnsupportedCompressionType.code}


async def test_a_batch_that_the_coordinator_refused_is_not_appended(broker: UnitBroker) -> None:
    topics: Topics = [(KEY, [(0, batch_of(b"a")), (1, batch_of(b"b"))])]
    made = after_appends(broker, topics, refused={(KEY, 1): NotEnoughReplicas("it moves")})
    assert codes(made) == {(KEY, 1): NotEnoughReplicas.code}
    assert broker.log("orders", 1).log_end_offset == 0


async def test_a_request_that_is_refused_appends_nothing(broker: UnitBroker) -> None:
    made = request_of(broker, [(KEY, [(0, batch_of(b"a")), (1, batch_of(b"b"))])])
    made.refuse_all(InvalidRequiredAcks("acks must be 0, 1 or -1"))
    assert codes(made) == dict.fromkeys([(KEY, 0), (KEY, 1)], InvalidRequiredAcks.code)
    assert made.done == [(KEY, [])]
    assert broker.log("orders", 0).log_end_offset == 0


async def test_a_heavy_batch_is_left_for_later_and_copied(broker: UnitBroker) -> None:
    """Its frame is overwritten before it is validated."""
    broker.log("orders", 0).reconfigure(LogConfig(cleanup_policy=frozenset(("compact",))))
    records = batch_of(b"v" * 70_000)
    made = after_appends(broker, [(KEY, [(0, records)])])
    assert made.failures == {}
    (heavy,) = made.heavy
    records[:] = bytes(len(records))
    assert bytes(heavy.records) == bytes(batch_of(b"v" * 70_000))
    assert broker.log("orders", 0).log_end_offset == 0


async def test_a_log_that_syncs_each_batch_is_noted(broker: UnitBroker) -> None:
    broker.log("orders", 0).reconfigure(LogConfig(flush_messages=1))
    made = after_appends(broker, [(KEY, [(0, batch_of(b"a")), (1, batch_of(b"b"))])])
    assert made.unflushed == [broker.log("orders", 0)]
