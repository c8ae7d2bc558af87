"""Analysts: what officers have approved beforehand, what each of them may spend, and what they ask."""
