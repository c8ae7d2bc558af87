"""The HTTP interface, version 1: routes by kind of people, errors as problem+json."""
