"""What an object holds on to: every attribute, slot, container, closure, cache and bound method, and its pickle.

For results, estimators and publishers: after a release none of them may hold a private value, neither as an `Exact` nor as
an array that is equal to exact counts.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator, Mapping, Sequence
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from sfumato.privacy.exact import Exact

_LEAVES = (ModuleType, type, CodeType, FrameType, str, bytes, int, float, complex, bool, type(None))
_SHORTEST = 3  # numbers: shorter arrays are equal by chance


def holds_exact(thing: Any) -> list[str]:
    """Where `thing` holds an `Exact`, as paths; and "pickle" if its pickle names one."""
    found = [path for path, value in everything(thing) if isinstance(value, Exact)]
    return found + (["pickle"] if b"sfumato.privacy.exact" in pickled(thing) else [])


def holds_array(thing: Any, exact: Mapping[str, Any]) -> list[str]:
    """Where `thing` holds numbers that are equal to one of the `exact` arrays (of at least three numbers), by name."""
    wanted = {name: np.ascontiguousarray(array).reshape(-1) for name, array in exact.items()}
    assert all(array.size >= _SHORTEST for array in wanted.values()), "so few numbers are equal by chance"
    found = []
    for path, value in everything(thing):
        numbers = _numbers(value)
        if numbers is not None:
            found += [f"{path}: {name}" for name, array in wanted.items() if _equal(numbers, array)]
    stored = pickled(thing)
    for name, array in wanted.items():
        written = [array.astype(kind) for kind in (np.int64, np.int32, np.float64, array.dtype)]
        found += [f"pickle: {name}"] * any(w.tobytes() in stored for w in written if _equal(w, array))
    return found


def everything(thing: Any) -> Iterator[tuple[str, Any]]:
    """Every object that can be reached from `thing`, each once, with a path to it. Classes and modules are not entered."""
    seen: dict[int, Any] = {}  # keeps what it has seen alive, so that no address is used twice
    waiting = [("it", thing)]
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield path, value
        if not isinstance(value, (*_LEAVES, Exact)):
            waiting += _inside(path, value)


def pickled(thing: Any) -> bytes:
    """Its pickle; empty if it cannot be stored."""
    try:
        return pickle.dumps(thing)
    except Exception:  # a Meter refuses, a lambda cannot be: then nothing is stored
        return b""


def _inside(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and type(value).__module__ == "builtins":
        for key, item in value.items():
            yield f"{path}[{key!r:.40}]", item
            yield f"{path}.keys", key
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"{path}[{i}]", item) for i, item in enumerate(value))
    elif isinstance(value, np.ndarray):
        if value.base is not None:
            yield f"{path}.base", value.base
        if value.dtype == object:  # NumPy does not show these to the garbage collector
            yield from ((f"{path}[{i}]", item) for i, item in enumerate(value.reshape(-1).tolist()))
    elif isinstance(value, FunctionType):  # not its globals, which hold every module
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            yield f"{path}.{name}", cell
        yield f"{path}.defaults", (value.__defaults__, value.__kwdefaults__, value.__dict__)
    elif isinstance(value, MethodType | BuiltinFunctionType):
        yield f"{path}.self", value.__self__
        if isinstance(value, MethodType):
            yield f"{path}.function", value.__func__
    elif isinstance(value, GeneratorType):
        if value.gi_frame is not None:
            yield f"{path}.locals", dict(value.gi_frame.f_locals)
    else:
        yield from _attributes(path, value)
        # Whatever else it refers to: what a cache keeps, the arguments of a partial, what a cell holds.
        yield from ((f"{path}.<{type(item).__name__}>", item) for item in gc.get_referents(value))


def _attributes(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    own = getattr(value, "__dict__", {})
    yield from ((f"{path}.{name}", item) for name, item in (own.items() if isinstance(own, Mapping) else ()))
    yield from ((f"{path}.{name}", getattr(value, name)) for name in slots if hasattr(value, name))


def _slots(kind: type) -> Sequence[str]:
    named = kind.__dict__.get("__slots__", ())
    return [named] if isinstance(named, str) else [name for name in named if name not in ("__dict__", "__weakref__")]


def _numbers(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        return value.reshape(-1)
    if isinstance(value, list | tuple) and len(value) >= _SHORTEST and all(type(v) in (int, float) for v in value):
        return np.array(value, dtype=object)
    return None


def _equal(numbers: Any, array: Any) -> bool:
    return bool(numbers.size == array.size and np.array_equal(numbers, array))
