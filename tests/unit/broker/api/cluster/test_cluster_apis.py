"""The APIs about the cluster: versions, nodes, disks, elections, features, the quorum."""

from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from headrace.broker.api.cluster.api_versions import refuse_version
from headrace.broker.api.registry import APIS
from headrace.errors import (
    BrokerIdNotRegistered,
    ElectionNotNeeded,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaStorageError,
    MismatchedEndpointType,
    RequestTimedOut,
    UnknownTopicOrPartition,
    UnsupportedEndpointType,
    UnsupportedVersion,
)
from headrace.metadata.image import ResourceType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.codec import encode
from headrace.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schemas.describe_cluster import DescribeClusterRequest
from headrace.protocol.schemas.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from headrace.protocol.schemas.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from headrace.protocol.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from headrace.protocol.schemas.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from headrace.protocol.schemas.unregister_broker import UnregisterBrokerRequest
from headrace.protocol.schemas.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.unit.broker.api.builders import (
    DIRECTORY_ID,
    NODE_ID,
    FixedPeer,
    UnitBroker,
    a_broker,
    a_topic,
    ask,
    image_with,
    with_configs,
)


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    broker = a_broker(tmp_path)
    broker.controller.image = image_with(a_topic("t", 2))
    return broker


class TestApiVersions:
    """OPS-1: every client learns which versions it may use, also one from the future."""

    NAMED: ClassVar = {"client_software_name": "unit", "client_software_version": "1.0"}
    TELEMETRY: ClassVar = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}

    @pytest.mark.parametrize("version", range(5))
    async def test_every_version_lists_the_table(self, broker: UnitBroker, version: int) -> None:
        request = ApiVersionsRequest(**(self.NAMED if version >= 3 else {}))
        response: ApiVersionsResponse = await ask(broker, ApiKey.API_VERSIONS, request, version)
        rows = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        assert rows == {
            key: entry.advertised for key, entry in APIS.items() if key not in self.TELEMETRY
        }

    async def test_telemetry_is_advertised_while_a_subscription_exists(
        self, broker: UnitBroker
    ) -> None:
        """Else every librdkafka client logs a line about a subscription that asks for nothing."""

        async def advertised() -> set[int]:
            answer = await ask(broker, ApiKey.API_VERSIONS, ApiVersionsRequest(**self.NAMED), 4)
            return {int(key) for key in self.TELEMETRY} & {row.api_key for row in answer.api_keys}

        without = broker.controller.image
        assert await advertised() == set()
        broker.controller.image = with_configs(
            without, ResourceType.CLIENT_METRICS, "all", metrics="*"
        )
        assert await advertised() == self.TELEMETRY
        broker.controller.image = without
        assert await advertised() == set()

    async def test_a_setting_advertises_telemetry_without_a_subscription(
        self, tmp_path: Path
    ) -> None:
        broker = a_broker(tmp_path, headrace_telemetry_enable=True)
        answer = await ask(broker, ApiKey.API_VERSIONS, ApiVersionsRequest(**self.NAMED), 4)
        assert {row.api_key for row in answer.api_keys} >= self.TELEMETRY

    async def test_features_and_software_names_are_exchanged_from_version_3_on(
        self, broker: UnitBroker
    ) -> None:
        peer = FixedPeer()
        request = ApiVersionsRequest(**self.NAMED)
        response = await ask(broker, ApiKey.API_VERSIONS, request, 4, peer)
        finalized = {one.name: one.max_version_level for one in response.finalized_features}
        supported = {
            one.name: (one.min_version, one.max_version) for one in response.supported_features
        }
        assert finalized["metadata.version"] == 25
        assert finalized["kraft.version"] == 1
        assert "eligible.leader.replicas.version" not in finalized
        assert supported["group.version"] == (0, 1)
        assert response.finalized_features_epoch == 17
        assert peer.software == ("unit", "1.0")

    async def test_before_version_4_features_from_level_0_are_left_out(
        self, broker: UnitBroker
    ) -> None:
        response = await ask(broker, ApiKey.API_VERSIONS, ApiVersionsRequest(**self.NAMED), 3)
        assert [one.name for one in response.supported_features] == ["metadata.version"]

    @pytest.mark.parametrize("name", ["", "-x", "a b", "x.", "é"])
    async def test_software_must_be_a_plain_word(self, broker: UnitBroker, name: str) -> None:
        request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        response = await ask(broker, ApiKey.API_VERSIONS, request, 3)
        assert (response.error_code, response.api_keys) == (InvalidRequest.code, [])

    def test_an_unknown_version_is_answered_in_version_0_with_our_range(self) -> None:
        assert bytes(encode(refuse_version(), 0)).hex() == "002300000001001200000004"
        assert refuse_version().error_code == UnsupportedVersion.code


