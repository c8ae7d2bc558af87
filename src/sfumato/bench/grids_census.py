"""Public schema of a data set kept aside: UCI Census-Income (KDD). No constant of the automatic settings was tuned on it.

Written from the data set's documentation: flat lists, and small trees where a meaning suggests itself. Left out are the
detailed twins of columns that are there (industry and occupation codes, state, detailed household, countries of birth)
and the sampling weight.
"""

from __future__ import annotations

from typing import Any

from sfumato.tables.domains import Categorical, Domain, Numeric
from sfumato.tables.schema import Schema

_NONE = "Not in universe"
_TREES: dict[str, Any] = {
    "class_of_worker": {
        "employee": {
            "private": ["Private"],
            "public": ["Federal government", "Local government", "State government"],
        },
        "self-employed": ["Self-employed-incorporated", "Self-employed-not incorporated"],
        "no pay": [_NONE, "Never worked", "Without pay"],
    },
    "education": {
        "no higher education": {
            "child": ["Children"],
            "elementary": ["Less than 1st grade", "1st 2nd 3rd or 4th grade", "5th or 6th grade", "7th and 8th grade"],
            "secondary": ["9th grade", "10th grade", "11th grade", "12th grade no diploma", "High school graduate"],
        },
        "higher education": {
            "below a degree": [
                "Some college but no degree",
                "Associates degree-academic program",
                "Associates degree-occup /vocational",
            ],
            "first degree": ["Bachelors degree(BA AB BS)"],
            "postgraduate": [
                "Masters degree(MA MS MEng MEd MSW MBA)",
                "Prof school degree (MD DDS DVM LLB JD)",
                "Doctorate degree(PhD EdD)",
            ],
        },
    },
    "marital_status": {
        "married": ["Married-civilian spouse present", "Married-A F spouse present"],
        "was married": ["Divorced", "Separated", "Widowed", "Married-spouse absent"],
        "never": ["Never married"],
    },
    "major_industry": {
        "none": ["Not in universe or children"],
        "goods": ["Agriculture", "Construction", "Forestry and fisheries", "Manufacturing-durable goods",
                  "Manufacturing-nondurable goods", "Mining"],
        "trade and transport": ["Communications", "Retail trade", "Transportation", "Utilities and sanitary services",
                                "Wholesale trade"],
        "services": ["Business and repair services", "Entertainment", "Finance insurance and real estate",
                     "Personal services except private HH", "Private household services"],
        "public and professional": ["Armed Forces", "Education", "Hospital services", "Medical except hospital",
                                    "Other professional services", "Public administration", "Social services"],
    },
    "major_occupation": {
        "none": [_NONE],
        "white collar": {
            "high": ["Executive admin and managerial", "Professional specialty"],
            "middle": ["Adm support including clerical", "Sales", "Technicians and related support"],
        },
        "blue collar": ["Farming forestry and fishing", "Handlers equip cleaners etc",
                        "Machine operators assmblrs & inspctrs", "Precision production craft & repair",
                        "Transportation and material moving"],
        "service": ["Armed Forces", "Other service", "Private household services", "Protective services"],
    },
    "race": {"white": ["White"],
             "other": ["Amer Indian Aleut or Eskimo", "Asian or Pacific Islander", "Black", "Other"]},
    "employment_status": {
        "full time": ["Full-time schedules", "PT for econ reasons usually FT", "PT for non-econ reasons usually FT"],
        "part time or none": ["PT for econ reasons usually PT", "Unemployed full-time", "Unemployed part- time",
                              "Not in labor force"],
        "children or armed forces": ["Children or Armed Forces"],
    },
    "tax_filer_status": {
        "joint": ["Joint both under 65", "Joint both 65+", "Joint one under 65 & one 65+"],
        "alone": ["Head of household", "Single"],
        "none": ["Nonfiler"],
    },
    "household_summary": {
        "head or spouse": ["Householder", "Spouse of householder"],
        "child": ["Child 18 or older", "Child under 18 ever married", "Child under 18 never married"],
        "other": ["Group Quarters- Secondary individual", "Nonrelative of householder", "Other relative of householder"],
    },
}  # fmt: skip
_LISTS: dict[str, list[str]] = {
    "enrolled_in_edu_inst_last_wk": [_NONE, "High school", "College or university"],
    "hispanic_origin": ["All other", "Central or South American", "Chicano", "Cuban", "Do not know", "Mexican (Mexicano)",
                        "Mexican-American", "NA", "Other Spanish", "Puerto Rican"],
    "sex": ["Female", "Male"],
    "labor_union_member": [_NONE, "No", "Yes"],
    "reason_for_unemployment": [_NONE, "Job leaver", "Job loser - on layoff", "New entrant", "Other job loser",
                                "Re-entrant"],
    "region_of_previous_residence": [_NONE, "Abroad", "Midwest", "Northeast", "South", "West"],
    "live_in_this_house_1_year_ago": ["Not in universe under 1 year old", "No", "Yes"],
    "family_members_under_18": [_NONE, "Both parents present", "Father only present", "Mother only present",
                                "Neither parent present"],
    "citizenship": ["Foreign born- Not a citizen of U S", "Foreign born- U S citizen by naturalization",
                    "Native- Born abroad of American Parent(s)", "Native- Born in Puerto Rico or U S Outlying",
                    "Native- Born in the United States"],
    "veterans_questionnaire": [_NONE, "No", "Yes"],
}  # fmt: skip
_MISSING: dict[str, list[str]] = {  # half of the records do not answer these
    "migration_change_in_msa": [_NONE, "Abroad to MSA", "Abroad to nonMSA", "MSA to MSA", "MSA to nonMSA", "NonMSA to MSA",
                                "NonMSA to nonMSA", "Nonmover", "Not identifiable"],
    "migration_change_in_reg": [_NONE, "Abroad", "Different county same state", "Different division same region",
                                "Different region", "Different state same division", "Nonmover", "Same county"],
    "migration_move_within_reg": [_NONE, "Abroad", "Different county same state", "Different state in Midwest",
                                  "Different state in Northeast", "Different state in South", "Different state in West",
                                  "Nonmover", "Same county"],
    "migration_prev_res_in_sunbelt": [_NONE, "No", "Yes"],
}  # fmt: skip
_NUMBERS: dict[str, Domain] = {
    "age": Numeric(0, 96, bins=16),
    "wage_per_hour": Numeric(0, 10_240, bins=32),
    "capital_gains": Numeric(0, 102_400, bins=32),
    "capital_losses": Numeric(0, 5_120, bins=32),
    "dividends_from_stocks": Numeric(0, 102_400, bins=32),
    "num_persons_worked_for_employer": Numeric(0, 8, bins=8),
    "own_business_or_self_employed": Numeric(0, 4, bins=4),
    "veterans_benefits": Numeric(0, 4, bins=4),
    "weeks_worked_in_year": Numeric(0, 64, bins=16),
    "year": Numeric(94, 96, bins=2),
}

