"""Every record type changes the image as Kafka would have it, and nothing else."""

import pytest

from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import (
    EMPTY,
    MIGRATING_DIRECTORY,
    NO_LEADER,
    ConfigResource,
    ResourceType,
)
from headrace.metadata.records import UnreplayableRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from tests.builders.metadata_images import image_with, partition, registered, replayed, topic_id

ORDERS = topic_id("orders")


def test_a_topic_is_found_by_name_and_by_id() -> None:
    image = image_with(topics={"orders": 2})
    assert image.topics["orders"] is image.topics_by_id[ORDERS]
    assert len(image.topics["orders"].partitions) == 2


def test_partitions_may_come_in_any_order() -> None:
    records: list[Message] = [TopicRecord("orders", ORDERS)]
    records += [partition("orders", index, replicas=[index]) for index in (2, 0, 1)]
    image = replayed(EMPTY, records)
    assert [one.leader for one in image.topics["orders"].partitions] == [0, 1, 2]


def test_a_topic_with_a_hole_in_its_partitions_is_refused() -> None:
    records = [TopicRecord("orders", ORDERS), partition("orders", 0), partition("orders", 2)]
    with pytest.raises(UnreplayableRecord, match="none numbered 1"):
        replayed(EMPTY, records)


def test_records_without_directories_mean_replicas_from_before_there_were_any() -> None:
    record = PartitionRecord(
        partition_id=0, topic_id=ORDERS, replicas=[1, 2], isr=[1], leader=1, leader_epoch=0
    )
    image = replayed(EMPTY, [TopicRecord("orders", ORDERS), record])
    assert image.topics["orders"].partitions[0].directories == (MIGRATING_DIRECTORY,) * 2


def test_a_change_without_leader_keeps_the_term() -> None:
    image = image_with(topics={"orders": 1}, replicas=[1, 2], brokers=[1, 2])
    changed = replayed(image, [PartitionChangeRecord(0, ORDERS, isr=[1])])
    one = changed.topics["orders"].partitions[0]
    assert (one.isr, one.leader, one.leader_epoch, one.partition_epoch) == ((1,), 1, 0, 1)


def test_naming_the_same_leader_begins_a_new_term() -> None:
    image = image_with(topics={"orders": 1})
    changed = replayed(image, [PartitionChangeRecord(0, ORDERS, leader=1)])
    one = changed.topics["orders"].partitions[0]
    assert (one.leader, one.leader_epoch, one.partition_epoch) == (1, 1, 1)


def test_every_field_of_a_partition_can_change() -> None:
    image = image_with(topics={"orders": 1})
    record = PartitionChangeRecord(
        partition_id=0,
        topic_id=ORDERS,
        isr=[],
        leader=NO_LEADER,
        replicas=[1, 2],
        removing_replicas=[1],
        adding_replicas=[2],
        leader_recovery_state=1,
        directories=[b"a" * 16, b"b" * 16],
        eligible_leader_replicas=[1],
        last_known_elr=[2],
    )
    one = replayed(image, [record]).topics["orders"].partitions[0]
    assert (one.isr, one.leader, one.replicas) == ((), NO_LEADER, (1, 2))
    assert (one.removing, one.adding, one.leader_recovery_state) == ((1,), (2,), 1)
    assert (one.directories, one.elr, one.last_known_elr) == ((b"a" * 16, b"b" * 16), (1,), (2,))


def test_clearing_eligible_leaders_touches_only_partitions_that_have_some() -> None:
    image = image_with(topics={"orders": 2, "other": 1})
    image = replayed(
        image,
        [
            PartitionChangeRecord(1, ORDERS, eligible_leader_replicas=[2]),
            PartitionChangeRecord(0, topic_id("other"), last_known_elr=[1]),
        ],
    )
    one_cleared = replayed(image, [ClearElrRecord("orders")])
    assert one_cleared.topics["orders"].partitions[1].elr == ()
    assert one_cleared.topics["orders"].partitions[0].partition_epoch == 0
    assert one_cleared.topics["other"].partitions[0].last_known_elr == (1,)
    all_cleared = replayed(image, [ClearElrRecord("")])
    assert all_cleared.topics["other"].partitions[0].last_known_elr == ()


