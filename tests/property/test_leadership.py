"""Leaders, ISRs and eligible leaders of a partition against a model of its records.

The model has the length of each replica's log and the number of committed records. A power cut may
take records that were not synced, which only eligible leader replicas make up for; so without them
brokers only crash.
"""

from typing import Any

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.leadership import RECOVERING
from headrace.controller.periodic import (
    balance_leaders,
    fence_stale_broker,
    retry_unclean_elections,
)
from headrace.controller.requests import Context, decide
from headrace.controller.sessions import BrokerSessions
from headrace.metadata.features import SUPPORTED
from headrace.metadata.image import NO_LEADER, MetadataImage, PartitionImage
from headrace.protocol.message import Message
from headrace.protocol.schemas.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from headrace.protocol.schemas.broker_heartbeat import BrokerHeartbeatRequest
from headrace.protocol.schemas.broker_registration import BrokerRegistrationRequest, Feature
from headrace.protocol.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from headrace.protocol.schemas.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.schemas.unregister_broker import UnregisterBrokerRequest
from headrace.settings.broker import BrokerSettings
from tests.builders.metadata_images import (
    KAFKA_LEVELS,
    applied,
    directory_id,
    image_with,
    partition,
    replayed,
    topic_id,
)

CONTROLLER = 9
BROKERS = (1, 2, 3)
SOLE = 2
"""The broker that has the only replica of partition 1."""
TIMEOUT_MS = 9000

brokers = st.sampled_from(BROKERS)


