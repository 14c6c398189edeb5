"""Records of a request on their way, without a broker."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest
from confluent_kafka import Message
from starlette.requests import Request

from headrace.client.loop_producer import (
    BufferFull,
    InFlight,
    OutgoingRecord,
    RecordSender,
    RequestOutcomes,
    Sent,
)
from headrace.rest.errors import ErrorBody
from headrace.rest.formats import Format
from headrace.rest.schema_codecs import codec_of
from headrace.rest.schemas import Registered, Schemas, V3Schema
from headrace.rest.service import Service
from headrace.rest.settings import settings_of
from headrace.rest.v3.production import Production
from headrace.rest.v3.record_bodies import RecordAnswer, records_of


class Handing(RecordSender):
    """Keeps the topics and records of its calls; tests choose the time of the outcomes."""

    def __init__(self, *, is_delivered: bool = True) -> None:
        self.asked: list[str] = []
        self.values: list[bytes | None] = []
        self._is_delivered = is_delivered

    async def partitions_of(self, topic: str) -> int:
        self.asked.append(topic)
        return 1

    async def start(self, topic: str, records: Sequence[OutgoingRecord]) -> InFlight:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        group = RequestOutcomes(len(records), done)
        sent = [Sent(group) for _ in records]
        self.values += [one.value for one in records]
        if self._is_delivered:
            for one in sent:
                one(None, Message(topic=topic, partition=0, offset=len(self.values), value=b""))
        return InFlight(done, sent)


class SlowSchemas(Schemas):
    """A registry that answers when the test allows it."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()

    async def of_v3(self, topic: str, given: V3Schema, *, is_key: bool) -> Registered:
        await self.may_answer.wait()
        return Registered(Format.AVRO, "t-value", 1, 7, codec_of(Format.AVRO, '"string"'))


def production(sender: Handing, schemas: Schemas | None = None) -> Production:
    service = Service(settings_of({"bootstrap.servers": "127.0.0.1:1"}))
    if schemas is not None:
        service.schemas = schemas
    return Production(service, sender, "t", "c")


def streaming(*pieces: bytes) -> Request:
    """A request whose body has these pieces and no end."""
    left = list(pieces)

    async def receive() -> Any:
        if left:
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}
        return await asyncio.get_running_loop().create_future()

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


def plain(data: str) -> bytes:
    return json.dumps({"value": {"type": "STRING", "data": data}}).encode()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"records":[{"value":1}]}', 'Unrecognized field "records": this is a body of version 2'),
        (b'{"valu":{}}', 'Unrecognized field "valu"'),
        (b'{"value":{"id":1}}', 'Unrecognized field "id" - at `$.value`'),
        (b'{"key":{"dta":"YQ=="}}', 'Unrecognized field "dta" - at `$.key`'),
        (b'{"headers":[{"name":"a","val":""}]}', 'Unrecognized field "val" - at `$.headers[0]`'),
    ],
)
async def test_an_unknown_field_is_rejected_and_creates_no_topic(body: bytes, words: str) -> None:
    sender = Handing()
    (result,) = await production(sender).results_of(records_of(body))
    assert isinstance(result, ErrorBody)
    assert (result.error_code, words in result.message) == (400, True)
    assert (sender.asked, sender.values) == ([], [])


async def test_a_record_for_a_missing_partition_fails_and_others_are_written() -> None:
    bodies = [b'{"partition_id":1}', plain("a"), b'{"partition_id":-1}']
    results = await production(Handing()).results_of(records_of(b"\n".join(bodies)))
    assert [one.error_code for one in results] == [40402, 200, 40402]


async def test_records_of_a_stream_keep_their_order_when_one_waits_for_the_registry() -> None:
    sender, schemas = Handing(), SlowSchemas()
    first = b'{"value":{"schema_id":7,"data":"one"}}'
    stream = production(sender, schemas).streamed(streaming(first, plain("two")))
    asyncio.get_running_loop().call_later(0.01, schemas.may_answer.set)
    async with asyncio.timeout(30), aclosing(stream):
        lines = [line async for line in stream]
    assert [json.loads(line)["offset"] for line in lines] == [1, 2]
    assert sender.values == [b"\0\0\0\0\7\6one", b"two"]


class Full(Handing):
    """Rejects records because its buffer is full."""

    async def start(self, topic: str, records: Sequence[OutgoingRecord]) -> InFlight:
        raise BufferFull("too much waits")


async def test_a_stream_ends_with_an_error_when_the_buffer_is_full() -> None:
    stream = production(Full()).streamed(streaming(plain("a"), plain("b")))
    async with asyncio.timeout(30), aclosing(stream):
        lines = [json.loads(line) async for line in stream]
    assert lines == [{"error_code": 503, "message": "too much waits"}]


async def test_a_stream_that_is_given_up_leaves_nothing_running() -> None:
    sender = Handing(is_delivered=False)
    stream = production(sender).streamed(streaming(*(plain(str(one)) for one in range(40))))
    taking = asyncio.ensure_future(anext(stream))
    async with asyncio.timeout(30):
        while len(sender.values) < 18:  # One is waited for, 16 are queued, one finds no place.
            await asyncio.sleep(0)
        taking.cancel()
        await asyncio.wait([taking])
        await stream.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_written_record_returns_its_place() -> None:
    (result,) = await production(Handing()).results_of(records_of(plain("a")))
    assert isinstance(result, RecordAnswer)
    assert (result.topic_name, result.partition_id, result.offset) == ("t", 0, 1)