def test_a_removed_topic_takes_its_configs_along() -> None:
    image = image_with(topics={"orders": 1}, configs={"orders": {"retention.ms": "1"}})
    image = replayed(image, [RemoveTopicRecord(ORDERS)])
    assert (image.topics, image.topics_by_id, image.configs) == ({}, {}, {})


def test_a_topic_can_be_removed_and_made_again_at_once() -> None:
    image = image_with(topics={"orders": 2})
    again = b"n" * 16
    image = replayed(
        image,
        [
            RemoveTopicRecord(ORDERS),
            TopicRecord("orders", again),
            PartitionRecord(0, again, [1], [1], leader=1),
        ],
    )
    assert image.topics["orders"].id == again
    assert ORDERS not in image.topics_by_id


def test_a_topic_created_and_removed_at_once_leaves_nothing() -> None:
    delta = ImageDelta(EMPTY)
    delta.replay(TopicRecord("orders", ORDERS))
    delta.replay(RemoveTopicRecord(ORDERS))
    assert delta.image(1, 1, 0).topics == {}
    assert (delta.topics_created, delta.topics_deleted) == ([], [])


@pytest.mark.parametrize(
    "record",
    [
        partition("unknown", 0),
        PartitionChangeRecord(0, topic_id("unknown"), leader=1),
        PartitionChangeRecord(7, ORDERS, leader=1),
        RemoveTopicRecord(topic_id("unknown")),
        TopicRecord("again", ORDERS),
        TopicRecord("orders", b"x" * 16),
        ClearElrRecord("unknown"),
        UnregisterBrokerRecord(9, 0),
        BrokerRegistrationChangeRecord(1, broker_epoch=7),
        FenceBrokerRecord(9, 0),
        BeginTransactionRecord(),
    ],
)
def test_a_record_that_does_not_fit_is_refused(record: Message) -> None:
    with pytest.raises(UnreplayableRecord):
        replayed(image_with(topics={"orders": 1}), [record])


def test_a_broker_is_fenced_and_unfenced_by_old_and_new_records() -> None:
    image = image_with()
    fenced = replayed(image, [FenceBrokerRecord(1, 101)])
    assert not fenced.is_active(1)
    assert replayed(fenced, [UnfenceBrokerRecord(1, 101)]).is_active(1)
    fenced = replayed(image, [BrokerRegistrationChangeRecord(1, 101, fenced=1)])
    assert not fenced.is_active(1)
    assert replayed(fenced, [BrokerRegistrationChangeRecord(1, 101, fenced=-1)]).is_active(1)


def test_a_broker_in_controlled_shutdown_is_not_active_but_not_fenced() -> None:
    image = replayed(
        image_with(), [BrokerRegistrationChangeRecord(1, 101, in_controlled_shutdown=1)]
    )
    assert not image.is_active(1)
    assert not image.brokers[1].fenced


def test_directories_of_a_broker_change_only_if_named() -> None:
    image = image_with()
    before = image.brokers[1].directories
    image = replayed(image, [BrokerRegistrationChangeRecord(1, 101, cordoned_log_dirs=[])])
    assert image.brokers[1].directories == before
    assert image.brokers[1].cordoned_directories == ()
    image = replayed(image, [BrokerRegistrationChangeRecord(1, 101, log_dirs=[b"d" * 16])])
    assert image.brokers[1].directories == (b"d" * 16,)
    assert image.brokers[1].cordoned_directories == ()


def test_a_broker_can_be_forgotten() -> None:
    assert replayed(image_with(), [UnregisterBrokerRecord(1, 101)]).brokers == {}


def test_configs_are_set_changed_and_removed() -> None:
    broker = ConfigResource(ResourceType.BROKER, "")
    image = replayed(EMPTY, [ConfigRecord(4, "", "a", "1"), ConfigRecord(4, "", "b", "2")])
    assert image.configs == {broker: {"a": "1", "b": "2"}}
    image = replayed(image, [ConfigRecord(4, "", "a", "3"), ConfigRecord(4, "", "b", None)])
    assert image.configs == {broker: {"a": "3"}}
    assert replayed(image, [ConfigRecord(4, "", "a", None)]).configs == {}


