"""A plan file, priced from public facts, run through the ledger, written as an artefact with its certificate."""
