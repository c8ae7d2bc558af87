"""Revisions of the tables, in order."""
