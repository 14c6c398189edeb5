"""The quorum and the controller under the names of Kafka's exporter."""

from headrace.broker.metrics.quorum_metrics import quorum_families
from headrace.metadata.image import EMPTY
from headrace.quorum.figures import QuorumFigures
from headrace.runtime.durations import Durations
from tests.builders.metadata_images import registered, replayed

FIGURES = QuorumFigures("follower", 2, 7, 90, 95, 3, 89, False, Durations(), Durations())


def test_a_follower_of_the_quorum_shows_its_positions_and_the_brokers() -> None:
    image = replayed(EMPTY, [registered(1), registered(2), registered(3, fenced=True)])
    found = {one.name: one.samples for one in quorum_families(FIGURES, image)}
    assert [one.value for one in found["kafka_server_raft_metrics_current_leader"]] == [2]
    assert [one.value for one in found["kafka_server_raft_metrics_high_watermark"]] == [90]
    (state,) = found["kafka_server_raft_metrics_current_state"]
    assert state.labels == '{state="follower"}'
    controller = "kafka_controller_kafkacontroller"
    assert [one.value for one in found[f"{controller}_activecontrollercount"]] == [0]
    assert [one.value for one in found[f"{controller}_activebrokercount"]] == [2]
    assert [one.value for one in found[f"{controller}_fencedbrokercount"]] == [1]
