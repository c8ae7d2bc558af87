"""What a custodian writes and an officer decides: datasets, plans, previews, decisions, the record."""
