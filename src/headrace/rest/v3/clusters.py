"""Clusters and brokers of version 3."""

from headrace.protocol.schemas.metadata import MetadataResponse, MetadataResponseBroker
from headrace.rest.errors import check
from headrace.rest.routing import Routes
from headrace.rest.v3.resources import (
    BrokerData,
    ClusterData,
    Collection,
    FeatureData,
    QuorumData,
    ReplicaData,
)
from headrace.rest.v3.routing import CLUSTER, Context, delete, get, not_found
from headrace.rest.v3.topics import replica_data


class ClusterRoutes(Routes):
    """The cluster, its brokers, features and quorum."""

    @get("/v3/clusters", "List the cluster.", answer=list[ClusterData])
    async def all(self, context: Context) -> Collection[ClusterData]:
        data = [await _cluster(context)]
        return context.links.collection("KafkaClusterList", data, context.links.clusters)

    @get(CLUSTER, "Describe a cluster.")
    async def one(self, context: Context) -> ClusterData:
        return await _cluster(context)

    @get(f"{CLUSTER}/brokers", "List brokers.")
    async def brokers(self, context: Context) -> list[BrokerData]:
        return [_broker(one) for one in await _brokers(context)]

    @get(f"{CLUSTER}/brokers/{{broker_id}}", "Describe a broker.")
    async def broker(self, context: Context) -> BrokerData:
        return _broker(await _broker_of(context))

    @get(f"{CLUSTER}/brokers/{{broker_id}}/partition-replicas", "List the replicas of a broker.")
    async def replicas(self, context: Context) -> list[ReplicaData]:
        broker = (await _broker_of(context)).node_id
        return [
            replica_data(topic.name, partition, broker)
            for topic in await context.ask(lambda admin: admin.topics.all())
            for partition in topic.partitions
            if broker in partition.replicas
        ]

    @delete(
        f"{CLUSTER}/brokers/{{broker_id}}",
        "Unregister a broker that is gone for good.",
        errors={400: "The broker is running."},
    )
    async def unregister_broker(self, context: Context) -> None:
        number = context.number("broker_id")
        check(await context.ask(lambda admin: admin.nodes.unregister(number)))

    @get(f"{CLUSTER}/features", "List the supported features and their levels.")
    async def features(self, context: Context) -> list[FeatureData]:
        found = await context.ask(lambda admin: admin.nodes.describe())
        return list(map(FeatureData.of, found.features))

    @get(f"{CLUSTER}/quorum", "Describe the metadata quorum.")
    async def quorum(self, context: Context) -> QuorumData:
        found = (await context.ask(lambda admin: admin.nodes.describe())).quorum
        if found is None:
            raise not_found("HTTP 404 Not Found: the cluster does not report a quorum")
        return QuorumData.of(found)


async def _metadata(context: Context) -> MetadataResponse:
    return await context.ask(lambda admin: admin.cluster.metadata([]))


async def _cluster(context: Context) -> ClusterData:
    controller = (await _metadata(context)).controller_id
    return ClusterData(controller_id=controller if controller >= 0 else None)


async def _brokers(context: Context) -> list[MetadataResponseBroker]:
    return sorted((await _metadata(context)).brokers, key=lambda broker: broker.node_id)


async def _broker_of(context: Context) -> MetadataResponseBroker:
    number = context.number("broker_id")
    for one in await _brokers(context):
        if one.node_id == number:
            return one
    raise not_found(f"Broker {number} cannot be found.")


def _broker(broker: MetadataResponseBroker) -> BrokerData:
    return BrokerData.of(broker, broker_id=broker.node_id)
