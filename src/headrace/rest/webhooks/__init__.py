"""Webhooks: records pushed to the servers of subscribers, with retries and dead letters."""
