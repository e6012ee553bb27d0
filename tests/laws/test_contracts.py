"""Every member of the registries keeps its contract: a base that declares all hooks, and names that are enums."""

import re
from pathlib import Path

import numpy as np
import pytest
from functions import quadratic
from growing import growing_regression

import crfkit
from crfkit.errors import CapabilityError, ParameterError
from crfkit.losses import LOSSES, PseudoLikelihood, loss_class
from crfkit.penalties import L1, L2, PENALTIES, Blockwise, ByBlock, GroupL2, GroupLinf, L1Ball, NoPenalty
from crfkit.protocols import BlockNorm, Capability, GrowingLoss, Kind, Loss, Penalty, Selection, Solver
from crfkit.solvers import SOLVERS, make_solver
from crfkit.solvers.parts.compatibility import check_compatible
from crfkit.solvers.parts.loop import run

SOURCE = Path(crfkit.__file__).parent


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers(name):
    made = SOLVERS[name]
    assert issubclass(made, Solver)
    assert made.name == name
    for solver in (made, make_solver(name)):
        assert solver.needs
        assert all(isinstance(need, Capability) for need in solver.needs)
        assert all(isinstance(kind, Kind) for kind in (*solver.handles_nonsmooth, *(solver.handles_smooth or ())))
    assert make_solver(name).for_path().name == name


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    made = loss_class(name)
    assert issubclass(made, Loss)
    growing = "candidates" in name or name.startswith("structure")
    assert issubclass(made, GrowingLoss) == growing
    if isinstance(found := made.__dict__.get("capabilities"), frozenset):
        assert all(isinstance(capability, Capability) for capability in found)
        assert (Capability.CANDIDATES in found) == growing


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties(name):
    assert issubclass(PENALTIES[name], Penalty)


def test_registries_find_the_nearest_name():
    assert loss_class("pseudo-likelihood") is PseudoLikelihood
    with pytest.raises(ParameterError, match=r"did you mean 'graph-hinge'\?.*chain-likelihood"):
        loss_class("graph-hinges")
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        crfkit.losses.Nothing  # noqa: B018


def test_names_are_their_text():
    assert Capability.HESS_DIAG == "hess_diag"
    assert f"{Kind.BY_BLOCK}" == str(Kind.BY_BLOCK) == "by block"
    assert "smooth" in frozenset({Capability.SMOOTH})


def test_hooks_are_declared_and_not_probed():
    """getattr and hasattr have a comment that says why."""
    for folder in ("solvers", "losses", "penalties"):
        for path in (SOURCE / folder).rglob("*.py"):
            lines = path.read_text().splitlines()
            for before, line in zip(["", *lines], lines, strict=False):
                if re.search(r"\b(getattr|hasattr)\(", line):
                    assert before.strip().startswith("# getattr:"), f"{path}: {line}"


# --- the defaults


def test_a_penalty_without_a_strength_has_none_to_change():
    for penalty in (NoPenalty(), L1Ball(2.0)):
        assert penalty.strength is None
        assert penalty.critical_strength(np.ones(3)) is None
        with pytest.raises(ParameterError, match="no strength that could be changed"):
            penalty.at(1.0)
    assert L2(1.0).critical_strength(np.ones(3)) is None
    assert L1(1.0).bind(quadratic()[0]) == L1(1.0)


def test_a_loss_names_what_it_cannot_do():
    loss, _ = quadratic()
    w = np.ones(loss.size)
    assert loss.in_full(w) is w
    for ask, what in ((loss.online, "online"), (loss.expectations, "expectations"), (loss.lipschitz, "lipschitz")):
        with pytest.raises(CapabilityError, match=f"the test loss has no {what}"):
            ask()
    assert growing_regression().carry(None, None) is None


def test_the_loop_suggests_solvers_of_the_registry_it_is_handed():
    loss, _ = quadratic()
    with pytest.raises(CapabilityError, match=r"is not smooth$"):
        run(make_solver("lbfgs"), loss, L1(1.0), np.zeros(loss.size))
    with pytest.raises(CapabilityError, match=r"these can: mine$"):
        check_compatible(make_solver("lbfgs"), loss, L1(1.0), {"mine": SOLVERS["owlqn"]})


def test_what_is_not_a_solver_is_refused():
    for wrong in (SOLVERS["lbfgs"], object(), None):
        with pytest.raises(ParameterError, match="a solver is a name"):
            make_solver(wrong)


# --- one hook binds a penalty to a loss


def test_groups_without_members_are_the_blocks_of_the_loss():
    loss = growing_regression(n_blocks=3, size=2, rest=2).whole()
    for kind, norm in ((GroupL2, BlockNorm.L2), (GroupLinf, BlockNorm.L1)):
        bound = kind(2.0).bind(loss)
        given = kind(2.0, loss.block_index)
        w = np.random.default_rng(0).normal(size=loss.size)
        assert bound.value(w) == given.value(w) == ByBlock(kind, 2.0).bind(loss).value(w)
        assert (bound.prox(w, 0.3) == given.prox(w, 0.3)).all()
        assert bound.selection == Selection(norm, 2.0)
        assert given.selection is None
        assert given.bind(loss) is given
        with pytest.raises(ParameterError, match="give groups, or use bind"):
            kind(2.0).value(w)
        with pytest.raises(CapabilityError, match="the test loss does not have"):
            kind(2.0).bind(quadratic()[0])


def test_a_bound_penalty_follows_a_loss_that_grows():
    small = growing_regression(n_blocks=3, size=2, rest=2)
    large = small.whole()
    for penalty in (GroupL2(2.0), ByBlock(GroupL2, 2.0, L2(1.0)), Blockwise({"all": GroupL2(2.0)})):
        w = np.random.default_rng(0).normal(size=large.size)
        assert penalty.bind(small).bind(large).value(w) == penalty.bind(large).value(w)
        assert penalty.at(3.0).bind(large).value(w) == penalty.bind(large).at(3.0).value(w)
        rest = penalty.bind(large).split()[1]
        on = np.flatnonzero(large.block_index >= 0)
        assert rest.restricted(on).value(w[on]) == rest.value(np.where(large.block_index >= 0, w, 0.0))
