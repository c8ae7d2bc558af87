"""The ledger's tables. Every amount is a BIGINT of nano-ε; people of a fixed roster are vectors, one entry per cohort.

``ledger_limits`` and ``ledger_people`` hold running totals; ``ledger_charges`` and ``ledger_people_charges`` hold
every single charge and are append-only, so each total can be added up again from what it is made of.

Times are minutes in UTC, and the tables take no finer ones: a release's two times would tell how long it took, and that
may depend on the private table. For the same reason there is one way to have failed, and no room for why.

A change to these tables raises ``VERSION`` and adds a step to `sfumato.ledger.migrate`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

FORMAT = "sfumato-ledger"
VERSION = 5

metadata = MetaData()
_MINUTE = "LIKE '____-__-__T__:__Z'"
DEVICE_STATEMENT = "device statement"  # what a release is called that tells of somebody's own device
DEVICE_BEGINS = '{"bridge":'  # and how its request begins
_TOLD = text(f"name = '{DEVICE_STATEMENT}'")  # the releases that `sfumato.ledger.bridging` reads again
_SINGLE, _SEVERAL = text("first = last"), text("first < last")  # choices of one person, or of a list of them
_LOWERS = text("lowers > 0")  # what binds before a release
_ID = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER PRIMARY KEY counts up by itself on SQLite

meta = Table(
    "ledger_meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

datasets = Table(
    "ledger_datasets",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", Text, nullable=False),
    CheckConstraint(f"created_at {_MINUTE}", name="ledger_datasets_minute"),
    sqlite_autoincrement=True,
)

# kind: 'total' and 'together' (both with an empty name), 'attribute', 'recipient'. A cap of NULL only records.
# 'allowance' and 'daily' (a day before the name) are what ``ledger_allowances`` grants; these caps alone may change.
limits = Table(
    "ledger_limits",
    metadata,
    Column("dataset_id", ForeignKey("ledger_datasets.id"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("cap", BigInteger),
    Column("spent", BigInteger, nullable=False, default=0),
    CheckConstraint("spent >= 0 AND (cap IS NULL OR spent <= cap)", name="ledger_limits_hold"),
)

# The public roster: budget level, head count and optional name of each cohort. Never changes.
rosters = Table(
    "ledger_rosters",
    metadata,
    Column("dataset_id", ForeignKey("ledger_datasets.id"), primary_key=True),
    Column("levels", LargeBinary, nullable=False),
    Column("counts", LargeBinary, nullable=False),
    Column("names", Text),
)

releases = Table(
    "ledger_releases",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("dataset_id", ForeignKey("ledger_datasets.id"), nullable=False),
    Column("name", Text),
    Column("fingerprint", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("recipient", Text),
    Column("asked_by", Text),
    Column("total", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("artefact", Text),
    Column("reserved_at", Text, nullable=False),
    Column("finished_at", Text),
    CheckConstraint("state IN ('reserved', 'committed', 'failed')", name="ledger_releases_state"),
    CheckConstraint("(state = 'committed') = (artefact IS NOT NULL)", name="ledger_releases_artefact"),
    CheckConstraint("(state = 'reserved') = (finished_at IS NULL)", name="ledger_releases_finished"),
    CheckConstraint(
        f"reserved_at {_MINUTE} AND (finished_at IS NULL OR finished_at {_MINUTE})", name="ledger_releases_minute"
    ),
    Index("ledger_releases_asked", "dataset_id", "fingerprint"),
    Index("ledger_releases_pages", "dataset_id", "id"),
    Index("ledger_releases_told", "dataset_id", "id", sqlite_where=_TOLD, postgresql_where=_TOLD),
    sqlite_autoincrement=True,
)

charges = Table(
    "ledger_charges",
    metadata,
    Column("release_id", ForeignKey("ledger_releases.id"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("nano", BigInteger, nullable=False),
    CheckConstraint("nano >= 0", name="ledger_charges_positive"),
)

# What each cohort has spent, as of release ``last_release`` (0: nothing yet).
people = Table(
    "ledger_people",
    metadata,
    Column("dataset_id", ForeignKey("ledger_datasets.id"), primary_key=True),
    Column("spent", LargeBinary, nullable=False),
    Column("last_release", BigInteger, nullable=False),
)

# One charge to all cohorts: min(level, step) when ``vector`` is NULL, else the compressed vector itself.
# ``after`` is the SHA-256 of ``ledger_people.spent`` once this charge was added.
people_charges = Table(
    "ledger_people_charges",
    metadata,
    Column("release_id", ForeignKey("ledger_releases.id"), primary_key=True),
    Column("step", BigInteger, nullable=False),
    Column("vector", LargeBinary),
    Column("after", Text, nullable=False),
)

# From here on: rosters that change. A dataset with a line here has persons; its ``ledger_rosters`` line is the menu.
# ``per_period`` maps tiers to nano-ε, as JSON; ``fixed`` says that the roster was one of head counts before.
lives = Table(
    "ledger_lives",
    metadata,
    Column("dataset_id", ForeignKey("ledger_datasets.id"), primary_key=True),
    Column("period", Text),
    Column("per_period", Text, nullable=False),
    Column("private", Integer, nullable=False),
    Column("fixed", Integer, nullable=False),
)

# Who there is, by the first byte of their keyed hash: 16 bytes of hash and 4 bytes of place each. Only grows.
persons = Table(
    "ledger_persons",
    metadata,
    Column("dataset_id", ForeignKey("ledger_datasets.id"), primary_key=True),
    Column("bucket", Integer, primary_key=True),
    Column("members", LargeBinary, nullable=False),
)

# Where everybody stands, one vector over all places for each of `sfumato.ledger.state.PARTS`, as of turn ``turn``.
states = Table(
    "ledger_states",
    metadata,
    Column("dataset_id", ForeignKey("ledger_datasets.id"), primary_key=True),
    Column("part", Text, primary_key=True),
    Column("turn", BigInteger, nullable=False),
    Column("vector", LargeBinary, nullable=False),
)

# What people have chosen and what is not in force yet: of known people (whose places lie from ``first`` to ``last``), or of
# newcomers (by the first byte of their hash, less 256). ``lowers``: how many of the choices take something away. ``salt``
# goes with the line when it is taken in: nobody can tell afterwards from the log what was chosen when.
choices = Table(
    "ledger_choices",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("dataset_id", ForeignKey("ledger_datasets.id"), nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("lowers", BigInteger, nullable=False),
    Column("entries", LargeBinary, nullable=False),
    Column("salt", Text, nullable=False),
    Index("ledger_choices_waiting", "dataset_id", "id"),
    Index("ledger_choices_single", "dataset_id", "first", sqlite_where=_SINGLE, postgresql_where=_SINGLE),
    Index("ledger_choices_ranges", "dataset_id", "first", "last", sqlite_where=_SEVERAL, postgresql_where=_SEVERAL),
    Index("ledger_choices_lowering", "dataset_id", "lowers", sqlite_where=_LOWERS, postgresql_where=_LOWERS),
    sqlite_autoincrement=True,
)

# Choices that came into force: all of them (``epoch``), those that take away (``bind``), or a fixed roster's (``start``).
# ``applied`` is the last line of ``ledger_choices`` that it took in; ``after`` signs the state that it led to.
changes = Table(
    "ledger_changes",
    metadata,
    Column("dataset_id", ForeignKey("ledger_datasets.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("turn", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("at", Text, nullable=False),
    Column("people", BigInteger, nullable=False),
    Column("joined", BigInteger, nullable=False),
    Column("raised", BigInteger, nullable=False),
    Column("lowered", BigInteger, nullable=False),
    Column("moved", BigInteger, nullable=False),
    Column("withdrawn", BigInteger, nullable=False),
    Column("applied", BigInteger, nullable=False),
    Column("after", Text, nullable=False),
    CheckConstraint("kind IN ('start', 'epoch', 'bind')", name="ledger_changes_kind"),
    CheckConstraint(f"at {_MINUTE}", name="ledger_changes_minute"),
)

# Who changed, by 4,096 places.
change_chunks = Table(
    "ledger_change_chunks",
    metadata,
    Column("dataset_id", ForeignKey("ledger_datasets.id"), primary_key=True),
    Column("chunk", BigInteger, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("entries", LargeBinary, nullable=False),
)

# One charge to a living roster: each person who takes part pays min(grant, step), or what ``ledger_charge_chunks`` says.
life_charges = Table(
    "ledger_life_charges",
    metadata,
    Column("release_id", ForeignKey("ledger_releases.id"), primary_key=True),
    Column("dataset_id", ForeignKey("ledger_datasets.id"), nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("change", BigInteger, nullable=False),
    Column("period", Text),
    Column("form", Text, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("after", Text, nullable=False),
    CheckConstraint("form IN ('grant', 'chunks')", name="ledger_life_charges_form"),
    Index("ledger_life_charges_turns", "dataset_id", "turn"),
    Index("ledger_life_charges_pages", "dataset_id", "release_id"),
)

# What each person paid, by 4,096 places; a chunk in which nobody paid is left out.
charge_chunks = Table(
    "ledger_charge_chunks",
    metadata,
    Column("release_id", ForeignKey("ledger_releases.id"), primary_key=True),
    Column("chunk", BigInteger, primary_key=True),
    Column("entries", LargeBinary, nullable=False),
)

# What an analyst may spend for a purpose, in all and in one UTC day; the newest line of a ``name`` holds. ``name`` is the
# analyst and the purpose in one text that cannot be read in two ways: that of the cap in ``ledger_limits``.
allowances = Table(
    "ledger_allowances",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("dataset_id", ForeignKey("ledger_datasets.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("cap", BigInteger, nullable=False),
    Column("per_day", BigInteger),
    Column("granted_at", Text, nullable=False),
    Column("granted_by", Text),
    CheckConstraint("cap >= 0 AND (per_day IS NULL OR per_day >= 0)", name="ledger_allowances_positive"),
    CheckConstraint(f"granted_at {_MINUTE}", name="ledger_allowances_minute"),
    Index("ledger_allowances_newest", "dataset_id", "name", "id"),
    Index("ledger_allowances_analysts", "dataset_id", "analyst", "id"),
    sqlite_autoincrement=True,
)

# Everything that happens to a dataset, as the leaves of a Merkle tree; see `sfumato.ledger.log`. ``nodes`` are the subtrees
# that a leaf completes, ``chain`` is a hash over all leaves so far, ``closed`` whether the dataset takes no more charges.
log = Table(
    "ledger_log",
    metadata,
    Column("dataset_id", ForeignKey("ledger_datasets.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("release_id", BigInteger),
    Column("body", Text, nullable=False),
    Column("salt", Text, nullable=False),
    Column("leaf", Text, nullable=False),
    Column("nodes", Text, nullable=False),
    Column("chain", Text, nullable=False),
    Column("closed", Integer, nullable=False),
    Index("ledger_log_releases", "release_id"),
)

INDEXES_SINCE_4 = ("ledger_releases_pages", "ledger_releases_told", "ledger_life_charges_pages")
SINCE_3 = (lives, persons, states, choices, changes, change_chunks, life_charges, charge_chunks)
SINCE_5 = (allowances, log)
VECTORS = (
    (rosters, "levels"),
    (rosters, "counts"),
    (people, "spent"),
    (people_charges, "vector"),
    (persons, "members"),
    (states, "vector"),
    (choices, "entries"),
    (change_chunks, "entries"),
    (charge_chunks, "entries"),
)
