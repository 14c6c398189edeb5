"""The transaction coordinator's decisions about transactional ids."""
