"""IncrementalAlterConfigs v0-1: set, delete, append to or subtract from single configs (KIP-339).

Also the way to change the levels of the broker's loggers (KIP-412), which are applied here and
not stored.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.configs import loggers
from headrace.broker.configs.config_changes import sort_out
from headrace.broker.configs.config_layers import rules_of
from headrace.controller import configs
from headrace.controller.configs import Operation
from headrace.errors import InvalidRequest, KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def _refuse(
    request: IncrementalAlterConfigsRequest, error: KafkaError, version: int
) -> IncrementalAlterConfigsResponse:
    responses = [_result(one, error) for one in request.resources]
    return IncrementalAlterConfigsResponse(responses=responses)


@api(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=range(2), refuse=_refuse)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, call: Call
) -> IncrementalAlterConfigsResponse:
    asked = sort_out(request.resources, call.broker.node_id)
    errors: dict[int, KafkaError | None] = dict(asked.refused)
    for place, resource in asked.loggers.items():
        errors[place] = _alter_loggers(resource, validate_only=request.validate_only)
    if asked.stored:
        stored, rules = list(asked.stored.values()), rules_of(call.broker)
        results = await call.broker.controller.submit(
            lambda image: configs.incremental_alter_configs(
                image, stored, rules, validate_only=request.validate_only
            )
        )
        errors |= dict(zip(asked.stored, (result.error for result in results), strict=True))
    return IncrementalAlterConfigsResponse(
        responses=[_result(one, errors[place]) for place, one in enumerate(request.resources)]
    )


def _alter_loggers(resource: AlterConfigsResource, *, validate_only: bool) -> KafkaError | None:
    changes = []
    try:
        for config in resource.configs:
            if config.config_operation not in (Operation.SET, Operation.DELETE):
                raise InvalidRequest("the level of a logger is set or deleted, nothing else")
            deletes = config.config_operation == Operation.DELETE
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


def _result(
    resource: AlterConfigsResource, error: KafkaError | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
