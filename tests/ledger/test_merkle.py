"""RFC 9162 by brute force: roots and proofs against the definition, and that no altered proof passes."""

from __future__ import annotations

import hashlib

import pytest

from sfumato.ledger import merkle

LEAVES = [merkle.leaf_hash(f"leaf {n}".encode()) for n in range(41)]


def root(leaves: list[bytes]) -> bytes:
    """MTH of the RFC, word by word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + root(leaves[:k]) + root(leaves[k:])).digest()


def path(m: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of the RFC, word by word."""
    if len(leaves) == 1:
        return []
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    if m < k:
        return [*path(m, leaves[:k]), root(leaves[k:])]
    return [*path(m - k, leaves[k:]), root(leaves[:k])]


def subproof(m: int, leaves: list[bytes], whole: bool) -> list[bytes]:
    """SUBPROOF of the RFC, word by word."""
    if m == len(leaves):
        return [] if whole else [root(leaves)]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    if m <= k:
        return [*subproof(m, leaves[:k], whole), root(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), root(leaves[:k])]


@pytest.fixture(scope="module")
def nodes() -> dict[merkle.Node, bytes]:
    """The perfect subtrees as appending makes them."""
    kept: dict[merkle.Node, bytes] = {}
    for number, leaf in enumerate(LEAVES):
        made = merkle.completed(number, leaf, kept.__getitem__)
        for level, found in enumerate([leaf, *made]):
            kept[level, number >> level] = found
        assert set(merkle.needed_to_append(number)) <= set(kept)
    return kept


def at(nodes: dict[merkle.Node, bytes], span: merkle.Span) -> bytes:
    return merkle.folded([nodes[node] for node in merkle.nodes_of(span)])


def altered(proof: list[bytes]) -> list[list[bytes]]:
    """Each hash with a bit flipped, one left out, one put in, two swapped."""
    flipped = [bytes([part[0] ^ 1]) + part[1:] for part in proof]
    out = [[*proof[:i], flipped[i], *proof[i + 1 :]] for i in range(len(proof))]
    out += [[*proof[:i], *proof[i + 1 :]] for i in range(len(proof))]
    out += [[*proof[:i], LEAVES[0], *proof[i:]] for i in range(len(proof) + 1)]
    out += [[*proof[:i], proof[i + 1], proof[i], *proof[i + 2 :]] for i in range(len(proof) - 1)]
    return [[*proof[:i], proof[i][:31], *proof[i + 1 :]] for i in range(len(proof))] + out


@pytest.mark.parametrize("size", range(42))
def test_roots_and_inclusion_are_those_of_the_definition(nodes: dict[merkle.Node, bytes], size: int) -> None:
    whole = root(LEAVES[:size])
    assert at(nodes, (0, size)) == whole
    for index in range(size):
        proof = [at(nodes, span) for span in merkle.inclusion_spans(index, size)]
        assert proof == path(index, LEAVES[:size])
        assert merkle.included(LEAVES[index], index, size, proof, whole)
        for other in (index - 1, index + 1, size, -1):
            assert not merkle.included(LEAVES[index], other, size, proof, whole)
        assert not merkle.included(LEAVES[index - 1], index, size, proof, whole) or size == 1
        assert not merkle.included(LEAVES[index], index, size, proof, LEAVES[-1]) or whole == LEAVES[-1]
        for wrong in altered(proof):
            assert not merkle.included(LEAVES[index], index, size, wrong, whole)


@pytest.mark.parametrize("new", range(1, 42))
def test_consistency_is_that_of_the_definition(nodes: dict[merkle.Node, bytes], new: int) -> None:
    after = root(LEAVES[:new])
    for old in range(new + 1):
        before = root(LEAVES[:old])
        proof = [at(nodes, span) for span in merkle.consistency_spans(old, new)]
        assert proof == ([] if old == 0 else subproof(old, LEAVES[:new], True))
        assert merkle.consistent(old, before, new, after, proof)
        wrong_root = hashlib.sha256(before).digest()
        assert not merkle.consistent(old, wrong_root, new, after, proof)
        assert old == 0 or not merkle.consistent(old, before, new, wrong_root, proof)  # all begin with the empty one
        assert old == new or not merkle.consistent(new, after, old, before, proof)
        for wrong in altered(proof):
            assert not merkle.consistent(old, before, new, after, wrong)


def test_a_log_that_was_rewritten_has_no_proof(nodes: dict[merkle.Node, bytes]) -> None:
    changed = [LEAVES[0], LEAVES[2], *LEAVES[2:20]]
    proof = [at(nodes, span) for span in merkle.consistency_spans(13, 20)]
    assert merkle.consistent(13, root(LEAVES[:13]), 20, root(LEAVES[:20]), proof)
    assert not merkle.consistent(13, root(LEAVES[:13]), 20, root(changed), proof)
    assert not merkle.consistent(13, root(LEAVES[:13]), 20, root(changed), subproof(13, changed, True))


def test_what_is_not_there_has_no_proof() -> None:
    for index, size in ((0, 0), (-1, 3), (3, 3)):
        with pytest.raises(ValueError, match="no such leaf"):
            merkle.inclusion_spans(index, size)
    with pytest.raises(ValueError, match="only grows"):
        merkle.consistency_spans(4, 3)
    assert merkle.leaf_hash(b"a" * 64) != merkle.node_hash(b"a" * 32, b"a" * 32)