_ORDER = [
    "age",
    "class_of_worker",
    "education",
    "wage_per_hour",
    "enrolled_in_edu_inst_last_wk",
    "marital_status",
    "major_industry",
    "major_occupation",
    "race",
    "hispanic_origin",
    "sex",
    "labor_union_member",
    "reason_for_unemployment",
    "employment_status",
    "capital_gains",
    "capital_losses",
    "dividends_from_stocks",
    "tax_filer_status",
    "region_of_previous_residence",
    "household_summary",
    "migration_change_in_msa",
    "migration_change_in_reg",
    "migration_move_within_reg",
    "live_in_this_house_1_year_ago",
    "migration_prev_res_in_sunbelt",
    "num_persons_worked_for_employer",
    "family_members_under_18",
    "citizenship",
    "own_business_or_self_employed",
    "veterans_questionnaire",
    "veterans_benefits",
    "weeks_worked_in_year",
    "year",
]  # as in the file


def census_schema() -> Schema:
    """UCI Census-Income (KDD): does a person earn more than 50,000 dollars a year?"""
    columns: dict[str, Domain] = dict(_NUMBERS)
    columns |= {name: Categorical(_leaves(tree), taxonomy=tree) for name, tree in _TREES.items()}
    columns |= {name: Categorical(values) for name, values in _LISTS.items()}
    columns |= {name: Categorical(values, other=True) for name, values in _MISSING.items()}
    return Schema({**{name: columns[name] for name in _ORDER}, "income": Categorical(["<=50K", ">50K"])})


def _leaves(tree: Any) -> list[str]:
    return [leaf for branch in tree.values() for leaf in _leaves(branch)] if isinstance(tree, dict) else list(tree)
