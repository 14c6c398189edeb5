"""Reports to the controller are retried until it accepts them."""

import asyncio
from itertools import islice

from headrace.broker.registration import ASSIGNMENTS_MAX, directory_assignments, report, waits
from headrace.errors import KafkaStorageError
from headrace.protocol.message import Message
from headrace.protocol.schemas.broker_heartbeat import BrokerHeartbeatRequest

NEWS = BrokerHeartbeatRequest(1, 5, offline_log_dirs=[bytes(16)])


class BusyController:
    """Rejects the first requests."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.accepted: list[Message] = []
        self.waited: list[float] = []

    async def ask(self, request: Message) -> None:
        if self.refusals:
            self.refusals -= 1
            raise KafkaStorageError("the disk of the metadata log is full")
        self.accepted.append(request)

    async def wait(self, seconds: float) -> None:
        self.waited.append(seconds)


def tell(controller: BusyController) -> None:
    asyncio.run(report(controller.ask, NEWS, "failed directory", controller.wait))


def test_an_accepted_report_is_sent_once() -> None:
    controller = BusyController(0)
    tell(controller)
    assert controller.accepted == [NEWS]
    assert controller.waited == []


def test_a_rejected_report_is_retried() -> None:
    controller = BusyController(3)
    tell(controller)
    assert controller.accepted == [NEWS]
    assert controller.waited == [0.1, 0.2, 0.4]


def test_a_report_is_retried_while_a_disk_is_full_for_hours() -> None:
    controller = BusyController(5_000)
    tell(controller)
    assert controller.accepted == [NEWS]


def test_waits_between_attempts_are_bounded() -> None:
    assert max(islice(waits(), 1_000)) == 10


def test_many_assignments_of_directories_go_into_several_requests() -> None:
    assigned = {(b"t" * 16, index): bytes([index % 2]) * 16 for index in range(5000)}
    requests = list(directory_assignments(1, 5, assigned))
    counts = [
        sum(len(topic.partitions) for directory in one.directories for topic in directory.topics)
        for one in requests
    ]
    assert counts == [ASSIGNMENTS_MAX, ASSIGNMENTS_MAX, 500]
    assert {(one.broker_id, one.broker_epoch) for one in requests} == {(1, 5)}
    assert list(directory_assignments(1, 5, {})) == []
