"""What must reach the controller is told until it is heard."""

import asyncio
from itertools import islice

from headrace.broker.reports import report, waits
from headrace.controller.decision import Decide, Decision
from headrace.errors import KafkaStorageError
from headrace.metadata.image import MetadataImage
from tests.images import image_with


class BusyController:
    """Refuses so many times; decides what it takes on the image of that moment."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.decided: list[MetadataImage] = []
        self.waited: list[float] = []

    async def submit(self, decide: Decide[None]) -> None:
        if self.refusals:
            self.refusals -= 1
            raise KafkaStorageError("the disk of the metadata log is full")
        image = image_with()
        self.decided.append(image)
        decide(image)

    async def wait(self, seconds: float) -> None:
        self.waited.append(seconds)


def tell(controller: BusyController) -> None:
    work = report(
        controller.submit, lambda image: Decision([], None), "assignment", controller.wait
    )
    asyncio.run(work)


def test_a_report_that_is_heard_is_told_once() -> None:
    controller = BusyController(0)
    tell(controller)
    assert len(controller.decided) == 1
    assert controller.waited == []


def test_a_report_that_is_refused_is_told_again() -> None:
    controller = BusyController(3)
    tell(controller)
    assert len(controller.decided) == 1
    assert controller.waited == [0.1, 0.2, 0.4]


def test_a_disk_that_is_full_for_hours_wears_nobody_out() -> None:
    controller = BusyController(5_000)
    tell(controller)
    assert len(controller.decided) == 1


def test_the_waits_are_bounded() -> None:
    assert max(islice(waits(), 1_000)) == 10
