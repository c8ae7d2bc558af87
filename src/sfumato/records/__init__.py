"""Values coded to cells, taxonomies and weighted records: what several families share."""
