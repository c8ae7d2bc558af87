"""Models made of noisy counts."""
