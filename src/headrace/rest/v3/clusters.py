"""Clusters, brokers and reassignments of version 3."""

from starlette.requests import Request
from starlette.responses import Response

from headrace.client.reassignments import Reassignment
from headrace.http.operations import Operation
from headrace.protocol.schemas.metadata import MetadataResponse, MetadataResponseBroker
from headrace.rest.service import Service
from headrace.rest.v3.answers import (
    BROKER,
    CLUSTER,
    MISSING,
    PARTITION,
    TOPIC,
    Context,
    answer,
    not_found,
)
from headrace.rest.v3.resources import (
    BrokerData,
    ClusterData,
    Collection,
    Links,
    ListMetadata,
    ReassignmentData,
    ReplicaData,
)
from headrace.rest.v3.topics import described, replica_data


class ClusterRoutes:
    """What a cluster consists of."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        base = "/v3/clusters/{cluster_id}"
        moves = f"{base}/topics/{{topic_name}}/partitions"
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
                "GET",
                f"{base}/topics/-/partitions/-/reassignment",
                self.reassignments,
                "All partitions that are being moved.",
                (CLUSTER,),
                answer=Collection[ReassignmentData],
                errors=MISSING,
            ),
            Operation(
                "GET",
                f"{moves}/-/reassignment",
                self.topic_reassignments,
                "The partitions of a topic that are being moved.",
                (CLUSTER, TOPIC),
                answer=Collection[ReassignmentData],
                errors=MISSING,
            ),
            Operation(
                "GET",
                f"{moves}/{{partition_id}}/reassignment",
                self.reassignment,
                "How a partition is being moved.",
                (CLUSTER, TOPIC, PARTITION),
                answer=ReassignmentData,
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

    async def reassignments(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: admin.reassignments.under_way())
        data = [_reassignment(context.links, one) for one in found]
        place = ("topics", "-", "partitions", "-", "reassignment")
        return answer(context.links.collection("KafkaReassignmentList", data, *place))

    async def topic_reassignments(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        topic = await context.ask(lambda admin: described(admin, context.topic))
        numbers = [one.partition for one in topic.partitions]
        found = await context.ask(lambda admin: admin.reassignments.under_way(topic.name, numbers))
        data = [_reassignment(context.links, one) for one in found]
        place = ("topics", topic.name, "partitions", "-", "reassignment")
        return answer(context.links.collection("KafkaReassignmentList", data, *place))

    async def reassignment(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        topic, number = context.topic, context.number("partition_id")
        found = await context.ask(lambda admin: admin.reassignments.under_way(topic, [number]))
        if not found:
            raise not_found(f"HTTP 404 Not Found: {topic}-{number} is not being moved")
        return answer(_reassignment(context.links, found[0]))

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


def _reassignment(links: Links, one: Reassignment) -> ReassignmentData:
    place = ("topics", one.topic, "partitions", one.partition)
    crn = f"topic={one.topic}/partition={one.partition}/reassignment"
    return ReassignmentData(
        metadata=links.metadata(*place, "reassignment", crn=crn),
        cluster_id=links.cluster_id,
        topic_name=one.topic,
        partition_id=one.partition,
        adding_replicas=one.adding_replicas,
        removing_replicas=one.removing_replicas,
        replicas=links.related(*place, "replicas"),
    )
