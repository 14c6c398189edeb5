"""APIs of share groups: queues over topics (KIP-932)."""