def test_a_feature_at_level_zero_is_gone() -> None:
    image = replayed(EMPTY, [FeatureLevelRecord("group.version", 1)])
    assert image.features == {"group.version": 1}
    assert replayed(image, [FeatureLevelRecord("group.version", 0)]).features == {}


def test_quotas_of_an_entity_are_kept_by_key() -> None:
    entity = [EntityData("user", "ada"), EntityData("client-id", None)]
    key = (("client-id", None), ("user", "ada"))
    image = replayed(
        EMPTY, [ClientQuotaRecord(entity, "a", 1.5), ClientQuotaRecord(entity[::-1], "b", 2)]
    )
    assert image.client_quotas == {key: {"a": 1.5, "b": 2}}
    image = replayed(image, [ClientQuotaRecord(entity, "a", remove=True)])
    assert image.client_quotas == {key: {"b": 2}}
    assert replayed(image, [ClientQuotaRecord(entity, "b", remove=True)]).client_quotas == {}


def test_security_records_are_kept_until_removed() -> None:
    acl = AccessControlEntryRecord(b"a" * 16, principal="User:ada")
    credential = UserScramCredentialRecord("ada", 1, b"salt")
    token = DelegationTokenRecord(owner="User:ada", token_id="t1")
    image = replayed(EMPTY, [acl, credential, token])
    assert image.acls == {b"a" * 16: acl}
    assert image.scram_credentials == {(1, "ada"): credential}
    assert image.delegation_tokens == {"t1": token}
    image = replayed(
        image,
        [
            RemoveAccessControlEntryRecord(b"a" * 16),
            RemoveUserScramCredentialRecord("ada", 1),
            RemoveDelegationTokenRecord("t1"),
        ],
    )
    assert (image.acls, image.scram_credentials, image.delegation_tokens) == ({}, {}, {})


def test_controllers_and_producer_ids_are_kept() -> None:
    image = replayed(EMPTY, [RegisterControllerRecord(7), ProducerIdsRecord(1, 1, 2000)])
    assert list(image.controllers) == [7]
    assert image.next_producer_id == 2000


def test_irrelevant_records_change_only_the_offset() -> None:
    image = image_with(topics={"orders": 1})
    after = replayed(image, [NoOpRecord(), ZkMigrationStateRecord(0)])
    assert after.offset == image.offset + 2
    assert after.topics is image.topics


def test_an_image_is_never_changed_by_a_later_one() -> None:
    image = image_with(topics={"orders": 1})
    before = (dict(image.topics), dict(image.configs), dict(image.brokers))
    records: list[Message] = [PartitionChangeRecord(0, ORDERS, leader=1), registered(2)]
    records += [ConfigRecord(2, "orders", "retention.ms", "1"), TopicRecord("new", b"n" * 16)]
    replayed(image, records)
    assert (image.topics, image.configs, image.brokers) == before


def test_unchanged_parts_of_an_image_are_shared() -> None:
    image = image_with(topics={"orders": 1, "other": 1})
    after = replayed(image, [PartitionChangeRecord(0, ORDERS, leader=1)])
    assert after.topics["other"] is image.topics["other"]
    assert after.configs is image.configs


def test_equal_replica_lists_are_one_object() -> None:
    """Thousands of partitions have the same few lists; a copy of each would cost megabytes."""
    first, second = image_with(topics={"orders": 2}).topics["orders"].partitions
    assert first.replicas is second.replicas
    assert first.replicas is first.isr
    assert first.directories is second.directories


def test_a_delta_lists_its_changes() -> None:
    delta = ImageDelta(image_with(topics={"orders": 1, "gone": 1}))
    delta.replay(TopicRecord("new", b"n" * 16))
    delta.replay(PartitionChangeRecord(0, ORDERS, leader=1))
    delta.replay(RemoveTopicRecord(topic_id("gone")))
    delta.replay(ConfigRecord(2, "orders", "retention.ms", "1"))
    assert delta.topics_created == [b"n" * 16]
    assert delta.topics_changed == [ORDERS]
    assert [topic.name for topic in delta.topics_deleted] == ["gone"]
    assert (ResourceType.TOPIC, "orders") in delta.configs_changed
