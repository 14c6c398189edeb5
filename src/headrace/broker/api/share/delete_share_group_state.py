"""DeleteShareGroupState v0: delete the states of share partitions, from broker to broker."""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.share.states import BROKER_RIGHTS, serve_each
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas import delete_share_group_state as schema
from headrace.security.acls import Operation


@api(ApiKey.DELETE_SHARE_GROUP_STATE, versions=range(1), rights=BROKER_RIGHTS)
async def delete_share_group_state(
    request: schema.DeleteShareGroupStateRequest, call: Call
) -> schema.DeleteShareGroupStateResponse:
    call.access.check_on_cluster(Operation.CLUSTER_ACTION)
    delete = call.broker.share_coordinator.delete
    results = await serve_each(
        request, schema.DeleteStateResult, schema.PartitionResult, lambda key, asked: delete(key)
    )
    return schema.DeleteShareGroupStateResponse(results=results)
