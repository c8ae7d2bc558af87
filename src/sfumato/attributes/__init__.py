"""Budgets that differ per attribute and recipient: a person's history, noised on their own device.

Names load when they are used, so that a device which only releases never loads a solver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.attributes.allocation import allocate, compose
    from sfumato.attributes.bounds import expected_errors, least_epsilon, utility_bounds
    from sfumato.attributes.catalogue import Catalogue
    from sfumato.attributes.catalogue_file import read_catalogue
    from sfumato.attributes.correlation import Leak, catalogue_leaks, noisy_leaks
    from sfumato.attributes.device_ledger import DeviceLedger, Limits
    from sfumato.attributes.device_policy import DevicePolicy
    from sfumato.attributes.policy import Policy
    from sfumato.attributes.profile import Profile
    from sfumato.attributes.profile_file import read_history, read_profile, read_release
    from sfumato.attributes.profiled import Profiled
    from sfumato.attributes.rebuild import ItemGroups, rebuild_counts, shrink
    from sfumato.attributes.recipients import Recipients
    from sfumato.attributes.release import AttributeRelease, release_batch, release_histogram
    from sfumato.attributes.streams import AttributeStream
    from sfumato.attributes.sums import ItemSums
    from sfumato.attributes.utility import Utility

_HOME = {
    "AttributeRelease": "release",
    "AttributeStream": "streams",
    "Catalogue": "catalogue",
    "DeviceLedger": "device_ledger",
    "DevicePolicy": "device_policy",
    "ItemGroups": "rebuild",
    "ItemSums": "sums",
    "Leak": "correlation",
    "Limits": "device_ledger",
    "Policy": "policy",
    "Profile": "profile",
    "Profiled": "profiled",
    "Recipients": "recipients",
    "Utility": "utility",
    "allocate": "allocation",
    "catalogue_leaks": "correlation",
    "compose": "allocation",
    "expected_errors": "bounds",
    "least_epsilon": "bounds",
    "noisy_leaks": "correlation",
    "read_catalogue": "catalogue_file",
    "read_history": "profile_file",
    "read_profile": "profile_file",
    "read_release": "profile_file",
    "rebuild_counts": "rebuild",
    "release_batch": "release",
    "release_histogram": "release",
    "shrink": "rebuild",
    "utility_bounds": "bounds",
}

__all__ = [
    "AttributeRelease",
    "AttributeStream",
    "Catalogue",
    "DeviceLedger",
    "DevicePolicy",
    "ItemGroups",
    "ItemSums",
    "Leak",
    "Limits",
    "Policy",
    "Profile",
    "Profiled",
    "Recipients",
    "Utility",
    "allocate",
    "catalogue_leaks",
    "compose",
    "expected_errors",
    "least_epsilon",
    "noisy_leaks",
    "read_catalogue",
    "read_history",
    "read_profile",
    "read_release",
    "rebuild_counts",
    "release_batch",
    "release_histogram",
    "shrink",
    "utility_bounds",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
