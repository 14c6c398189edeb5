"""The active controller fences silent brokers and moves leaders without a request."""

from headrace.controller.decision import ClusterDefaults
from headrace.controller.periodic import (
    ELECTIONS_MAX,
    REMOVALS_MAX,
    balance_leaders,
    fence_stale_broker,
    no_op,
    remove_expired_tokens,
    retry_unclean_elections,
)
from headrace.controller.sessions import BrokerSessions
from headrace.metadata.image import NO_LEADER
from headrace.protocol.schemas.broker_heartbeat import BrokerHeartbeatRequest
from headrace.protocol.schemas.records.metadata import (
    BrokerRegistrationChangeRecord,
    DelegationTokenRecord,
    NoOpRecord,
    PartitionChangeRecord,
    RemoveDelegationTokenRecord,
)
from tests.builders.metadata_images import applied, image_with, replayed, topic_id, with_partition

DEFAULTS = ClusterDefaults()
UNCLEAN = ClusterDefaults(unclean_leader_election_enable=True)
TWO = image_with(topics={"orders": 2}, brokers=[1, 2], replicas=[1, 2])


def test_silent_brokers_are_fenced_one_at_a_time() -> None:
    image = image_with(topics={"orders": 1}, brokers=[1, 2, 3], replicas=[1, 2, 3])
    sessions = BrokerSessions(image, 0, 9000)
    sessions.heard(BrokerHeartbeatRequest(3, 103), 5000)
    sessions.heard(BrokerHeartbeatRequest(2, 102), 1000)
    fenced = []
    for _ in range(3):
        decision = fence_stale_broker(image, sessions.view, DEFAULTS, 10_001)
        fenced.append(decision.reply)
        image = applied(image, decision)
    assert fenced == [1, 2, None]
    partition = image.topics["orders"].partitions[0]
    assert (partition.leader, partition.isr) == (3, (3,))


def test_a_broker_whose_session_expires_early_is_fenced_early() -> None:
    sessions = BrokerSessions(TWO, 0, 9000)
    assert fence_stale_broker(TWO, sessions.view, DEFAULTS, 1).reply is None
    sessions.expire(2)
    assert fence_stale_broker(TWO, sessions.view, DEFAULTS, 1).reply == 2


def test_leadership_returns_to_preferred_replicas_in_sync() -> None:
    image = with_partition(TWO, "orders", 1, leader=2)
    decision = balance_leaders(image, DEFAULTS)
    assert not decision.reply
    assert applied(image, decision).topics["orders"].partitions[1].leader == 1
    assert list(balance_leaders(TWO, DEFAULTS).records) == []


def test_leadership_stays_while_the_preferred_replica_is_away_or_lags() -> None:
    lagging = with_partition(TWO, "orders", 1, leader=2, isr=[2])
    away = replayed(
        with_partition(TWO, "orders", 1, leader=2),
        [BrokerRegistrationChangeRecord(1, 101, fenced=1)],
    )
    for image in (lagging, away):
        assert list(balance_leaders(image, DEFAULTS).records) == []


def test_many_leaders_return_in_several_decisions() -> None:
    image = image_with(topics={"orders": ELECTIONS_MAX + 5}, brokers=[1, 2], replicas=[1, 2])
    moved = [
        PartitionChangeRecord(index, topic_id("orders"), leader=2)
        for index in range(ELECTIONS_MAX + 5)
    ]
    image = replayed(image, moved)
    first = balance_leaders(image, DEFAULTS)
    assert (len(first.records), first.reply) == (ELECTIONS_MAX, True)
    second = balance_leaders(applied(image, first), DEFAULTS)
    assert (len(second.records), second.reply) == (5, False)


def test_unclean_elections_are_tried_again_where_they_are_allowed() -> None:
    image = with_partition(TWO, "orders", 0, leader=NO_LEADER, isr=[1])
    image = replayed(image, [BrokerRegistrationChangeRecord(1, 101, fenced=1)])
    assert list(retry_unclean_elections(image, DEFAULTS).records) == []
    image = applied(image, retry_unclean_elections(image, UNCLEAN))
    partition = image.topics["orders"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), 1)


def test_a_record_without_content_moves_the_high_watermark() -> None:
    (record,) = no_op().records
    assert record.message == NoOpRecord()


def test_expired_tokens_are_removed_and_others_stay() -> None:
    tokens = [
        DelegationTokenRecord(
            max_timestamp=high, expiration_timestamp=end, token_id=f"{high} {end}"
        )
        for high, end in ((500, 400), (500, 399), (399, 500))
    ]
    image = replayed(image_with(), tokens)
    decision = remove_expired_tokens(image, 400)
    assert decision.reply == 2
    assert [one.message for one in decision.records] == [
        RemoveDelegationTokenRecord("500 399"),
        RemoveDelegationTokenRecord("399 500"),
    ]
    assert remove_expired_tokens(applied(image, decision), 400).records == []


def test_many_expired_tokens_are_removed_in_several_decisions() -> None:
    count = REMOVALS_MAX + 5
    image = replayed(
        image_with(), [DelegationTokenRecord(token_id=str(one)) for one in range(count)]
    )
    first = remove_expired_tokens(image, 1)
    second = remove_expired_tokens(applied(image, first), 1)
    assert (first.reply, second.reply) == (REMOVALS_MAX, 5)
