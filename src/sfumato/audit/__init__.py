"""Attacks on our own mechanisms: a lower confidence bound on what a release really gives away, beside what it claims.

A mechanism registers a worst-case pair of neighbours in `cases_<family>.py`; `audit` draws outputs under both and looks for
the event that tells them apart best. Two controls with known flaws are audited with the same code and must be caught.
"""

from sfumato.audit.harness import AuditCase, AuditResult, audit, run
from sfumato.audit.registry import case, names, register

__all__ = ["AuditCase", "AuditResult", "audit", "case", "names", "register", "run"]
