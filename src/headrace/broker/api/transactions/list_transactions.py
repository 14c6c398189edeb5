"""ListTransactions v0-2: the transactional ids that this node coordinates.

v1 filters by how long a transaction has been open (KIP-994), v2 by a pattern for the id (KIP-1152).
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.coordination.regular_expressions import RegularExpression
from headrace.errors import CoordinatorLoadInProgress
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import to_list
from headrace.transactions.states import BY_LABEL
from headrace.transactions.transaction import Transaction

_RIGHTS = (to_list(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),)


@api(ApiKey.LIST_TRANSACTIONS, versions=range(3), rights=_RIGHTS)
def list_transactions(
    request: ListTransactionsRequest, call: Call
) -> ListTransactionsResponse | Coroutine[Any, Any, ListTransactionsResponse]:
    transactions = call.broker.transactions
    if transactions.coordinator.is_loading:
        raise CoordinatorLoadInProgress("some transactional ids are still being loaded; retry soon")
    access = call.access
    now_ms = call.broker.clock.now_ms()
    text = request.transactional_id_pattern
    pattern = RegularExpression(text) if text else None
    response = ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in BY_LABEL],
        transaction_states=[
            TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.label,
            )
            for transaction in transactions
            if _is_wanted(transaction, request, pattern, now_ms)
            and access.allows(
                Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id
            )
        ],
    )
    return transactions.coordinator.listed(response)


def _is_wanted(
    transaction: Transaction,
    request: ListTransactionsRequest,
    pattern: RegularExpression | None,
    now_ms: int,
) -> bool:
    if request.producer_id_filters and transaction.producer_id not in request.producer_id_filters:
        return False
    if request.state_filters and transaction.state.label not in request.state_filters:
        return False
    if request.duration_filter >= 0 and now_ms - transaction.start_ms <= request.duration_filter:
        return False
    return pattern is None or pattern.matches(transaction.transactional_id)