class TestDescribeCluster:
    async def describe(self, broker: UnitBroker, version: int = 2, **fields: Any) -> Any:
        return await ask(broker, ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(**fields), version)

    @pytest.mark.parametrize("version", range(3))
    async def test_the_cluster_is_described_with_nodes_and_controller(
        self, broker: UnitBroker, version: int
    ) -> None:
        response = await self.describe(broker, version)
        assert (response.cluster_id, response.controller_id) == (broker.cluster_id, NODE_ID)
        assert [(one.broker_id, one.host, one.port) for one in response.brokers] == [
            (NODE_ID, "broker.example", 9092)
        ]
        assert response.cluster_authorized_operations == -(2**31)

    async def test_authorized_operations_are_included_on_request(self, broker: UnitBroker) -> None:
        response = await self.describe(broker, include_cluster_authorized_operations=True)
        assert response.cluster_authorized_operations == 8096

    @pytest.mark.parametrize(
        ("endpoint_type", "error"),
        [(2, MismatchedEndpointType), (3, UnsupportedEndpointType), (0, UnsupportedEndpointType)],
    )
    async def test_this_is_a_brokers_endpoint(
        self, broker: UnitBroker, endpoint_type: int, error: type[InvalidRequest]
    ) -> None:
        response = await self.describe(broker, endpoint_type=endpoint_type)
        assert (response.error_code, response.brokers) == (error.code, [])
        assert response.error_message

    async def test_fenced_brokers_are_listed_on_request(self, broker: UnitBroker) -> None:
        this = msgspec.structs.replace(broker.image.brokers[NODE_ID], fenced=True)
        broker.controller.image = image_with(brokers={NODE_ID: this})
        assert (await self.describe(broker)).brokers == []
        listed = (await self.describe(broker, include_fenced_brokers=True)).brokers
        assert [(one.broker_id, one.is_fenced) for one in listed] == [(NODE_ID, True)]


class TestDescribeQuorum:
    async def describe(self, broker: UnitBroker, version: int, *asked: tuple[str, int]) -> Any:
        topics = [
            DescribeQuorumRequestTopicData(
                topic_name=name,
                partitions=[DescribeQuorumRequestPartitionData(partition_index=index)],
            )
            for name, index in asked
        ]
        request = DescribeQuorumRequest(topics=topics)
        return await ask(broker, ApiKey.DESCRIBE_QUORUM, request, version)

    @pytest.mark.parametrize("version", range(3))
    async def test_this_node_is_the_quorum(self, broker: UnitBroker, version: int) -> None:
        response = await self.describe(broker, version, ("__cluster_metadata", 0))
        quorum = response.topics[0].partitions[0]
        assert (quorum.leader_id, quorum.leader_epoch, quorum.high_watermark) == (NODE_ID, 3, 18)
        voter = quorum.current_voters[0]
        assert (voter.replica_id, voter.log_end_offset) == (NODE_ID, 18)
        if version >= 2:
            assert voter.replica_directory_id == DIRECTORY_ID
            assert [(one.name, one.port) for one in response.nodes[0].listeners] == [
                ("CONTROLLER", 9093)
            ]

    @pytest.mark.parametrize("asked", [("__cluster_metadata", 1), ("t", 0)])
    async def test_only_the_metadata_partition_has_a_quorum(
        self, broker: UnitBroker, asked: tuple[str, int]
    ) -> None:
        response = await self.describe(broker, 2, asked)
        assert response.error_code == 0
        assert response.topics[0].partitions[0].error_code == UnknownTopicOrPartition.code


