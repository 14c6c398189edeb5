"""The streams group protocol: topologies, tasks, joining, reconciling, leaving."""

from typing import Any

import pytest

from headrace.coordination.effects import RecordFacts
from headrace.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    InvalidRequest,
    KafkaError,
    StaleMemberEpoch,
    StreamsInvalidTopology,
    UnknownMemberId,
    UnsupportedVersion,
)
from headrace.groups.epochs.members import MemberState
from headrace.groups.group import LateCommit
from headrace.groups.offsets import check_commit
from headrace.groups.streams.replies import StreamsAnswer
from headrace.groups.streams.topology import StatusCode
from headrace.protocol.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.builders.consumer_groups import GROUP
from tests.builders.metadata_images import image_with, topic_id
from tests.builders.streams_groups import COUNTING, TOPICS, Application, rows

EVERY = {("0", 0), ("0", 1), ("0", 2), ("1", 0), ("1", 1), ("1", 2)}


def told(answer: StreamsAnswer) -> set[tuple[str, int]]:
    tasks = answer.response.active_tasks or []
    return {(one.subtopology_id, number) for one in tasks for number in one.partitions}


def codes(answer: StreamsAnswer) -> list[int]:
    return [one.status_code for one in answer.response.status or []]


def test_the_first_member_runs_every_task() -> None:
    app = Application()
    assert told(app.start("ada")) == EVERY
    assert app.streams.state_name == "Stable"


def test_members_share_tasks_and_none_is_run_twice() -> None:
    app = Application()
    app.start("ada")
    app.wait(1_001)
    app.start("bob")
    assert app.streams.members["bob"].state == MemberState.UNRELEASED
    app.beat("ada", active_tasks=rows(frozenset(EVERY)))
    assert app.streams.members["ada"].state == MemberState.UNREVOKED
    app.settle()
    shares = app.running()
    assert [len(one) for one in shares.values()] == [3, 3]
    assert set().union(*shares.values()) == EVERY


def test_tasks_of_a_departed_member_are_reassigned() -> None:
    app = Application()
    app.start("ada")
    app.start("bob")
    app.settle()
    app.ask(StreamsGroupHeartbeatRequest(GROUP, "bob", -1))
    app.settle()
    assert app.running() == {"ada": EVERY}


def test_a_silent_member_is_removed() -> None:
    app = Application()
    app.start("ada")
    app.wait(45_001)
    assert app.streams.state_name == "Empty"
    with pytest.raises(UnknownMemberId):
        app.beat("ada", 3)


def test_missing_internal_topics_are_requested() -> None:
    app = Application({"lines": 3})
    answer = app.start("ada")
    assert codes(answer) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert [(one.name, one.partitions) for one in answer.needs] == [
        ("by-word", 3),
        ("changelog", 3),
    ]
    assert app.streams.state_name == "NotReady"
    app.image = image_with(topics=TOPICS)
    app.settle()
    assert app.running() == {"ada": EVERY}


def test_missing_source_topics_are_waited_for() -> None:
    app = Application({})
    answer = app.start("ada")
    assert codes(answer) == [StatusCode.MISSING_SOURCE_TOPICS]
    assert answer.needs == ()


def test_an_internal_topic_of_the_wrong_size_is_reported() -> None:
    answer = Application({**TOPICS, "changelog": 5}).start("ada")
    assert codes(answer) == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]


def test_a_new_group_waits_for_more_members() -> None:
    app = Application(group_streams_initial_rebalance_delay_ms=3_000)
    answer = app.start("ada")
    assert codes(answer) == [StatusCode.ASSIGNMENT_DELAYED]
    assert answer.response.member_epoch > 0
    app.start("bob")
    app.wait(3_001)
    assert {len(told(app.beat(one))) for one in ("ada", "bob")} == {3}


