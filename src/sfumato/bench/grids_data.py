"""Public schemas of the data sets on which the grids are measured: UCI Adult and UCI Bank Marketing.

The third, kept aside, is in `grids_census`.
Numbers get bins of equal width (a power of two of them) between round public bounds, categories a small tree by
meaning. Nothing in this file was read off the data beyond what their public documentation says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.grids_census import census_schema
from sfumato.errors import InputError
from sfumato.records.attributes import Attribute
from sfumato.records.coding import Coding
from sfumato.records.records import Records
from sfumato.tables.domains import Categorical, Domain, Numeric
from sfumato.tables.schema import Schema
from sfumato.testing import reveal

_EDUCATION = {
    "no higher education": {
        "elementary": ["Preschool", "1st-4th", "5th-6th", "7th-8th"],
        "secondary": {"junior": ["9th", "10th"], "senior": ["11th", "12th", "HS-grad"]},
    },
    "higher education": {
        "below a degree": ["Some-college", "Assoc-acdm", "Assoc-voc"],
        "university": {"first degree": ["Bachelors", "Prof-school"], "postgraduate": ["Masters", "Doctorate"]},
    },
}
_COUNTRY = {
    "America": {
        "north": ["United-States", "Canada", "Outlying-US(Guam-USVI-etc)"],
        "middle": [
            "Mexico", "Cuba", "Jamaica", "Puerto-Rico", "Honduras", "Haiti", "Dominican-Republic", "El-Salvador",
            "Guatemala", "Nicaragua", "Trinadad&Tobago",
        ],
        "south": ["Columbia", "Ecuador", "Peru"],
    },
    "Europe": {
        "west": ["England", "Germany", "France", "Ireland", "Scotland", "Holand-Netherlands", "Italy", "Portugal", "Greece"],
        "east": ["Poland", "Hungary", "Yugoslavia"],
    },
    "Asia": {
        "east": ["China", "Japan", "Taiwan", "Hong", "Cambodia", "Laos", "Philippines", "Thailand", "Vietnam"],
        "other": ["India", "Iran", "South"],
    },
}  # fmt: skip


def _tree(tree: Any) -> Categorical:
    return Categorical(_leaves(tree), taxonomy=tree)


def _leaves(tree: Any) -> list[str]:
    return [leaf for branch in tree.values() for leaf in _leaves(branch)] if isinstance(tree, dict) else list(tree)


def adult_schema() -> Schema:
    """UCI Adult: does a person earn more than 50,000 dollars a year?"""
    columns: dict[str, Domain] = {
        "age": Numeric(15, 95, bins=16),
        "workclass": _tree(
            {
                "employee": {"private": ["Private"], "public": ["Federal-gov", "Local-gov", "State-gov"]},
                "self-employed": ["Self-emp-inc", "Self-emp-not-inc"],
                "unpaid": ["Without-pay"],
            }
        ),
        "fnlwgt": Numeric(0, 1_600_000, bins=32),
        "education": _tree(_EDUCATION),
        "education_num": Numeric(1, 17, bins=16),
        "marital_status": _tree(
            {
                "married": ["Married-civ-spouse", "Married-AF-spouse"],
                "was married": ["Divorced", "Separated", "Widowed", "Married-spouse-absent"],
                "never": ["Never-married"],
            }
        ),
        "occupation": _tree(
            {
                "white collar": {
                    "high": ["Exec-managerial", "Prof-specialty"],
                    "middle": ["Tech-support", "Sales", "Adm-clerical"],
                },
                "blue collar": ["Craft-repair", "Machine-op-inspct", "Transport-moving", "Handlers-cleaners",
                                "Farming-fishing"],
                "service": ["Other-service", "Protective-serv", "Priv-house-serv", "Armed-Forces"],
            }
        ),
        "relationship": _tree(
            {
                "in family": {"spouse": ["Husband", "Wife"], "child": ["Own-child"]},
                "not in family": ["Not-in-family", "Other-relative", "Unmarried"],
            }
        ),
        "race": _tree({"white": ["White"], "other": ["Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]}),
        "sex": Categorical(["Female", "Male"]),
        "capital_gain": Numeric(0, 102_400, bins=32),
        "capital_loss": Numeric(0, 5_120, bins=32),
        "hours_per_week": Numeric(0, 96, bins=32),
        "native_country": _tree(_COUNTRY),
        "income": Categorical(["<=50K", ">50K"]),
    }  # fmt: skip
    return Schema(columns)


def bank_schema() -> Schema:
    """UCI Bank Marketing: did the client subscribe to a term deposit?"""
    yes_no = {"yes": ["yes"], "otherwise": ["no", "unknown"]}
    columns: dict[str, Domain] = {
        "age": Numeric(15, 95, bins=16),
        "job": _tree(
            {
                "office": ["admin.", "management", "technician"],
                "own business": ["entrepreneur", "self-employed"],
                "manual and service": ["blue-collar", "services", "housemaid"],
                "not working": ["retired", "student", "unemployed"],
                "not known": ["unknown"],
            }
        ),
        "marital": _tree({"married": ["married"], "not married": ["single", "divorced", "unknown"]}),
        "education": _tree(
            {
                "basic": ["illiterate", "basic.4y", "basic.6y", "basic.9y"],
                "middle": ["high.school", "professional.course"],
                "university": ["university.degree"],
                "not known": ["unknown"],
            }
        ),
        "default": _tree({"no": ["no"], "otherwise": ["yes", "unknown"]}),
        "housing": _tree(yes_no),
        "loan": _tree(yes_no),
        "contact": Categorical(["cellular", "telephone"]),
        "month": _tree(
            {
                "first quarter": ["mar"],
                "second quarter": ["apr", "may", "jun"],
                "third quarter": ["jul", "aug", "sep"],
                "fourth quarter": ["oct", "nov", "dec"],
            }
        ),
        "day_of_week": _tree({"early": ["mon", "tue"], "late": ["wed", "thu", "fri"]}),
        "duration": Numeric(0, 5_120, bins=32),
        "campaign": Numeric(0, 64, bins=32),
        "pdays": Numeric(0, 1_024, bins=32),
        "previous": Numeric(0, 8, bins=8),
        "poutcome": _tree({"success": ["success"], "otherwise": ["failure", "nonexistent"]}),
        "emp_var_rate": Numeric(-4, 4, bins=16),
        "cons_price_idx": Numeric(92, 96, bins=16),
        "cons_conf_idx": Numeric(-56, -24, bins=16),
        "euribor3m": Numeric(0, 6.4, bins=32),
        "nr_employed": Numeric(4_900, 5_300, bins=16),
        "y": Categorical(["no", "yes"]),
    }
    return Schema(columns)


@dataclass(frozen=True, eq=False)
class Case:
    """A data set, coded once."""

    name: str
    schema: Schema
    target: str
    attributes: tuple[Attribute, ...]
    records: Records

    def take(self, rows: NDArray[np.intp]) -> Records:
        """Some of the rows."""
        r = self.records
        return Records(r.taxonomies, np.asfortranarray(r.leaves[rows]), r.classes[rows], r.class_labels)

    def in_order(self, number: int) -> Case:
        """The same data with its columns in one of many orders; 0 is that of the schema."""
        count = len(self.attributes)
        order = np.random.default_rng(number).permutation(count) if number else np.arange(count)
        names = [self.attributes[j].name for j in order]
        r = self.records
        leaves = np.asfortranarray(r.leaves[:, order])
        return Case(
            self.name,
            Schema({name: self.schema[name] for name in (*names, self.target)}),
            self.target,
            tuple(self.attributes[j] for j in order),
            Records(tuple(r.taxonomies[j] for j in order), leaves, r.classes, r.class_labels),
        )

    def renamed(self, number: int) -> Case:
        """The same data with its columns under each other's names; 0 leaves them as they are."""
        names = [a.name for a in self.attributes]
        given = np.random.default_rng(number).permutation(names).tolist() if number else names
        r = self.records
        columns = {new: self.schema[old] for old, new in zip(names, given, strict=True)}
        return Case(
            self.name,
            Schema({**columns, self.target: self.schema[self.target]}),
            self.target,
            tuple(
                replace(a, name=new, levels=replace(a.levels, name=new))
                for a, new in zip(self.attributes, given, strict=True)
            ),
            replace(r, taxonomies=tuple(replace(t, name=new) for t, new in zip(r.taxonomies, given, strict=True))),
        )


SOURCES: dict[str, tuple[str, Callable[[], Schema], str]] = {
    "adult": ("adult.parquet", adult_schema, "income"),
    "bank": ("bank_additional_full.parquet", bank_schema, "y"),
    "census": ("census_income_kdd.parquet", census_schema, "income"),
}
FILES = {name: source[0] for name, source in SOURCES.items()}


def load(name: str, folder: Path, *, target: str | None = None) -> Case:
    """Read and code one of the data sets from a folder of Parquet files."""
    import pandas as pd

    _, schema, usual = SOURCES[name]
    path = folder / FILES[name]
    if not path.exists():
        raise InputError(f"the bench needs {path.name} in the data folder; give it with --data FOLDER")
    return encode(name, pd.read_parquet(path), schema(), target or usual)


def encode(name: str, frame: Any, schema: Schema, target: str) -> Case:
    """Code a data frame by a schema (small frames; a release counts in the engine instead)."""
    coding = Coding.of(schema, target=target)
    return Case(name, schema, target, coding.attributes, reveal(coding.records(frame, frame[target])))
