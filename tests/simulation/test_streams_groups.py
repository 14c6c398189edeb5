"""Streams groups under faults: threads start, stop, die, dawdle; messages are lost and repeated.

A simulated thread does what Kafka Streams does: it stops the tasks that an answer does not list,
reports it with its next heartbeat, abandons all when it is fenced, and commits what its tasks have
read. Threads share processes, in which the state of a task lives once. Failing seeds repeat.
"""

import random
from collections import Counter
from contextlib import suppress

import pytest

from headrace.errors import FencedMemberEpoch, GroupIdNotFound, KafkaError, UnknownMemberId
from headrace.groups.streams.group import StreamsGroup
from headrace.groups.streams.replies import StreamsAnswer
from headrace.groups.streams.tasks import NO_TASKS, Task, Tasks
from headrace.protocol.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponseTaskIds,
)
from tests.builders.consumer_groups import GROUP
from tests.builders.member_commits import Ledger, Place
from tests.builders.metadata_images import image_with
from tests.builders.seeds import seeds
from tests.builders.streams_groups import Application, rows

SOURCES = {"0": "lines", "1": "by-word"}
STATEFUL = "1"


class Thread:
    """One member as it sees itself."""

    def __init__(self, app: Application, member_id: str, process_id: str) -> None:
        self.app = app
        self.id = member_id
        self.process_id = process_id
        self.epoch = 0
        self.tasks = NO_TASKS
        self.has_news = True

    @property
    def places(self) -> set[Place]:
        return {(SOURCES[part], number) for part, number in self.tasks.active}

    def beat(self, chance: random.Random, *, loss: float) -> None:
        """Send a heartbeat; the request or its answer may be lost, or arrive twice."""
        if chance.random() < loss:
            self.has_news = True  # After a timeout a client reports everything again.
            return
        answers = [self._send() for _ in range(1 + (chance.random() < loss))]
        if chance.random() < loss:
            self.has_news = True
            return
        self._take(answers[0])

    def leave(self) -> None:
        with suppress(GroupIdNotFound, UnknownMemberId):  # It may be removed already.
            self.app.ask(StreamsGroupHeartbeatRequest(GROUP, self.id, -1))

    def abandon(self) -> None:
        self.epoch, self.tasks, self.has_news = 0, NO_TASKS, True

    def _send(self) -> StreamsAnswer | KafkaError:
        try:
            if self.epoch == 0:
                return self.app.start(self.id, self.process_id)
            return self.app.ask(self._heartbeat())
        except KafkaError as error:
            return error

    def _heartbeat(self) -> StreamsGroupHeartbeatRequest:
        request = StreamsGroupHeartbeatRequest(GROUP, self.id, self.epoch)
        if self.has_news:
            request.active_tasks = rows(self.tasks.active)
            request.standby_tasks = rows(self.tasks.standby)
            request.warmup_tasks = []
        return request

    def _take(self, answer: StreamsAnswer | KafkaError) -> None:
        if isinstance(answer, (FencedMemberEpoch, UnknownMemberId)):
            self.abandon()
            return
        assert not isinstance(answer, KafkaError), answer
        response = answer.response
        self.epoch = response.member_epoch
        self.has_news = False
        if response.active_tasks is not None and response.standby_tasks is not None:
            assigned = Tasks(_tasks(response.active_tasks), _tasks(response.standby_tasks))
            self.has_news = assigned != self.tasks  # It reports its tasks with the next heartbeat.
            self.tasks = assigned


def _tasks(assigned: list[StreamsGroupHeartbeatResponseTaskIds]) -> frozenset[Task]:
    return frozenset((one.subtopology_id, number) for one in assigned for number in one.partitions)


