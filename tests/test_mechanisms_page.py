"""The list of mechanisms in the documentation is the registry's."""

from pathlib import Path

from sfumato.cli.mechanisms import page
from sfumato.registry import mechanisms
from sfumato.releases.kinds import all_kinds

PAGE = Path(__file__).parents[1] / "docs" / "mechanisms.md"


def test_the_page_is_what_the_command_prints():
    assert PAGE.read_text(encoding="utf-8").rstrip() == page(list(all_kinds())), (
        "sfumato mechanisms --markdown > docs/mechanisms.md"
    )


def test_every_mechanism_says_what_it_does_and_every_parameter_what_it_means():
    for entry in mechanisms():
        assert len(entry.summary) > 10, entry.name
        for parameter in entry.parameters:
            assert len(parameter.help) > 8, (entry.name, parameter.name)
            assert parameter.describe()
