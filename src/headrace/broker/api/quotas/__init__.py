"""APIs about quotas."""
