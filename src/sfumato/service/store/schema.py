"""The tables of the service. Moments are whole seconds since 1970 (UTC); JSON is kept as text.

Secrets are kept as digests, people as sealed texts. Nothing of a private table is in here.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    func,
)

metadata = MetaData()
_SERIAL = BigInteger().with_variant(Integer, "sqlite")

accounts = Table(
    "service_accounts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("password", Text),  # argon2id
    Column("totp", Text),  # sealed
    Column("totp_confirmed", Integer, nullable=False, default=0, server_default="0"),
    Column("totp_used", BigInteger),  # the last time step that was used: a code is good once
    Column("issuer", Text),
    Column("subject", Text),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("issuer", "subject", name="service_accounts_oidc"),
    CheckConstraint("role IN ('person', 'custodian', 'officer', 'analyst', 'administrator')", name="service_accounts_role"),
    CheckConstraint("state IN ('active', 'disabled')", name="service_accounts_state"),
    Index("service_accounts_pages", "created_at", "id"),
)
# "Alice" and "alice" are one name: a recipient must not be taken for another.
Index("service_accounts_same_name", func.lower(accounts.c.name), unique=True)

sessions = Table(
    "service_sessions",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("account_id", ForeignKey("service_accounts.id"), nullable=False, index=True),
    Column("csrf", Text, nullable=False),  # digest
    Column("created_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)

tokens = Table(
    "service_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", ForeignKey("service_accounts.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False, unique=True),
    Column("scopes", Text, nullable=False),  # JSON: the actions it may do
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Index("service_tokens_pages", "account_id", "created_at", "id"),
)

invitations = Table(
    "service_invitations",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("dataset_id", ForeignKey("service_datasets.id")),
    Column("person", Text),  # sealed
    Column("account_id", ForeignKey("service_accounts.id"), index=True),  # whose password it sets; NULL makes an account
    Column("created_by", ForeignKey("service_accounts.id"), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_by", ForeignKey("service_accounts.id")),
    Column("used_at", BigInteger),
)

datasets = Table(
    "service_datasets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("source", Text, nullable=False, unique=True),  # a name of the configuration's list, never a place
    Column("schema", Text, nullable=False),  # TOML
    Column("people", Text),  # JSON: the keys of a plan's [people]
    Column("caps", Text, nullable=False),  # JSON: epsilon, attributes, recipients, together, rows
    Column("created_by", ForeignKey("service_accounts.id"), nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

# Which person of which dataset an account is.
subjects = Table(
    "service_subjects",
    metadata,
    Column("account_id", ForeignKey("service_accounts.id"), primary_key=True),
    Column("dataset_id", ForeignKey("service_datasets.id"), primary_key=True),
    Column("person", Text, nullable=False),  # sealed
    Column("digest", Text, nullable=False),
    Column("chosen_at", BigInteger),  # when they last chose by themselves; from then on no custodian chooses for them
    Column("chosen_times", Integer, nullable=False, default=0, server_default="0"),  # on that day
    UniqueConstraint("dataset_id", "digest", name="service_subjects_once"),
)

# When the next epoch is to be, where a custodian has said so.
announcements = Table(
    "service_announcements",
    metadata,
    Column("dataset_id", ForeignKey("service_datasets.id"), primary_key=True),
    Column("next_epoch", Text, nullable=False),  # a day
    Column("announced_by", ForeignKey("service_accounts.id"), nullable=False),
)

plans = Table(
    "service_plans",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset_id", ForeignKey("service_datasets.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("releases", Text, nullable=False),  # JSON: the tables of a plan's [[release]]
    Column("digest", Text, nullable=False),
    Column("author_id", ForeignKey("service_accounts.id"), nullable=False),
    Column("state", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("submitted_at", BigInteger),
    Column("preview", Text),  # JSON: what it would cost and promise when it was submitted
    CheckConstraint(
        "state IN ('draft', 'submitted', 'approved', 'refused', 'withdrawn', 'run')", name="service_plans_state"
    ),
    Index("service_plans_pages", "dataset_id", "created_at", "id"),
)

# One decision for a plan, never by its author: a trigger says so too.
decisions = Table(
    "service_decisions",
    metadata,
    Column("plan_id", ForeignKey("service_plans.id"), primary_key=True),
    Column("plan_digest", Text, nullable=False),
    Column("officer_id", ForeignKey("service_accounts.id"), nullable=False),
    Column("decision", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("decided_at", BigInteger, nullable=False),
    CheckConstraint("decision IN ('approved', 'refused')", name="service_decisions_decision"),
)

# Kinds of request that analysts may make for a purpose without asking again, up to a price each.
preapprovals = Table(
    "service_preapprovals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset_id", ForeignKey("service_datasets.id"), nullable=False),
    Column("purpose", Text, nullable=False),
    Column("kinds", Text, nullable=False),  # JSON
    Column("most", BigInteger, nullable=False),  # nano-ε
    Column("officer_id", ForeignKey("service_accounts.id"), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("ends_at", BigInteger),
    Column("revoked_at", BigInteger),
)

jobs = Table(
    "service_jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset_id", ForeignKey("service_datasets.id"), nullable=False),
    Column("account_id", ForeignKey("service_accounts.id"), nullable=False),
    Column("plan_id", ForeignKey("service_plans.id")),  # a plan that was approved, or
    Column("request", Text),  # JSON: what an analyst asks, for a purpose
    Column("purpose", Text),
    Column("state", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("taken_by", Text),
    Column("taken_at", BigInteger),
    Column("beat_at", BigInteger),  # the runner lives
    Column("charging_at", BigInteger),  # from here on it cannot be cancelled
    Column("deliver_at", BigInteger),  # the slot at which its end, whatever it is, may be told
    Column("windows", Text),  # JSON: when each of its releases starts, is settled and may be told
    Column("mark", BigInteger),  # the ledger's last entry before this job charged anything
    Column("attempts", Integer, nullable=False, default=0),
    CheckConstraint("state IN ('waiting', 'running', 'finished', 'failed', 'cancelled')", name="service_jobs_state"),
    CheckConstraint("(plan_id IS NULL) <> (request IS NULL)", name="service_jobs_what"),
    Index("service_jobs_waiting", "state", "created_at", "id"),
    Index("service_jobs_pages", "account_id", "created_at", "id"),
    Index("service_jobs_plan", "plan_id"),
)

# What was released: a folder in the state folder, told from `deliver_at` on.
artefacts = Table(
    "service_artefacts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("job_id", ForeignKey("service_jobs.id"), nullable=False),
    Column("dataset_id", ForeignKey("service_datasets.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("recipient", Text),  # an account's name; NULL is everybody
    Column("entry", BigInteger, nullable=False),  # the ledger's number
    Column("folder", Text, nullable=False),  # relative to the state folder
    Column("digest", Text, nullable=False),  # SHA-256 of certificate.json
    Column("deliver_at", BigInteger, nullable=False),
    UniqueConstraint("job_id", "name", name="service_artefacts_once"),
    Index("service_artefacts_pages", "dataset_id", "deliver_at", "id"),
)

# What a person's own device may tell, each version of it.
policies = Table(
    "service_policies",
    metadata,
    Column("account_id", ForeignKey("service_accounts.id"), primary_key=True),
    Column("dataset_id", ForeignKey("service_datasets.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("policy", Text, nullable=False),  # JSON
    Column("created_at", BigInteger, nullable=False),
)

# The reply to a request with an Idempotency-Key, given again when it comes again.
replies = Table(
    "service_replies",
    metadata,
    Column("account_id", ForeignKey("service_accounts.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request", Text, nullable=False),  # digest of method, path and body
    Column("status", Integer),  # NULL while the first one is under way
    Column("body", Text),
    Column("created_at", BigInteger, nullable=False),
)

# How often something was tried, by account or address (keyed digest), and until when it may not be tried again.
attempts = Table(
    "service_attempts",
    metadata,
    Column("bucket", Text, primary_key=True),
    Column("tries", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("until", BigInteger),
    Column("expires_at", BigInteger, nullable=False, index=True),
)

# Who did what, for the record: never with a value, only with identifiers.
events = Table(
    "service_events",
    metadata,
    Column("id", _SERIAL, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("account_id", Text),
    Column("action", Text, nullable=False),
    Column("dataset_id", Text),
    Column("target", Text),
    Index("service_events_dataset", "dataset_id", "id"),
    sqlite_autoincrement=True,
)
