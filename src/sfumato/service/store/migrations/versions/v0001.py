"""The tables of the service."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Change the tables."""
    op.create_table(
        "service_accounts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("password", sa.Text(), nullable=True),
        sa.Column("totp", sa.Text(), nullable=True),
        sa.Column("totp_confirmed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("totp_used", sa.BigInteger(), nullable=True),
        sa.Column("issuer", sa.Text(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "role IN ('person', 'custodian', 'officer', 'analyst', 'administrator')", name="service_accounts_role"
        ),
        sa.CheckConstraint("state IN ('active', 'disabled')", name="service_accounts_state"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("issuer", "subject", name="service_accounts_oidc"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("service_accounts_pages", "service_accounts", ["created_at", "id"], unique=False)
    op.create_table(
        "service_attempts",
        sa.Column("bucket", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("bucket"),
    )
    op.create_index(op.f("ix_service_attempts_expires_at"), "service_attempts", ["expires_at"], unique=False)
    op.create_table(
        "service_events",
        sa.Column("id", _SERIAL, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=True),
        sa.Column("target", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("service_events_dataset", "service_events", ["dataset_id", "id"], unique=False)
    op.create_table(
        "service_datasets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("schema", sa.Text(), nullable=False),
        sa.Column("people", sa.Text(), nullable=True),
        sa.Column("caps", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["created_by"], ["service_accounts.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        sa.UniqueConstraint("source"),
    )
    op.create_table(
        "service_replies",
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["service_accounts.id"]),
        sa.PrimaryKeyConstraint("account_id", "key"),
    )
    op.create_table(
        "service_sessions",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("csrf", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["service_accounts.id"]),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index(op.f("ix_service_sessions_account_id"), "service_sessions", ["account_id"], unique=False)
    op.create_table(
        "service_tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["service_accounts.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("service_tokens_pages", "service_tokens", ["account_id", "created_at", "id"], unique=False)
    op.create_table(
        "service_announcements",
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("next_epoch", sa.Text(), nullable=False),
        sa.Column("announced_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["announced_by"], ["service_accounts.id"]),
        sa.ForeignKeyConstraint(["dataset_id"], ["service_datasets.id"]),
        sa.PrimaryKeyConstraint("dataset_id"),
    )
    op.create_table(
        "service_invitations",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=True),
        sa.Column("person", sa.Text(), nullable=True),
        sa.Column("account_id", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_by", sa.Text(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["service_accounts.id"]),
        sa.ForeignKeyConstraint(["created_by"], ["service_accounts.id"]),
        sa.ForeignKeyConstraint(["dataset_id"], ["service_datasets.id"]),
        sa.ForeignKeyConstraint(["used_by"], ["service_accounts.id"]),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index(op.f("ix_service_invitations_account_id"), "service_invitations", ["account_id"], unique=False)
    op.create_table(
        "service_plans",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("releases", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("author_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("submitted_at", sa.BigInteger(), nullable=True),
        sa.Column("preview", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('draft', 'submitted', 'approved', 'refused', 'withdrawn', 'run')", name="service_plans_state"
        ),
        sa.ForeignKeyConstraint(["author_id"], ["service_accounts.id"]),
        sa.ForeignKeyConstraint(["dataset_id"], ["service_datasets.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("service_plans_pages", "service_plans", ["dataset_id", "created_at", "id"], unique=False)
    op.create_table(
        "service_policies",
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["service_accounts.id"]),
        sa.ForeignKeyConstraint(["dataset_id"], ["service_datasets.id"]),
        sa.PrimaryKeyConstraint("account_id", "dataset_id", "number"),
    )
    op.create_table(
        "service_preapprovals",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("kinds", sa.Text(), nullable=False),
        sa.Column("most", sa.BigInteger(), nullable=False),
        sa.Column("officer_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ends_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["service_datasets.id"]),
        sa.ForeignKeyConstraint(["officer_id"], ["service_accounts.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "service_subjects",
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("chosen_at", sa.BigInteger(), nullable=True),
        sa.Column("chosen_times", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["service_accounts.id"]),
        sa.ForeignKeyConstraint(["dataset_id"], ["service_datasets.id"]),
        sa.PrimaryKeyConstraint("account_id", "dataset_id"),
        sa.UniqueConstraint("dataset_id", "digest", name="service_subjects_once"),
    )
    op.create_table(
        "service_decisions",
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("plan_digest", sa.Text(), nullable=False),
        sa.Column("officer_id", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("decided_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("decision IN ('approved', 'refused')", name="service_decisions_decision"),
        sa.ForeignKeyConstraint(["officer_id"], ["service_accounts.id"]),
        sa.ForeignKeyConstraint(["plan_id"], ["service_plans.id"]),
        sa.PrimaryKeyConstraint("plan_id"),
    )
    op.create_table(
        "service_jobs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=True),
        sa.Column("request", sa.Text(), nullable=True),
        sa.Column("purpose", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("taken_by", sa.Text(), nullable=True),
        sa.Column("taken_at", sa.BigInteger(), nullable=True),
        sa.Column("beat_at", sa.BigInteger(), nullable=True),
        sa.Column("charging_at", sa.BigInteger(), nullable=True),
        sa.Column("deliver_at", sa.BigInteger(), nullable=True),
        sa.Column("windows", sa.Text(), nullable=True),
        sa.Column("mark", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.CheckConstraint("state IN ('waiting', 'running', 'finished', 'failed', 'cancelled')", name="service_jobs_state"),
        sa.CheckConstraint("(plan_id IS NULL) <> (request IS NULL)", name="service_jobs_what"),
        sa.ForeignKeyConstraint(["account_id"], ["service_accounts.id"]),
        sa.ForeignKeyConstraint(["dataset_id"], ["service_datasets.id"]),
        sa.ForeignKeyConstraint(["plan_id"], ["service_plans.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("service_jobs_pages", "service_jobs", ["account_id", "created_at", "id"], unique=False)
    op.create_index("service_jobs_plan", "service_jobs", ["plan_id"], unique=False)
    op.create_index("service_jobs_waiting", "service_jobs", ["state", "created_at", "id"], unique=False)
    op.create_table(
        "service_artefacts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("recipient", sa.Text(), nullable=True),
        sa.Column("entry", sa.BigInteger(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("deliver_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["service_datasets.id"]),
        sa.ForeignKeyConstraint(["job_id"], ["service_jobs.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("job_id", "name", name="service_artefacts_once"),
    )
    op.create_index("service_artefacts_pages", "service_artefacts", ["dataset_id", "deliver_at", "id"], unique=False)
    op.create_index("service_accounts_same_name", "service_accounts", [sa.text("lower(name)")], unique=True)