class TestDescribeLogDirs:
    async def describe(
        self, broker: UnitBroker, asked: list[DescribableLogDirTopic] | None, version: int = 5
    ) -> Any:
        request = DescribeLogDirsRequest(topics=asked)
        response = await ask(broker, ApiKey.DESCRIBE_LOG_DIRS, request, version)
        return response.results[0]

    @pytest.fixture
    async def broker(self, tmp_path: Path) -> UnitBroker:
        broker = a_broker(tmp_path)
        topics = [CreatableTopic(name="t", num_partitions=2, replication_factor=1)]
        await ask(broker, ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=topics))
        batch = bytearray(build_batch([Record(0, 1000, b"k", b"v", ())]))
        broker.partitions.led("t", 1).append(memoryview(batch), broker.clock.now_ms())
        return broker

    @pytest.mark.parametrize("version", range(1, 6))
    async def test_log_dirs_have_sizes_and_free_space(
        self, broker: UnitBroker, tmp_path: Path, version: int
    ) -> None:
        """LOG-12: a partition is a directory, and its size can be asked for."""
        response = await self.describe(broker, None, version)
        assert (response.error_code, response.log_dir) == (0, str(tmp_path))
        sizes = {one.partition_index: one.partition_size for one in response.topics[0].partitions}
        assert sizes == {0: 0, 1: broker.log("t", 1).size_bytes}
        if version >= 4:
            assert response.total_bytes >= response.usable_bytes > 0

    async def test_only_requested_partitions_are_described(self, broker: UnitBroker) -> None:
        asked = [DescribableLogDirTopic("t", [1, 9]), DescribableLogDirTopic("nope", [0])]
        response = await self.describe(broker, asked)
        assert [
            (topic.name, [one.partition_index for one in topic.partitions])
            for topic in response.topics
        ] == [("t", [1])]
        assert (await self.describe(broker, [])).topics == []

    async def test_a_failed_directory_has_an_error_and_nothing_else(
        self, broker: UnitBroker
    ) -> None:
        broker.directories.fail(broker.directories.directories[0], OSError("gone"))
        response = await self.describe(broker, None)
        assert (response.error_code, response.topics) == (KafkaStorageError.code, [])
        assert response.total_bytes == -1


class TestElectLeaders:
    async def elect(
        self, broker: UnitBroker, asked: list[TopicPartitions] | None, **fields: Any
    ) -> Any:
        version = fields.pop("version", 2)
        request = ElectLeadersRequest(topic_partitions=asked, **fields)
        return await ask(broker, ApiKey.ELECT_LEADERS, request, version)

    @pytest.mark.parametrize("version", range(3))
    async def test_a_settled_partition_needs_no_election(
        self, broker: UnitBroker, version: int
    ) -> None:
        asked = [TopicPartitions(topic="t", partitions=[0]), TopicPartitions("nope", [0])]
        response = await self.elect(broker, asked, version=version)
        codes = {
            result.topic: [one.error_code for one in result.partition_result]
            for result in response.replica_election_results
        }
        assert codes == {
            "t": [ElectionNotNeeded.code],
            "nope": [UnknownTopicOrPartition.code],
        }

    async def test_an_election_of_all_partitions_reports_only_changed_ones(
        self, broker: UnitBroker
    ) -> None:
        broker.controller.image = image_with(a_topic("t", leader=-1), a_topic("u"))
        response = await self.elect(broker, None)
        results = [
            (result.topic, [one.error_code for one in result.partition_result])
            for result in response.replica_election_results
        ]
        assert results == [("t", [0])]
        assert broker.image.topics["t"].partitions[0].leader == NODE_ID

    async def test_whole_requests_are_refused_for_every_partition(self, broker: UnitBroker) -> None:
        asked = [TopicPartitions(topic="t", partitions=[0, 1])]
        unknown = await self.elect(broker, asked, election_type=5)
        late = await self.elect(broker, asked, timeout_ms=0)
        for response, error in ((unknown, InvalidRequest), (late, RequestTimedOut)):
            assert response.error_code == error.code
            results = response.replica_election_results[0].partition_result
            assert [one.error_code for one in results] == [error.code] * 2


