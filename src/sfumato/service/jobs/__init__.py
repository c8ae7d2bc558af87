"""Jobs: what waits, who runs it, when its end may be told, and what came of it."""
