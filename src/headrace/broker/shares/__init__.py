"""The shell of share groups (KIP-932): states, leaders, records and dead letters of this node."""
