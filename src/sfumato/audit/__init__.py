"""Attacks on our own mechanisms: a lower confidence bound on what a release really gives away, beside what it claims.

A mechanism registers a worst-case pair of neighbours in `cases_<family>.py`; `audit` draws outputs under both and looks for
the event that tells them apart best. Whole releases and fits are seen through every answer of their Meter instead
(`TranscriptCase`). Each case states the smallest deficit of noise that it would catch; `Weaker` makes noise of that kind.
Two controls with known flaws are audited with the same code and must be caught.
"""

from sfumato.audit.harness import AuditCase, audit, run
from sfumato.audit.registry import case, names, register
from sfumato.audit.results import AuditResult
from sfumato.audit.transcripts import TranscriptCase
from sfumato.audit.weaker import Weaker

__all__ = ["AuditCase", "AuditResult", "TranscriptCase", "Weaker", "audit", "case", "names", "register", "run"]
