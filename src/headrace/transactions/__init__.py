"""The transaction coordinator's decisions: who may write under a transactional id, and when."""