class Partitions(RuleBasedStateMachine):
    image: MetadataImage

    @initialize(uses_elr=st.booleans(), min_isr=st.integers(1, 3))
    def create(self, *, uses_elr: bool, min_isr: int) -> None:
        levels = KAFKA_LEVELS if uses_elr else {"metadata.version": 25}
        image = image_with(topics={"orders": 1}, brokers=BROKERS, replicas=BROKERS, levels=levels)
        self.image = replayed(image, [partition("orders", 1, replicas=[SOLE])])
        self.uses_elr, self.min_isr = uses_elr, min_isr
        self.allows_unclean = self.is_forced = False
        self.down: set[int] = set()
        self.stopped_at: dict[int, int] = {}
        """The epoch that each broker wrote when it stopped cleanly."""
        self.incarnation = 0
        self.log = dict.fromkeys(BROKERS, 0)
        self.committed = 0
        self.has_lost_eligible = False
        self.now_ms = 0
        self.sessions = BrokerSessions(self.image, 0, TIMEOUT_MS)
        self.configure("min.insync.replicas", str(min_isr))

    # --- records --------------------------------------------------------------------------------

    @rule(count=st.integers(1, 5), is_followed=st.booleans())
    def produce(self, count: int, *, is_followed: bool) -> None:
        if not self.serves():
            return
        self.log[self.orders.leader] += count
        if is_followed:
            for member in filter(self.is_up, self.orders.isr):
                self.log[member] = self.log[self.orders.leader]
        self.commit()

    @rule(follower=brokers)
    def follow(self, follower: int) -> None:
        if self.serves() and self.is_up(follower):
            self.log[follower] = self.log[self.orders.leader]
            self.commit()

    @rule(member=brokers)
    def leave_the_isr(self, member: int) -> None:
        if self.serves() and member != self.orders.leader:
            self.alter([one for one in self.orders.isr if one != member])

    @rule(member=brokers)
    def join_the_isr(self, member: int) -> None:
        """A follower that has all records joins; the controller may refuse a fenced one."""
        if not self.serves() or member in self.orders.isr:
            return
        if self.log[member] == self.log[self.orders.leader]:
            self.alter([*self.orders.isr, member])

    # --- brokers --------------------------------------------------------------------------------

    @rule(broker=brokers, lost=st.integers(0, 3))
    def crash(self, broker: int, lost: int) -> None:
        self.down.add(broker)
        self.stopped_at.pop(broker, None)
        if self.uses_elr:
            self.log[broker] = max(0, self.log[broker] - lost)

    @rule(broker=brokers, lost=st.integers(1, 5))
    def crash_and_start(self, broker: int, lost: int) -> None:
        """A crash that ends before the controller notices it."""
        self.crash(broker, lost)
        self.start(broker)
        self.heartbeat(broker, want_fence=False)

    @rule(broker=brokers)
    def stop(self, broker: int) -> None:
        """Take one step of a controlled shutdown."""
        if not self.is_registered(broker):
            return
        answer = self.beat(broker, want_shut_down=True)
        if answer.should_shut_down:
            self.down.add(broker)
            self.stopped_at[broker] = self.image.brokers[broker].epoch

    @rule(broker=brokers)
    def start(self, broker: int) -> None:
        if broker not in self.down:
            return
        self.sessions.expire(broker)
        self.incarnation += 1
        request = BrokerRegistrationRequest(
            broker_id=broker,
            incarnation_id=bytes([self.incarnation % 256]) * 16,
            features=[Feature(name, *levels) for name, levels in SUPPORTED.items()],
            rack=None,
            log_dirs=[directory_id(broker)],
            previous_broker_epoch=self.stopped_at.pop(broker, -1),
        )
        self.ask(request)
        self.down.discard(broker)

    @rule(broker=brokers, want_fence=st.sampled_from([False, False, True]))
    def heartbeat(self, broker: int, *, want_fence: bool) -> None:
        if self.is_registered(broker):
            self.beat(broker, want_fence=want_fence)

    @rule()
    def expire(self) -> None:
        """A session ends: of a broker that is down, or too slow."""
        stale = self.sessions.view.stalest(self.image)
        if stale is not None:
            self.sessions.expire(stale)
            self.write(fence_stale_broker(self.image, self.sessions.view, self.defaults(), 0))

    @rule(broker=brokers)
    def unregister(self, broker: int) -> None:
        if broker in self.down and broker in self.image.brokers:
            self.has_lost_eligible = True
            self.ask(UnregisterBrokerRequest(broker))

    @rule()
    def change_controllers(self) -> None:
        self.sessions = BrokerSessions(self.image, self.now_ms, TIMEOUT_MS)

    # --- operators ------------------------------------------------------------------------------

    @rule()
    def balance(self) -> None:
        self.write(balance_leaders(self.image, self.defaults()))

    @rule(is_unclean=st.booleans())
    def elect(self, *, is_unclean: bool) -> None:
        self.is_forced = is_unclean
        wanted = [TopicPartitions("orders", [0, 1])]
        self.ask(ElectLeadersRequest(election_type=int(is_unclean), topic_partitions=wanted))
        self.is_forced = False

    @rule()
    def retry(self) -> None:
        self.write(retry_unclean_elections(self.image, self.defaults()))

    @rule(min_isr=st.integers(1, 3))
    def change_min_isr(self, min_isr: int) -> None:
        self.has_lost_eligible |= min_isr != self.min_isr
        self.min_isr = min_isr
        self.configure("min.insync.replicas", str(min_isr))

    @precondition(lambda self: not self.allows_unclean)
    @rule()
    def allow_unclean_elections(self) -> None:
        self.allows_unclean = True
        self.configure("unclean.leader.election.enable", "true")

    @precondition(lambda self: self.allows_unclean)
    @rule()
    def forbid_unclean_elections(self) -> None:
        self.allows_unclean = False
        self.configure("unclean.leader.election.enable", "false")

    # --- helpers --------------------------------------------------------------------------------

    @property
    def orders(self) -> PartitionImage:
        return self.image.topics["orders"].partitions[0]

    def is_registered(self, broker: int) -> bool:
        return broker not in self.down and broker in self.image.brokers

    def is_up(self, broker: int) -> bool:
        return broker not in self.down and self.image.is_active(broker)

    def serves(self) -> bool:
        return self.orders.leader != NO_LEADER and self.is_up(self.orders.leader)

    def commit(self) -> None:
        isr = self.orders.isr
        if len(isr) >= self.min_isr:
            self.committed = max(self.committed, min(self.log[member] for member in isr))

    def configure(self, name: str, value: str) -> None:
        resource = AlterConfigsResource(2, "orders", [AlterableConfig(name, 0, value)])
        self.ask(IncrementalAlterConfigsRequest([resource]))

    def alter(self, isr: list[int]) -> None:
        present = self.orders
        change = AlterPartitionRequestPartitionData(
            leader_epoch=present.leader_epoch,
            new_isr_with_epochs=[
                BrokerState(member, self.image.brokers[member].epoch)
                for member in isr
                if member in self.image.brokers
            ],
            partition_epoch=present.partition_epoch,
        )
        topic = AlterPartitionRequestTopicData(topic_id("orders"), [change])
        leader = self.image.brokers[present.leader]
        self.ask(AlterPartitionRequest(leader.id, leader.epoch, [topic]))
        self.commit()

    def beat(self, broker: int, *, want_fence: bool = False, want_shut_down: bool = False) -> Any:
        epoch, applied_offset = self.image.brokers[broker].epoch, self.image.offset
        return self.ask(
            BrokerHeartbeatRequest(broker, epoch, applied_offset, want_fence, want_shut_down)
        )

    def defaults(self) -> ClusterDefaults:
        return ClusterDefaults()

    def ask(self, request: Message) -> Any:
        self.now_ms += 1
        self.sessions.heard(request, self.now_ms)
        settings = BrokerSettings()
        context = Context(
            node_id=CONTROLLER,
            settings=settings,
            defaults=self.defaults(),
            version=request.VERSIONS[-1],
            next_offset=self.image.offset + 1,
            kraft_version=1,
            now_ms=self.now_ms,
            sessions=self.sessions.view,
        )
        decision = decide(self.image, request, context)
        self.write(decision)
        self.sessions.decided(request, decision.reply, self.image.offset + 1, self.now_ms)
        return decision.reply

    def write(self, decision: Decision[Any]) -> None:
        """Replay the records of a decision one by one, and check each change of a partition."""
        for record in decision.records:
            before = self.image.topics["orders"].partitions
            self.image = applied(self.image, Decision([record], None))
            after = self.image.topics["orders"].partitions
            for old, new in zip(before, after, strict=True):
                self.check_epochs(old, new)
            self.check_election(before[0], after[0])

    def check_epochs(self, old: PartitionImage, new: PartitionImage) -> None:
        assert new.leader_epoch >= old.leader_epoch
        assert new.partition_epoch == old.partition_epoch + (new != old)
        assert new.leader == old.leader or new.leader_epoch == old.leader_epoch + 1

    def check_election(self, old: PartitionImage, new: PartitionImage) -> None:
        leader = new.leader
        if leader in (old.leader, NO_LEADER) or leader in old.isr or leader in old.elr:
            return
        better = filter(self.image.is_active, (*old.isr, *old.elr))
        is_last_known = old.last_known_elr == (leader,) and not list(better)
        assert self.allows_unclean or self.is_forced or is_last_known
        assert (new.isr, new.leader_recovery_state) == ((leader,), RECOVERING)
        self.committed = min(self.committed, self.log[leader])

    # --- what holds at all times ----------------------------------------------------------------

    @invariant()
    def the_leader_has_all_committed_records(self) -> None:
        if self.serves():
            assert self.log[self.orders.leader] >= self.committed

    @invariant()
    def the_leader_is_an_active_member_of_the_isr(self) -> None:
        if self.orders.leader != NO_LEADER:
            assert self.orders.leader in self.orders.isr
            assert all(self.image.is_active(member) for member in self.orders.isr)

    @invariant()
    def replicas_are_in_sync_or_eligible_but_not_both(self) -> None:
        isr, elr = self.orders.isr, self.orders.elr
        assert len({*isr, *elr}) == len(isr) + len(elr) <= len(BROKERS)
        assert not elr or (self.uses_elr and len(isr) < self.min_isr)

    @invariant()
    def a_partition_without_leader_keeps_what_the_next_one_is_elected_from(self) -> None:
        here = self.orders
        if here.isr or self.has_lost_eligible:
            return
        assert self.uses_elr
        assert here.elr or here.last_known_elr

    @invariant()
    def a_sole_replica_keeps_its_leader(self) -> None:
        sole = self.image.topics["orders"].partitions[1]
        if SOLE in self.image.brokers and not self.has_lost_eligible:
            assert (sole.leader, sole.isr) == (SOLE, (SOLE,))


TestPartitions = Partitions.TestCase
TestPartitions.settings = hypothesis_settings(stateful_step_count=60, deadline=None)
