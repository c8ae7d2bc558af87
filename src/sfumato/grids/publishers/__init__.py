"""The mechanisms that publish a table for classification."""
