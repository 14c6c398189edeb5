"""The metadata quorum and the controller of this node, under the names of Kafka's JMX exporter."""

from collections.abc import Iterator

from headrace.metadata.image import MetadataImage
from headrace.quorum.figures import QuorumFigures, broker_counts
from headrace.runtime.exposition import Family, Sample, gauge, labels, summary

_RAFT = "kafka_server_raft_metrics"
_CONTROLLER = "kafka_controller_kafkacontroller"
_NO_LABELS: dict[str, str | int] = {}


def quorum_families(figures: QuorumFigures, image: MetadataImage) -> Iterator[Family]:
    """State, positions and durations of the quorum, and the brokers that its leader counts."""
    yield Family(
        f"{_RAFT}_current_state",
        "gauge",
        "1 for the present state of this replica of the metadata log.",
        [Sample(1, labels(state=figures.state))],
    )
    yield gauge(f"{_RAFT}_current_leader", "Leader of the quorum, or -1.", figures.leader_id)
    yield gauge(f"{_RAFT}_current_epoch", "Epoch of the quorum.", figures.epoch)
    yield gauge(
        f"{_RAFT}_high_watermark", "Metadata records that are committed.", figures.high_watermark
    )
    yield gauge(f"{_RAFT}_log_end_offset", "Metadata records that are here.", figures.end_offset)
    yield gauge(f"{_RAFT}_number_of_voters", "Voters of the quorum.", figures.voter_count)
    yield summary(
        f"{_RAFT}_commit_latency",
        "Milliseconds until a change by this controller was committed.",
        [(_NO_LABELS, figures.commits)],
    )
    yield summary(
        f"{_RAFT}_election_latency",
        "Milliseconds that this replica was without a leader.",
        [(_NO_LABELS, figures.elections)],
    )
    yield gauge(
        f"{_CONTROLLER}_activecontrollercount",
        "1 on the node that leads the quorum.",
        int(figures.is_active_controller),
    )
    active, fenced = broker_counts(image)
    yield gauge(f"{_CONTROLLER}_activebrokercount", "Unfenced brokers.", active)
    yield gauge(f"{_CONTROLLER}_fencedbrokercount", "Fenced brokers.", fenced)
    yield gauge(
        f"{_CONTROLLER}_lastappliedrecordoffset",
        "Offset of the last metadata record that this node has applied.",
        figures.applied_offset,
    )
    unpreferred = sum(one.leader != one.preferred_leader for _, _, one in image.partitions())
    yield gauge(
        f"{_CONTROLLER}_preferredreplicaimbalancecount",
        "Partitions that their preferred replica does not lead.",
        unpreferred,
    )