def test_copies_of_state_live_in_other_processes() -> None:
    app = Application(group_streams_num_standby_replicas=1)
    for number in range(4):
        app.start(f"thread-{number}", f"process-{number % 2}")
    app.settle()
    members = app.streams.members.values()
    copies = [(task, one.process_id) for one in members for task in one.assigned.standby]
    assert sorted(task for task, _ in copies) == [("1", 0), ("1", 1), ("1", 2)]
    runner = {task: one.process_id for one in members for task in one.assigned.active}
    assert all(runner[task] != process for task, process in copies)


def test_members_with_a_standby_copy_take_over() -> None:
    app = Application(group_streams_num_standby_replicas=1)
    for name in ("ada", "bob", "cyd"):
        app.start(name)
    app.settle()
    ada = app.streams.members["ada"]
    keepers = {
        task: one.id
        for one in app.streams.members.values()
        for task in one.assigned.standby & ada.assigned.active
    }
    app.ask(StreamsGroupHeartbeatRequest(GROUP, "ada", -1))
    app.settle()
    after = app.running()
    assert all(task in after[keeper] for task, keeper in keepers.items())


def test_tasks_are_sent_again_to_a_member_that_missed_them() -> None:
    """The answer was lost: the member reports no tasks in its last epoch."""
    app = Application(group_streams_initial_rebalance_delay_ms=3_000)
    epoch = app.start("ada").response.member_epoch
    app.wait(3_001)
    assert told(app.beat("ada", epoch)) == EVERY
    nothing: dict[str, list[object]] = {"active_tasks": [], "standby_tasks": []}
    assert told(app.beat("ada", epoch, **nothing)) == EVERY
    assert app.beat("ada").response.active_tasks is None


def test_endpoints_of_all_members_are_sent() -> None:
    from headrace.protocol.schemas.streams_group_heartbeat import (
        StreamsGroupHeartbeatRequestEndpoint,
    )

    app = Application()
    here = StreamsGroupHeartbeatRequestEndpoint("host", 7070)
    answer = app.start("ada", user_endpoint=here)
    (place,) = answer.response.partitions_by_user_endpoint or []
    assert (place.user_endpoint.host, place.user_endpoint.port) == ("host", 7070)
    assert {one.topic: one.partitions for one in place.active_partitions} == {
        "lines": [0, 1, 2],
        "by-word": [0, 1, 2],
    }


def test_a_member_may_request_a_shutdown_of_the_application() -> None:
    app = Application()
    app.start("ada")
    app.start("bob")
    app.ask(StreamsGroupHeartbeatRequest(GROUP, "bob", -1, shutdown_application=True))
    assert StatusCode.SHUTDOWN_APPLICATION in codes(app.beat("ada"))


def test_the_log_makes_the_same_group_again() -> None:
    app = Application(group_streams_num_standby_replicas=1)
    for name in ("ada", "bob"):
        app.start(name)
    app.settle()
    before = app.streams
    app.reload()
    assert app.streams.members == before.members
    assert app.streams.target == before.target
    assert app.streams.topology == before.topology
    assert app.streams.epoch == before.epoch
    for offset, record in enumerate(app.streams.tombstones()):
        app.state.replay(record, RecordFacts(offset, 0))
    assert GROUP not in app.state.groups


def test_another_topology_is_refused() -> None:
    app = Application()
    app.start("ada")
    other = Topology(0, [Subtopology("0", ["lines"], [], [], [], [], [])])
    with pytest.raises(InvalidRequest, match="Topology updates"):
        app.start("bob", topology=other)


def test_a_stale_epoch_is_fenced() -> None:
    app = Application()
    app.start("ada")
    with pytest.raises(FencedMemberEpoch):
        app.beat("ada", 99)


