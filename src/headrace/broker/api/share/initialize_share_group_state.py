"""InitializeShareGroupState v0: begin the states of share partitions, from broker to broker."""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.share.states import BROKER_RIGHTS, serve_each
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas import initialize_share_group_state as schema
from headrace.security.acls import Operation


@api(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=range(1), rights=BROKER_RIGHTS)
async def initialize_share_group_state(
    request: schema.InitializeShareGroupStateRequest, call: Call
) -> schema.InitializeShareGroupStateResponse:
    call.access.check_on_cluster(Operation.CLUSTER_ACTION)
    initialize = call.broker.share_coordinator.initialize
    results = await serve_each(
        request,
        schema.InitializeStateResult,
        schema.PartitionResult,
        lambda key, asked: initialize(key, asked.state_epoch, asked.start_offset),
    )
    return schema.InitializeShareGroupStateResponse(results=results)
