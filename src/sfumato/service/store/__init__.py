"""The service's own tables: accounts, plans, decisions, jobs. What was spent is in the ledger."""
