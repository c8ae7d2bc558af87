"""Everything that releases something, on random tables, replayed to a neighbour (`sfumato.testing.fuzz`).

python -m tests.fuzz                    # 45 s for each, an hour in all; --seconds 5, or names
"""
