"""Clusters and brokers of version 3."""

from starlette.requests import Request
from starlette.responses import Response

from headrace.http.operations import Operation
from headrace.protocol.schemas.metadata import MetadataResponse, MetadataResponseBroker
from headrace.rest.errors import check
from headrace.rest.service import Service
from headrace.rest.v3.answers import (
    BROKER,
    CLUSTER,
    MISSING,
    Context,
    answer,
    not_found,
    nothing,
)
from headrace.rest.v3.resources import (
    BrokerData,
    ClusterData,
    Collection,
    FeatureData,
    Links,
    ListMetadata,
    QuorumData,
    ReplicaData,
)
from headrace.rest.v3.topics import replica_data


class ClusterRoutes:
    """What a cluster consists of."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        base = "/v3/clusters/{cluster_id}"
        return [
            Operation(
                "GET",
                "/v3/clusters",
                self.all,
                "The one cluster.",
                answer=Collection[ClusterData],
            ),
            Operation(
                "GET", base, self.one, "A cluster.", (CLUSTER,), answer=ClusterData, errors=MISSING
            ),
            Operation(
                "GET",
                f"{base}/brokers",
                self.brokers,
                "All brokers.",
                (CLUSTER,),
                answer=Collection[BrokerData],
                errors=MISSING,
            ),
            Operation(
                "GET",
                f"{base}/brokers/{{broker_id}}",
                self.broker,
                "A broker.",
                (CLUSTER, BROKER),
                answer=BrokerData,
                errors=MISSING,
            ),
            Operation(
                "GET",
                f"{base}/brokers/{{broker_id}}/partition-replicas",
                self.replicas,
                "What a broker holds.",
                (CLUSTER, BROKER),
                answer=Collection[ReplicaData],
                errors=MISSING,
            ),
            Operation(
                "DELETE",
                f"{base}/brokers/{{broker_id}}",
                self.unregister_broker,
                "Forget a broker that is gone for good.",
                (CLUSTER, BROKER),
                errors={**MISSING, 400: "The broker is there."},
                status=204,
            ),
            Operation(
                "GET",
                f"{base}/features",
                self.features,
                "What the cluster can do, and at which level it does it.",
                (CLUSTER,),
                answer=Collection[FeatureData],
                errors=MISSING,
            ),
            Operation(
                "GET",
                f"{base}/quorum",
                self.quorum,
                "The nodes that decide, and how far each is.",
                (CLUSTER,),
                answer=QuorumData,
                errors=MISSING,
            ),
        ]

    async def all(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: admin.cluster.metadata([]))
        metadata = ListMetadata(context.links.clusters)
        return answer(Collection("KafkaClusterList", metadata, [_cluster(context.links, found)]))

    async def one(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: admin.cluster.metadata([]))
        return answer(_cluster(context.links, found))

    async def brokers(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await self._brokers(context)
        data = [_broker(context.links, one) for one in found]
        return answer(context.links.collection("KafkaBrokerList", data, "brokers"))

    async def broker(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        return answer(_broker(context.links, await self._broker(context)))

    async def replicas(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        broker = await self._broker(context)
        topics = await context.ask(lambda admin: admin.topics.all())
        data = [
            replica_data(context.links, topic.name, partition, broker.node_id)
            for topic in topics
            for partition in topic.partitions
            if broker.node_id in partition.replicas
        ]
        place = ("brokers", broker.node_id, "partition-replicas")
        return answer(context.links.collection("KafkaReplicaList", data, *place))

    async def unregister_broker(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        number = context.number("broker_id")
        check(await context.ask(lambda admin: admin.nodes.unregister(number)))
        return nothing()

    async def features(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: admin.nodes.describe())
        data = [
            FeatureData(
                metadata=context.links.metadata("features", crn=f"feature={one.name}"),
                cluster_id=context.cluster_id,
                name=one.name,
                min_version=one.min_version,
                max_version=one.max_version,
                finalized_version=one.finalized,
            )
            for one in found.features
        ]
        return answer(context.links.collection("KafkaFeatureList", data, "features"))

    async def quorum(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = (await context.ask(lambda admin: admin.nodes.describe())).quorum
        if found is None:
            raise not_found("HTTP 404 Not Found: the cluster has no quorum, or does not tell")
        return answer(
            QuorumData(
                metadata=context.links.metadata("quorum", crn="quorum"),
                cluster_id=context.cluster_id,
                leader_id=found.leader,
                leader_epoch=found.leader_epoch,
                high_watermark=found.high_watermark,
                replicas=found.replicas,
            )
        )

    async def _brokers(self, context: Context) -> list[MetadataResponseBroker]:
        found = await context.ask(lambda admin: admin.cluster.metadata([]))
        return sorted(found.brokers, key=lambda broker: broker.node_id)

    async def _broker(self, context: Context) -> MetadataResponseBroker:
        number = context.number("broker_id")
        for one in await self._brokers(context):
            if one.node_id == number:
                return one
        raise not_found(f"Broker {number} cannot be found.")


def _cluster(links: Links, found: MetadataResponse) -> ClusterData:
    controller = found.controller_id
    return ClusterData(
        metadata=links.metadata(crn=""),
        cluster_id=links.cluster_id,
        controller=links.related("brokers", controller) if controller >= 0 else None,
        acls=links.related("acls"),
        brokers=links.related("brokers"),
        broker_configs=links.related("broker-configs"),
        consumer_groups=links.related("consumer-groups"),
        topics=links.related("topics"),
        partition_reassignments=links.related("topics", "-", "partitions", "-", "reassignment"),
    )


def _broker(links: Links, broker: MetadataResponseBroker) -> BrokerData:
    place = ("brokers", broker.node_id)
    return BrokerData(
        metadata=links.metadata(*place, crn=f"broker={broker.node_id}"),
        cluster_id=links.cluster_id,
        broker_id=broker.node_id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        configs=links.related(*place, "configs"),
        partition_replicas=links.related(*place, "partition-replicas"),
    )