class Faults:
    """An application with some threads, and what befalls them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.size = self.chance.randint(1, 5)
        self.standbys = self.chance.choice((0, 1, 2))
        self.loss = self.chance.choice((0.0, 0.1, 0.3))
        self.app = Application(
            self.topics,
            group_streams_num_standby_replicas=self.standbys,
            group_streams_initial_rebalance_delay_ms=self.chance.choice((0, 3_000)),
        )
        self.threads: list[Thread] = []
        self.born = 0
        self.ledger = Ledger(self.app)

    @property
    def topics(self) -> dict[str, int]:
        return {"lines": self.size, "by-word": self.size, "changelog": self.size}

    def step(self) -> None:
        chance = self.chance
        self.app.wait(chance.randint(1, 3_000))
        self._bury()
        self._read_on()
        happening = chance.random()
        if happening < 0.08 or not self.threads:
            self._arrive()
        elif happening < 0.12:
            self.threads.pop(chance.randrange(len(self.threads))).leave()
        elif happening < 0.15:
            self.threads.pop(chance.randrange(len(self.threads)))  # Dies without a word.
        elif happening < 0.16:
            self._grow()
        elif happening < 0.18:
            self.app.reload()
        else:
            chance.choice(self.threads).beat(chance, loss=self.loss)

    def calm(self) -> None:
        """No more changes: everyone beats until all is at rest."""
        for _ in range(80):
            self.app.wait(1_001)
            self._bury()
            for thread in self.threads:
                thread.beat(self.chance, loss=0.0)
            self.check_owners()

    def _arrive(self) -> None:
        self.born += 1
        process = f"process-{self.chance.randint(1, 4)}"
        self.threads.append(Thread(self.app, f"thread-{self.born}", process))
        self.threads[-1].beat(self.chance, loss=self.loss)

    def _grow(self) -> None:
        """All topics get a partition more, as an operator adds them."""
        self.size += 1
        self.app.image = image_with(topics=self.topics)

    def _read_on(self) -> None:
        for thread in self.threads:
            self.ledger.own(thread.id, thread.places, is_fenced=thread.epoch == 0)
            if thread.epoch > 0 and self.chance.random() < 0.3:
                self.ledger.work(thread.id, thread.epoch, thread.places, self.chance)
        self.ledger.deliver(self.chance, loss=self.loss)

    def _bury(self) -> None:
        """A thread that got no answer for a whole session, or was removed, has stopped working."""
        group = self.app.state.groups.get(GROUP)
        for thread in self.threads:
            gone = not isinstance(group, StreamsGroup) or thread.id not in group.members
            if gone and thread.epoch:
                thread.abandon()

    def check_owners(self) -> None:
        """No task runs twice, and none is twice in a process: for the threads and the group."""
        _check_once([(one.process_id, one.tasks) for one in self.threads])
        group = self.app.state.groups.get(GROUP)
        if isinstance(group, StreamsGroup):
            _check_once(
                [
                    (one.process_id, held)
                    for one in group.members.values()
                    for held in (one.assigned, one.pending_revocation)
                ]
            )


def _check_once(held: list[tuple[str, Tasks]]) -> None:
    running = Counter(task for _, tasks in held for task in tasks.active)
    assert all(count == 1 for count in running.values()), f"run twice: {running}"
    kept = Counter((process, task) for process, tasks in held for task in tasks.active)
    kept.update((process, task) for process, tasks in held for task in tasks.standby)
    assert all(count == 1 for count in kept.values()), f"twice in a process: {kept}"


def _survive(seed: int) -> Faults:
    faults = Faults(seed)
    for _ in range(200):
        faults.step()
        faults.check_owners()
        faults.ledger.check()
    faults.calm()
    return faults


def _check_all_run(faults: Faults) -> None:
    """In the calm each task runs, evenly spread, with as many copies as processes allow."""
    every = {(part, number) for part in SOURCES for number in range(faults.size)}
    assert {task for one in faults.threads for task in one.tasks.active} == every
    loads = [len(one.tasks.active) for one in faults.threads]
    assert max(loads) - min(loads) <= 1
    copies = Counter(task for one in faults.threads for task in one.tasks.standby)
    processes = len({one.process_id for one in faults.threads})
    wanted = min(faults.standbys, processes - 1)
    assert copies == Counter({task: wanted for task in every if task[0] == STATEFUL and wanted})


@pytest.mark.parametrize("seed", seeds(12))
def test_tasks_run_once_always_and_all_of_them_in_the_end(seed: int) -> None:
    """CON-3, CON-4, CON-6, CON-7: and no offset is lost or goes back."""
    faults = _survive(seed)
    if faults.threads:
        assert faults.app.streams.state_name == "Stable"
        assert {one.id for one in faults.threads} == faults.app.streams.members.keys()
        _check_all_run(faults)


def test_a_thread_that_missed_an_answer_runs_its_tasks_in_the_end() -> None:
    """The answer with a member's tasks was lost, and the tasks were never run."""
    _check_all_run(_survive(29))


@pytest.mark.parametrize("seed", seeds(6))
def test_a_restart_forgets_nothing(seed: int) -> None:
    faults = Faults(seed)
    for _ in range(100):
        faults.step()
    before = faults.app.streams
    faults.app.reload()
    after = faults.app.streams
    assert after.members == before.members
    assert (after.epoch, after.assignment_epoch) == (before.epoch, before.assignment_epoch)
    assert after.target == before.target
    assert after.topology == before.topology
    faults.ledger.check()
