"""A broker registers, is unfenced and fenced, loses a disk and is unregistered."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from headrace.controller.decision import ClusterDefaults
from headrace.controller.registration import (
    BrokerIdentity,
    ControllerIdentity,
    begin_shutdown,
    check_epoch,
    cordon_directories,
    fence_broker,
    register_broker,
    register_controller,
    take_directories_offline,
    unfence_broker,
    unregister_broker,
)
from headrace.errors import (
    BrokerIdNotRegistered,
    DuplicateBrokerRegistration,
    InvalidRegistration,
    StaleBrokerEpoch,
    UnsupportedVersion,
)
from headrace.metadata.features import SUPPORTED, VersionRange
from headrace.metadata.image import (
    NO_LEADER,
    UNASSIGNED_DIRECTORY,
    Endpoint,
    MetadataImage,
    PartitionImage,
)
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from headrace.protocol.uuids import Uuid
from tests.builders.metadata_images import (
    KAFKA_LEVELS,
    applied,
    directory_id,
    image_with,
    registered,
    replayed,
    topic_id,
    with_partition,
)

DEFAULTS = ClusterDefaults()
ENDPOINT = Endpoint("PLAINTEXT", "localhost", 9092)


def identity(
    incarnation: bytes = b"n" * 16,
    *,
    directories: tuple[Uuid, ...] = (directory_id(1),),
    previous: int = -1,
) -> BrokerIdentity:
    return BrokerIdentity(
        broker_id=1,
        incarnation_id=incarnation,
        endpoints=[ENDPOINT],
        directories=directories,
        previous_broker_epoch=previous,
    )


def replicated(*, levels: Mapping[str, int] | None = None, **state: Any) -> MetadataImage:
    """A partition on the brokers 1 and 2, in a state."""
    image = image_with(
        topics={"orders": 1},
        brokers=[1, 2],
        replicas=[1, 2],
        levels=levels or {"metadata.version": 25},
    )
    return with_partition(image, "orders", 0, **state)


def orders(image: MetadataImage) -> PartitionImage:
    return image.topics["orders"].partitions[0]


def written(image: MetadataImage, records: Iterable[VersionedRecord]) -> MetadataImage:
    return replayed(image, [record.message for record in records])


def test_a_broker_registers_fenced_under_the_next_offset() -> None:
    image = image_with(brokers=[])
    decision = register_broker(image, identity(), 42, DEFAULTS)
    broker = applied(image, decision).brokers[1]
    assert decision.reply == broker.epoch == 42
    assert broker.fenced
    assert (broker.endpoints, broker.directories) == ((ENDPOINT,), (directory_id(1),))
    assert broker.features == SUPPORTED


def test_the_same_incarnation_only_amends_its_registration() -> None:
    image = image_with()
    same = identity(image.brokers[1].incarnation_id)
    decision = register_broker(image, same, 500, DEFAULTS)
    broker = applied(image, decision).brokers[1]
    assert (decision.reply, broker.epoch, broker.fenced) == (101, 101, False)
    assert broker.endpoints == (ENDPOINT,)


def test_after_a_clean_stop_partitions_are_as_they_were() -> None:
    image = image_with(topics={"orders": 2}, fenced=[1])
    decision = register_broker(image, identity(previous=101), 500, DEFAULTS)
    assert [type(record.message) for record in decision.records] == [RegisterBrokerRecord]


@pytest.mark.parametrize("levels", [{"metadata.version": 25}, KAFKA_LEVELS])
def test_after_a_crash_partitions_begin_a_new_term(levels: dict[str, int]) -> None:
    image = image_with(topics={"orders": 2}, levels=levels)
    decision = register_broker(image, identity(), 500, DEFAULTS)
    partitions = applied(image, decision).topics["orders"].partitions
    assert [(one.leader, one.leader_epoch, one.isr) for one in partitions] == [(1, 1, (1,))] * 2


@pytest.mark.parametrize(("level", "version"), [(30, 4), (25, 3), (16, 2), (7, 1)])
def test_registrations_are_written_as_the_cluster_can_read_them(level: int, version: int) -> None:
    image = image_with(brokers=[], levels={"metadata.version": level})
    (record,) = register_broker(image, identity(), 1, DEFAULTS).records
    assert record.version == version
    assert isinstance(record.message, RegisterBrokerRecord)
    assert bool(record.message.log_dirs) == (level >= 17)


@pytest.mark.parametrize(
    "directories",
    [(), (b"a" * 16, b"a" * 16), (UNASSIGNED_DIRECTORY,), (directory_id(2),)],
)
def test_directories_must_be_the_brokers_own(directories: tuple[Uuid, ...]) -> None:
    image = image_with(brokers=[2])
    with pytest.raises(InvalidRegistration):
        register_broker(image, identity(directories=directories), 1, DEFAULTS)


def test_a_broker_must_support_the_current_levels() -> None:
    image = image_with(levels={"metadata.version": 25, "from.the.future": 1})
    with pytest.raises(UnsupportedVersion, match=r"from\.the\.future"):
        register_broker(image, identity(), 1, DEFAULTS)
    old = BrokerIdentity(
        broker_id=1,
        incarnation_id=b"n" * 16,
        endpoints=[ENDPOINT],
        directories=[directory_id(1)],
        features={"metadata.version": VersionRange(7, 20)},
    )
    with pytest.raises(UnsupportedVersion, match="7 to 20"):
        register_broker(image_with(), old, 1, DEFAULTS)


def test_a_controller_registers_if_the_metadata_version_supports_it() -> None:
    controller = ControllerIdentity(controller_id=1, incarnation_id=b"c" * 16, endpoints=[ENDPOINT])
    image = applied(image_with(), register_controller(image_with(), controller))
    assert image.controllers[1].endpoints == (ENDPOINT,)
    old = image_with(levels={"metadata.version": 14})
    assert list(register_controller(old, controller).records) == []


def test_another_process_cannot_take_the_id_of_a_live_broker() -> None:
    image = image_with()
    with pytest.raises(DuplicateBrokerRegistration):
        register_broker(image, identity(), 500, DEFAULTS, has_live_session=True)
    same = identity(image.brokers[1].incarnation_id)
    assert register_broker(image, same, 500, DEFAULTS, has_live_session=True).reply == 101


def test_a_new_incarnation_after_a_clean_stop_stays_eligible_to_lead() -> None:
    image = replicated(levels=KAFKA_LEVELS, isr=[], leader=NO_LEADER, elr=[1, 2])
    after = applied(image, register_broker(image, identity(previous=101), 500, DEFAULTS))
    assert after.topics["orders"].partitions[0].elr == (1, 2)


def test_a_new_incarnation_after_a_crash_is_neither_in_sync_nor_eligible() -> None:
    image = replicated(levels=KAFKA_LEVELS, isr=[1, 2], leader=1, elr=[])
    partition = orders(applied(image, register_broker(image, identity(), 500, DEFAULTS)))
    assert (partition.leader, partition.isr, partition.elr) == (2, (2,), ())
    image = replicated(levels=KAFKA_LEVELS, isr=[], leader=NO_LEADER, elr=[1, 2])
    partition = orders(applied(image, register_broker(image, identity(), 500, DEFAULTS)))
    assert (partition.leader, partition.elr) == (2, ())


def test_the_last_member_in_sync_stays_without_eligible_leaders() -> None:
    image = replicated(isr=[1], leader=1)
    partition = orders(applied(image, register_broker(image, identity(), 500, DEFAULTS)))
    assert (partition.leader, partition.isr) == (NO_LEADER, (1,))


def test_a_node_must_support_the_level_of_the_quorum() -> None:
    static = BrokerIdentity(
        broker_id=1,
        incarnation_id=b"n" * 16,
        endpoints=[ENDPOINT],
        directories=[directory_id(1)],
        features={**SUPPORTED, "kraft.version": VersionRange(0, 0)},
    )
    register_broker(image_with(), static, 1, DEFAULTS)
    with pytest.raises(UnsupportedVersion, match=r"kraft\.version"):
        register_broker(image_with(), static, 1, DEFAULTS, kraft_version=1)
    old = ControllerIdentity(
        controller_id=1,
        incarnation_id=b"c" * 16,
        endpoints=[ENDPOINT],
        features={"metadata.version": VersionRange(7, 30)},
    )
    with pytest.raises(UnsupportedVersion):
        register_controller(image_with(), old)


def test_unfencing_elects_leaders_for_waiting_partitions() -> None:
    image = image_with(topics={"orders": 1}, fenced=[1])
    image = replayed(image, [PartitionChangeRecord(0, topic_id("orders"), leader=NO_LEADER)])
    image = written(image, unfence_broker(image, image.brokers[1], DEFAULTS))
    assert image.is_active(1)
    assert image.topics["orders"].partitions[0].leader == 1


def test_cordoned_directories_are_stored_from_the_newest_level_on() -> None:
    image = image_with(levels=KAFKA_LEVELS)
    cordoned = [directory_id(1)]
    (record,) = cordon_directories(image, image.brokers[1], cordoned)
    image = written(image, [record])
    assert record.version == 3
    assert image.brokers[1].cordoned_directories == (directory_id(1),)
    assert cordon_directories(image, image.brokers[1], cordoned) == []
    assert cordon_directories(image, image.brokers[1], None) == []
    old = image_with()
    assert cordon_directories(old, old.brokers[1], cordoned) == []


def test_a_stale_epoch_is_refused() -> None:
    with pytest.raises(StaleBrokerEpoch):
        check_epoch(image_with(), 1, 7)
    with pytest.raises(BrokerIdNotRegistered):
        check_epoch(image_with(), 9, 7)


def test_a_fenced_broker_goes_on_leading_partitions_of_its_own_only() -> None:
    image = image_with(topics={"orders": 2})
    (record,) = fence_broker(image, image.brokers[1], DEFAULTS)
    assert isinstance(record.message, BrokerRegistrationChangeRecord)
    image = written(image, [record])
    assert image.brokers[1].fenced
    assert orders(image).leader == 1


def test_a_fenced_broker_hands_over_partitions_with_other_replicas() -> None:
    image = replicated(isr=[1, 2], leader=1)
    partition = orders(written(image, fence_broker(image, image.brokers[1], DEFAULTS)))
    assert (partition.leader, partition.isr, partition.leader_epoch) == (2, (2,), 1)


def test_fencing_the_last_replica_in_sync_leaves_a_partition_without_leader() -> None:
    image = replicated(isr=[1], leader=1)
    partition = orders(written(image, fence_broker(image, image.brokers[1], DEFAULTS)))
    assert (partition.leader, partition.isr) == (NO_LEADER, (1,))
    image = replicated(levels=KAFKA_LEVELS, isr=[1], leader=1)
    partition = orders(written(image, fence_broker(image, image.brokers[1], DEFAULTS)))
    assert (partition.leader, partition.isr, partition.elr) == (NO_LEADER, (), (1,))
    assert partition.last_known_elr == (1,)


@pytest.mark.parametrize(("level", "is_shown"), [(25, True), (7, False)])
def test_a_controlled_shutdown_is_shown_where_the_metadata_version_has_it(
    level: int, is_shown: bool
) -> None:
    image = replicated(levels={"metadata.version": level}, isr=[1, 2], leader=1)
    image = written(image, begin_shutdown(image, image.brokers[1], DEFAULTS))
    assert image.brokers[1].in_controlled_shutdown is is_shown
    assert (orders(image).leader, image.brokers[1].fenced) == (2, False)


def test_a_broker_can_be_forgotten() -> None:
    image = image_with(topics={"orders": 1})
    image = applied(image, unregister_broker(image, 1, DEFAULTS))
    assert image.brokers == {}
    assert image.topics["orders"].partitions[0].leader == NO_LEADER
    with pytest.raises(BrokerIdNotRegistered):
        unregister_broker(image, 1, DEFAULTS)


def test_a_failed_disk_takes_its_partitions_offline_and_no_others() -> None:
    """LOG-19."""
    first, second = b"1" * 16, b"2" * 16
    image = image_with(topics={"orders": 2})
    image = replayed(
        image,
        [
            registered(1, log_dirs=[first, second]),
            PartitionChangeRecord(0, topic_id("orders"), directories=[first]),
            PartitionChangeRecord(1, topic_id("orders"), directories=[second]),
        ],
    )
    image = written(image, take_directories_offline(image, image.brokers[1], [first], DEFAULTS))
    assert [one.leader for one in image.topics["orders"].partitions] == [NO_LEADER, 1]
    assert image.brokers[1].directories == (second,)
    assert take_directories_offline(image, image.brokers[1], [first], DEFAULTS) == []
