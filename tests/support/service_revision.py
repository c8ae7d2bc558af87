"""Writes a revision of the service's tables: what `schema` says beyond what the revisions make.

``python tests/support/service_revision.py 0002 "Keep what was asked"`` writes the next one (and `HEAD` must then be 0002);
``python tests/support/service_revision.py 0001`` writes the first one anew, which is right only while nobody has it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Column, Connection, create_engine

from sfumato.service.store import migrations, schema

VERSIONS = Path(migrations.__file__).parent / "versions"


def context_for(connection: Connection) -> MigrationContext:
    """With what Alembic compares."""
    return MigrationContext.configure(
        connection, opts={"version_table": migrations.TABLE, "compare_type": True, "compare_server_default": True}
    )


def differences(connection: Connection) -> list[object]:
    """What `schema` has and the database has not, or the other way round."""
    return list(compare_metadata(context_for(connection), schema.metadata))


def written(number: str, words: str) -> str:
    """The source of a revision."""
    with create_engine("sqlite://").connect() as connection:
        if number != "0001":
            with connection.begin():
                migrations.bring_up_to_date(connection)
        directives = produce_migrations(context_for(connection), schema.metadata)
    code = render_python_code(directives.upgrade_ops, render_as_batch=number != "0001")
    code = "\n".join(line for line in code.splitlines() if not line.strip().startswith("#"))
    code = re.sub(r", +\)", ")", code) + "".join(_over_expressions() if number == "0001" else ())
    # The number of an event is given by either database: an alternative that rendering loses.
    code = re.sub(r"sa\.BigInteger\(\)\.with_variant\(sa\.Integer\(\), 'sqlite'\)", "_SERIAL", code)
    before = None if number == "0001" else f"{int(number) - 1:04}"
    serial = '_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")\n' if "_SERIAL" in code else ""
    return (
        f'"""{words}."""\n\nfrom __future__ import annotations\n\nimport sqlalchemy as sa\nfrom alembic import op\n\n'
        f'revision = "{number}"\ndown_revision = {before!r}\n{serial}\n\n'
        f'def upgrade() -> None:\n    """Change the tables."""\n{_indented(code)}\n'
    )


def _over_expressions() -> Iterator[str]:
    """Indexes over expressions, which Alembic does not see on SQLite."""
    for table in schema.metadata.sorted_tables:
        for index in sorted(table.indexes, key=lambda one: str(one.name)):
            if not all(isinstance(part, Column) for part in index.expressions):
                parts = ", ".join(f"sa.text({str(part).replace(f'{table.name}.', '')!r})" for part in index.expressions)
                yield f"\n    op.create_index({index.name!r}, {table.name!r}, [{parts}], unique={index.unique})"


def _indented(code: str) -> str:
    lines = code.splitlines()
    least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join("    " + line[least:] if line.strip() else line for line in lines)


if __name__ == "__main__":
    number, words = sys.argv[1], " ".join(sys.argv[2:]) or "The tables of the service"
    path = VERSIONS / f"v{number}.py"
    path.write_text(written(number, words))
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(path)], check=True)
    print(path)
