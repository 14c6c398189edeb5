"""IncrementalAlterConfigs v0-1: set, delete, append to or subtract from single configs (KIP-339).

It also changes the levels of the broker's loggers (KIP-412), which are not stored.
"""

from headrace.broker.api.configs.altering import ALTERING_RIGHTS, alter_each, check_is_this_node
from headrace.broker.api.registry import Call, api
from headrace.broker.configs import loggers
from headrace.controller.configs import Operation as Change
from headrace.errors import InvalidRequest, KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas import incremental_alter_configs as schema
from headrace.security.acls import Operation


@api(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=range(2), rights=ALTERING_RIGHTS)
async def incremental_alter_configs(
    request: schema.IncrementalAlterConfigsRequest, call: Call
) -> schema.IncrementalAlterConfigsResponse:
    rows = await alter_each(
        request,
        call,
        schema.AlterConfigsResourceResponse,
        lambda resource: _alter_loggers(resource, call, validate_only=request.validate_only),
    )
    return schema.IncrementalAlterConfigsResponse(responses=rows)


def _alter_loggers(
    resource: schema.AlterConfigsResource, call: Call, *, validate_only: bool
) -> KafkaError | None:
    changes = []
    try:
        call.access.check_on_cluster(Operation.ALTER_CONFIGS)
        check_is_this_node(resource.resource_name, call.broker.node_id)
        for config in resource.configs:
            if config.config_operation not in (Change.SET, Change.DELETE):
                raise InvalidRequest("the level of a logger is set or deleted, nothing else")
            deletes = config.config_operation == Change.DELETE
            if config.value is None and not deletes:
                raise InvalidRequest(f"the level of {config.name} is null")
            level = None if deletes else config.value
            loggers.check(config.name, level)
            changes.append((config.name, level))
    except KafkaError as error:
        return error
    if not validate_only:
        loggers.change(changes)
    return None
