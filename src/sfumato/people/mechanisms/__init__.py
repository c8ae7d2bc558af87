"""One file per mechanism for people with different budgets."""