class TestListPartitionReassignments:
    async def ongoing(
        self, broker: UnitBroker, asked: list[ListPartitionReassignmentsTopics] | None
    ) -> list[tuple[str, list[int]]]:
        request = ListPartitionReassignmentsRequest(topics=asked)
        response = await ask(broker, ApiKey.LIST_PARTITION_REASSIGNMENTS, request)
        assert response.error_code == 0
        return [
            (topic.name, [one.partition_index for one in topic.partitions])
            for topic in response.topics
        ]

    async def test_only_partitions_on_the_move_are_listed(self, broker: UnitBroker) -> None:
        moving = a_topic("m", 2, replicas=(1, 2), adding=(2,))
        broker.controller.image = image_with(a_topic("t"), moving)
        asked = [
            ListPartitionReassignmentsTopics("m", [1, 9]),
            ListPartitionReassignmentsTopics("nope", [0]),
        ]
        assert await self.ongoing(broker, None) == [("m", [0, 1])]
        assert await self.ongoing(broker, asked) == [("m", [1])]
        assert await self.ongoing(broker, []) == []


class TestUpdateFeatures:
    async def update(
        self, broker: UnitBroker, feature: str, level: int, version: int = 2, **fields: Any
    ) -> Any:
        validate_only = {"validate_only": fields.pop("validate_only")} if version and fields else {}
        update = FeatureUpdateKey(feature=feature, max_version_level=level, **fields)
        request = UpdateFeaturesRequest(feature_updates=[update], **validate_only)
        return await ask(broker, ApiKey.UPDATE_FEATURES, request, version)

    @pytest.mark.parametrize("version", range(3))
    async def test_levels_are_raised(self, broker: UnitBroker, version: int) -> None:
        response = await self.update(broker, "metadata.version", 27, version)
        assert response.error_code == 0
        assert broker.image.features["metadata.version"] == 27
        if version < 2:
            assert [one.feature for one in response.results] == ["metadata.version"]

    async def test_version_0_lowers_by_a_flag(self, broker: UnitBroker) -> None:
        refused = await self.update(broker, "group.version", 0, version=0)
        assert refused.error_code == InvalidUpdateVersion.code
        update = FeatureUpdateKey("group.version", 0, allow_downgrade=True)
        request = UpdateFeaturesRequest(feature_updates=[update])
        response = await ask(broker, ApiKey.UPDATE_FEATURES, request, 0)
        assert response.error_code == 0

    @pytest.mark.parametrize(
        ("feature", "level"), [("nope", 1), ("metadata.version", 99), ("metadata.version", -1)]
    )
    async def test_impossible_feature_levels_are_rejected(
        self, broker: UnitBroker, feature: str, level: int
    ) -> None:
        response = await self.update(broker, feature, level)
        assert response.error_code == InvalidUpdateVersion.code
        assert response.error_message

    async def test_the_version_of_the_quorum_is_supported(self, broker: UnitBroker) -> None:
        assert (await self.update(broker, "kraft.version", 1)).error_code == 0


class TestUnregisterBroker:
    async def unregister(self, broker: UnitBroker, broker_id: int) -> int:
        request = UnregisterBrokerRequest(broker_id=broker_id)
        code = (await ask(broker, ApiKey.UNREGISTER_BROKER, request)).error_code
        assert isinstance(code, int)
        return code

    async def test_only_other_brokers_can_be_forgotten(self, broker: UnitBroker) -> None:
        this = broker.image.brokers[NODE_ID]
        gone = msgspec.structs.replace(this, id=7, fenced=True)
        broker.controller.image = image_with(brokers={NODE_ID: this, 7: gone})
        assert await self.unregister(broker, 7) == 0
        assert broker.image.brokers.keys() == {NODE_ID}
        assert await self.unregister(broker, 7) == BrokerIdNotRegistered.code
        assert await self.unregister(broker, NODE_ID) == InvalidRequest.code
