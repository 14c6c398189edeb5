"""APIs about credentials and rights."""
