"""Which grid: the pool of candidates, their scores, and how to count them quickly."""
