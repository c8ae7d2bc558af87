"""One file per histogram mechanism."""
