"""Parts of docs/service.md that follow from the code: who may do what, and what may stand in the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.service.roles import ACTIONS, ROLES, SECOND_FACTOR, may
from sfumato.service.settings_keys import SECTIONS, SOURCE, variable


def roles_table() -> str:
    """The table of roles, in Markdown.

    >>> print(roles_table().splitlines()[0])
    | action | person | custodian | officer | analyst | administrator |
    """

    def lines() -> Iterator[str]:
        yield f"| action | {' | '.join(ROLES)} |"
        yield "|---" * (1 + len(ROLES)) + "|"
        for action in ACTIONS:
            code = " (with a one-time code)" if action in SECOND_FACTOR else ""
            yield f"| `{action}`{code} | {' | '.join('yes' if may(role, action) else '' for role in ROLES)} |"

    return "\n".join(lines())


def settings_table() -> str:
    """Every key of the configuration, in Markdown.

    >>> print(settings_table().splitlines()[2])
    | `[service] state` | The folder for databases, keys and what was released. | `state` | `SFUMATO_SERVICE_STATE` |
    """

    def lines() -> Iterator[str]:
        yield "| key | what it is | if left out | variable |"
        yield "|---|---|---|---|"
        for section, keys in SECTIONS.items():
            for key in keys:
                needed = key.name == "state"
                default = "" if section == "oidc" or key.kind == "secret" else f"`{_told(key.example)}`"
                shown = "`state`" if needed else default
                yield f"| `[{section}] {key.name}` | {key.words} | {shown} | `{variable(section, key)}` |"
        for key in SOURCE:
            yield f"| `[sources.NAME] {key.name}` | {key.words} | | |"

    return "\n".join(lines())


def _told(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