def test_a_lost_answer_may_be_requested_again() -> None:
    app = Application()
    app.start("ada")
    app.start("bob")
    app.settle()
    member = app.streams.members["ada"]
    assert app.beat("ada", member.previous_epoch).response.member_epoch == member.epoch
    assert member.state == MemberState.STABLE


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"member_id": " ", "member_epoch": 1}, InvalidRequest),
        ({"member_id": "ada", "member_epoch": -3}, InvalidRequest),
        ({"member_id": "ada", "member_epoch": 1, "instance_id": "desk"}, InvalidRequest),
        ({"member_id": "ada", "member_epoch": 1, "active_tasks": []}, InvalidRequest),
        ({"member_id": "ada", "member_epoch": 0}, InvalidRequest),
        ({"member_id": "ada", "member_epoch": 0, "rebalance_timeout_ms": 1}, InvalidRequest),
        ({"member_id": "ada", "member_epoch": 1, "topology": COUNTING}, InvalidRequest),
        ({"member_id": "ada", "member_epoch": 1}, GroupIdNotFound),
        (
            {
                "member_id": "ada",
                "member_epoch": 0,
                "rebalance_timeout_ms": 1,
                "topology": Topology(
                    0, [Subtopology("0", ["lines"], [], [TopicInfo("changelog", 2)])]
                ),
            },
            StreamsInvalidTopology,
        ),
    ],
)
def test_inconsistent_heartbeats_are_rejected(
    fields: dict[str, Any], error: type[KafkaError]
) -> None:
    app = Application()
    with pytest.raises(error):
        app.ask(StreamsGroupHeartbeatRequest(GROUP, **fields))
    assert app.log == []


def shared() -> tuple[Application, int]:
    """Ada ran every task in her first epoch and three of them since; the first epoch too."""
    app = Application()
    app.start("ada")
    first = app.streams.members["ada"].epoch
    app.wait(1_001)
    app.start("bob")
    app.settle()
    return app, first


def commit(app: Application, member_id: str, epoch: int, version: int = 9) -> None:
    check_commit(app.state, GROUP, member_id, None, epoch, version=version)


def test_a_late_commit_counts_for_tasks_that_ran_throughout() -> None:
    """DEL-2: a commit that was under way when the epoch rose is not lost."""
    app, first = shared()
    ada = app.streams.members["ada"]
    assert ada.epoch > first
    commit(app, "ada", ada.epoch)
    with pytest.raises(LateCommit) as late:
        commit(app, "ada", first)
    for subtopology, topic in (("0", "lines"), ("1", "by-word")):
        for number in range(3):
            place = (topic, topic_id(topic), number)
            if (subtopology, number) in ada.assigned.active:
                late.value.check([place])
            else:
                with pytest.raises(StaleMemberEpoch, match="is not the member's"):
                    late.value.check([place])


def test_a_late_commit_does_not_count_for_a_task_that_came_later() -> None:
    app, _first = shared()
    bob = app.streams.members["bob"]
    app.ask(StreamsGroupHeartbeatRequest(GROUP, "ada", -1))
    app.settle()
    gained = min(number for one, number in EVERY - bob.assigned.active if one == "0")
    with pytest.raises(LateCommit) as late:
        commit(app, "bob", bob.epoch)
    with pytest.raises(StaleMemberEpoch, match="was assigned"):
        late.value.check([("lines", topic_id("lines"), gained)])


def test_commits_of_unknown_members_and_future_epochs_are_rejected() -> None:
    app, _ = shared()
    with pytest.raises(UnknownMemberId):
        commit(app, "nobody", 1)
    with pytest.raises(StaleMemberEpoch, match="newer"):
        commit(app, "ada", 99)
    with pytest.raises(LateCommit) as late:
        commit(app, "ada", 0)
    with pytest.raises(StaleMemberEpoch, match="not a source topic"):
        late.value.check([("changelog", topic_id("changelog"), 0)])


def test_members_commit_with_a_version_that_has_epochs() -> None:
    """As Kafka: also in the right epoch."""
    app, _ = shared()
    with pytest.raises(UnsupportedVersion):
        commit(app, "ada", app.streams.members["ada"].epoch, version=8)
