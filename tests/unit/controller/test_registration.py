"""How a broker joins, serves, stops, loses a disk and is forgotten."""

import pytest

from headrace.controller.decision import ClusterDefaults
from headrace.controller.registration import (
    BrokerIdentity,
    ControllerIdentity,
    assign_directories,
    register_broker,
    register_controller,
    shut_down_broker,
    take_directories_offline,
    unfence_broker,
    unregister_broker,
)
from headrace.errors import (
    BrokerIdNotRegistered,
    InvalidRegistration,
    StaleBrokerEpoch,
    UnsupportedVersion,
)
from headrace.metadata.features import SUPPORTED, VersionRange
from headrace.metadata.image import NO_LEADER, UNASSIGNED_DIRECTORY, Endpoint
from headrace.protocol.schemas.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from headrace.protocol.uuids import Uuid
from tests.images import (
    KAFKA_LEVELS,
    carried_out,
    directory_id,
    image_with,
    registered,
    replayed,
    topic_id,
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


def test_a_broker_registers_fenced_under_the_next_offset() -> None:
    image = image_with(brokers=[])
    decision = register_broker(image, identity(), 42, DEFAULTS)
    broker = carried_out(image, decision).brokers[1]
    assert decision.reply == broker.epoch == 42
    assert broker.fenced
    assert (broker.endpoints, broker.directories) == ((ENDPOINT,), (directory_id(1),))
    assert broker.features == SUPPORTED


def test_the_same_incarnation_only_amends_its_registration() -> None:
    image = image_with()
    same = identity(image.brokers[1].incarnation_id)
    decision = register_broker(image, same, 500, DEFAULTS)
    broker = carried_out(image, decision).brokers[1]
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
    partitions = carried_out(image, decision).topics["orders"].partitions
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


def test_a_broker_must_speak_the_levels_in_force() -> None:
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


def test_a_controller_registers_where_the_cluster_knows_controllers() -> None:
    controller = ControllerIdentity(controller_id=1, incarnation_id=b"c" * 16, endpoints=[ENDPOINT])
    image = carried_out(image_with(), register_controller(image_with(), controller))
    assert image.controllers[1].endpoints == (ENDPOINT,)
    old = image_with(levels={"metadata.version": 14})
    assert list(register_controller(old, controller).records) == []


def test_unfencing_elects_leaders_for_what_waited() -> None:
    image = image_with(topics={"orders": 1}, fenced=[1])
    image = replayed(image, [PartitionChangeRecord(0, topic_id("orders"), leader=NO_LEADER)])
    image = carried_out(image, unfence_broker(image, 1, 101, DEFAULTS))
    assert image.is_active(1)
    assert image.topics["orders"].partitions[0].leader == 1


def test_at_the_newest_level_a_broker_says_that_no_directory_is_cordoned() -> None:
    image = image_with(fenced=[1], levels=KAFKA_LEVELS)
    decision = unfence_broker(image, 1, 101, DEFAULTS)
    assert [record.version for record in decision.records] == [3, 0]
    assert carried_out(image, decision).brokers[1].cordoned_directories == ()


def test_a_stale_epoch_is_refused() -> None:
    with pytest.raises(StaleBrokerEpoch):
        unfence_broker(image_with(), 1, 7, DEFAULTS)
    with pytest.raises(BrokerIdNotRegistered):
        unfence_broker(image_with(), 9, 7, DEFAULTS)


def test_a_clean_stop_fences_and_keeps_what_only_this_broker_has() -> None:
    image = image_with(topics={"orders": 2})
    decision = shut_down_broker(image, 1, 101, DEFAULTS)
    assert [type(record.message) for record in decision.records] == [
        BrokerRegistrationChangeRecord,
        BrokerRegistrationChangeRecord,
    ]
    assert [record.version for record in decision.records] == [1, 0]
    image = carried_out(image, decision)
    assert image.brokers[1].fenced
    assert image.topics["orders"].partitions[0].leader == 1


def test_a_clean_stop_hands_over_what_others_have() -> None:
    image = image_with(topics={"orders": 1}, brokers=[1, 2], replicas=[1, 2])
    image = carried_out(image, shut_down_broker(image, 1, 101, DEFAULTS))
    assert image.topics["orders"].partitions[0].leader == 2


def test_a_fenced_broker_stops_without_a_word() -> None:
    assert list(shut_down_broker(image_with(fenced=[1]), 1, 101, DEFAULTS).records) == []


def test_a_broker_can_be_forgotten() -> None:
    image = image_with(topics={"orders": 1})
    image = carried_out(image, unregister_broker(image, 1, DEFAULTS))
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
    image = carried_out(image, take_directories_offline(image, 1, 101, [first], DEFAULTS))
    assert [one.leader for one in image.topics["orders"].partitions] == [NO_LEADER, 1]
    assert image.brokers[1].directories == (second,)
    assert list(take_directories_offline(image, 1, 101, [first], DEFAULTS).records) == []


def test_a_broker_tells_which_directory_it_chose() -> None:
    image = image_with(topics={"orders": 1})
    chosen = b"c" * 16
    partition = (topic_id("orders"), 0)
    decision = assign_directories(image, 1, {partition: chosen, (b"gone" * 4, 0): chosen})
    image = carried_out(image, decision)
    assert image.topics["orders"].partitions[0].directories == (chosen,)
    assert image.topics["orders"].partitions[0].leader_epoch == 0
    assert list(assign_directories(image, 1, {partition: chosen}).records) == []
