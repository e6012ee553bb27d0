"""Estimators and commands on a cluster: lists, files, bags and frames give the model of one process."""

import json
from dataclasses import replace

import numpy as np
import pytest
from cluster_cases import column_text, sentences
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from crfkit import L1, ChainCRF, GraphCRF, GridCRF
from crfkit.cli.main import app
from crfkit.distributed import Cluster, cluster, connect
from crfkit.errors import CapabilityError, ClusterError, DataError, ParameterError
from crfkit.solvers.parts.stopping import GradientNorm

TEMPLATE = "U00:%x[0,0]\nU01:%x[0,1]\nU02:%x[-1,0]/%x[0,0]\nB\n"
TIGHT = GradientNorm(1e-8)


@pytest.fixture
def files(tmp_path):
    for k in range(3):
        (tmp_path / f"part{k}.txt").write_text(column_text(30, seed=k))
    (tmp_path / "part3.txt").write_text("")  # an empty one
    return sorted(tmp_path.glob("part*.txt"))


@pytest.mark.parametrize("options", [{}, {"min_frequency": 3}, {"order": 2}, {"class_weight": {"A": 0.5}}], ids=str)
def test_files(client, files, options):
    options = {"template": TEMPLATE, "solver": "lbfgs", "tolerance": TIGHT, **options}
    here = ChainCRF(**options).fit_file([f for f in files if f.stat().st_size])
    for shards in (1, 4):
        there = ChainCRF(**options, cluster=Cluster(client, shards=shards)).fit_file(files[0].parent / "part*.txt")
        assert there.model_.vocabulary.attributes.to_list() == here.model_.vocabulary.attributes.to_list()
        assert_allclose(there.result_.value, here.result_.value, rtol=1e-9)
        assert_allclose(there.coef_, here.coef_, atol=1e-5)


def test_bags(client):
    bag = pytest.importorskip("dask.bag")
    X, y = sentences(40)
    here = ChainCRF(tolerance=TIGHT, solver="lbfgs").fit(X, y)
    pair = [bag.from_sequence(rows, npartitions=3) for rows in (X, y)]
    there = ChainCRF(tolerance=TIGHT, solver="lbfgs", cluster=client).fit(*pair)
    assert_allclose(there.coef_, here.coef_, atol=1e-5)
    with pytest.raises(ParameterError, match="Dask collections need a cluster"):
        ChainCRF().fit(*pair)
    with pytest.raises(DataError, match="X has 3 partitions, but y has 2"):
        ChainCRF(cluster=client).fit(pair[0], bag.from_sequence(y, npartitions=2))
    with pytest.raises(DataError, match=r"partition \d: .* labels"):
        ChainCRF(cluster=client).fit(pair[0], bag.from_sequence([row[:-1] for row in y], npartitions=3))


def test_frames(client):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = sentences(40)
    rows = [
        {"sentence": n, "w": token[0], "s": token[1], "label": label}
        for n, (a, b) in enumerate(zip(X, y, strict=True))
        for token, label in zip(a, b, strict=True)
    ]
    frame = pd.DataFrame(rows)
    here = ChainCRF(tolerance=TIGHT, solver="lbfgs").fit_frame(frame)
    parts = dd.from_pandas(frame.set_index("sentence"), npartitions=3).reset_index()  # whole sentences
    there = ChainCRF(tolerance=TIGHT, solver="lbfgs", cluster=client).fit_frame(parts)
    assert_allclose(there.result_.value, here.result_.value, rtol=1e-9)
    assert there.predict_frame(frame).tolist() == here.predict_frame(frame).tolist()
    with pytest.raises(DataError, match="no column 'nothing'"):
        ChainCRF(cluster=client).fit_frame(parts, label="nothing")


def test_graphs_and_grids(client):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X + rng.normal(size=(60, 3)) > 0).astype(int)
    for loss in ("likelihood", "pseudo-likelihood"):
        here = GraphCRF(loss=loss, tolerance=1e-8).fit(X, Y)
        there = GraphCRF(loss=loss, tolerance=1e-8, cluster=Cluster(client, shards=3)).fit(X, Y)
        assert_allclose(there.result_.value, here.result_.value, rtol=1e-6)
        assert (there.predict(X) == here.predict(X)).all()
    images = [rng.normal(size=(4, 5, 2)) for _ in range(4)]
    masks = [(image[..., 0] > 0).astype(int) for image in images]
    here, there = (GridCRF(cluster=where).fit(images, masks) for where in (None, Cluster(client, shards=2)))
    assert_allclose(there.result_.value, here.result_.value, rtol=1e-4)
    assert there.inference_status_ == here.inference_status_


def test_a_training_goes_on_from_a_checkpoint(client, files):
    options = {"template": TEMPLATE, "solver": "lbfgs", "tolerance": TIGHT}
    whole = ChainCRF(**options, cluster=Cluster(client, shards=2)).fit_file(files[:3])
    with pytest.warns(UserWarning, match="iteration limit"):
        first = ChainCRF(**options, max_iterations=5, cluster=Cluster(client, shards=2)).fit_file(files[:3])
    later = ChainCRF(**options, cluster=Cluster(client, shards=3)).fit_file(files[:3], resume=first.checkpoint())
    assert_allclose(later.result_.value, whole.result_.value, rtol=1e-9)


def test_paths_of_strengths(client):
    X, y = sentences(30)
    here, there = (ChainCRF(penalty=L1(), cluster=where).path(X, y, n=3) for where in (None, Cluster(client, shards=2)))
    assert [point.nonzeros for point in there] == [point.nonzeros for point in here]


def test_stochastic_gradients_with_l1(client):
    X, y = sentences(40)
    crf = ChainCRF(solver="sgd", penalty=L1(0.5), precision="single", max_iterations=3, cluster=client)
    with pytest.warns(UserWarning, match="iteration limit"):
        crf.fit(X, y)
    values = [row.value for row in crf.result_.trace]
    assert values[-1] < values[0]


def test_what_cannot_be_done(client, files, tmp_path):
    X, y = sentences(10)
    with pytest.raises(CapabilityError, match="candidates"):
        ChainCRF(solver="grafting", loss="hinge", cluster=client).fit(X, y)
    with pytest.raises(ParameterError, match="partial_fit does not use a cluster"):
        ChainCRF(cluster=client).partial_fit(X, y)
    crf = ChainCRF(template=TEMPLATE, cluster=client)
    with pytest.raises(ParameterError, match="unknown_label"):
        crf.fit_file(files, unknown_label="?")
    with pytest.raises(ParameterError, match="does not support constraints='observed'"):
        ChainCRF(template=TEMPLATE, constraints="observed", cluster=client).fit_file(files)
    (tmp_path / "other.txt").write_text("a b c D\n\n")
    with pytest.raises(DataError, match=r"other\.txt.* 4 columns, but .* 3"):
        crf.fit_file([*files, tmp_path / "other.txt"])
    (tmp_path / "bad.txt").write_text("a b A\nonly\n")
    with pytest.raises(DataError, match=r"bad\.txt:2: "):
        crf.fit_file([tmp_path / "bad.txt"])
    (tmp_path / "scheme.txt").write_text("a b O\nc d I-X\n\n" * 3 + "a b B-X\n\n")
    with pytest.raises(DataError, match=r"scheme\.txt: .*I-X"):
        ChainCRF(template=TEMPLATE, constraints="iob2", cluster=client).fit_file([tmp_path / "scheme.txt"])


def test_addresses(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT", 0.5)
    for address, error, message in [
        ("tcp://127.0.0.1:9", ClusterError, "no scheduler answers at tcp://127.0.0.1:9"),
        (str(tmp_path / "none.json"), ClusterError, "is not a scheduler file: .*No such file"),
        ("somewhere", ParameterError, "expected an address such as"),
        ("local:0", ParameterError, "must have 1 to 256 processes"),
        (7, ParameterError, "cluster must be an address"),
    ]:
        with pytest.raises(error, match=message), connect(address):
            pass
    for wrong in ({"shards": 0}, {"shards": 1.5}, {"transport": "half"}, {"timeout": 0}, {"retries": -1}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            Cluster("local:1", **wrong)


def test_another_version_on_a_worker(client, monkeypatch):
    monkeypatch.setattr(cluster, "__version__", "0.0.1")
    with pytest.raises(ClusterError, match=r"2 workers .* have crfkit .*, but this is 0\.0\.1"), connect(client):
        pass


def test_the_command_line(address, files, tmp_path):
    model, log = tmp_path / "model.crf", tmp_path / "log.jsonl"
    (tmp_path / "template").write_text(TEMPLATE)
    common = ["--template", str(tmp_path / "template"), "--solver", "lbfgs", "--model", str(model)]
    found = CliRunner().invoke(
        app,
        ["train", str(tmp_path / "part*.txt"), *common, "--cluster", address, "--shards", "3", "--log", str(log)],
    )
    assert found.exit_code == 0, found.output
    here = ChainCRF(template=TEMPLATE, solver="lbfgs").fit_file(files[:3])
    assert_allclose(ChainCRF.load(model).coef_, here.coef_, atol=1e-3)
    row = json.loads(log.read_text().splitlines()[-1])
    assert row["sent_mb"] > 0
    assert 0 <= row["slowest_shard"] < 3
    for wrong, message in [
        (["-", "--cluster", address], "cannot read standard input"),
        ([str(files[0]), "--shards", "3"], "--shards needs a cluster"),
        ([str(files[0]), "--cluster", address, "--train-error"], "--train-error cannot be combined with --cluster"),
    ]:
        failed = CliRunner().invoke(app, ["train", *wrong, *common])
        assert failed.exit_code != 0
        assert message in str(failed.exception) + failed.output


def test_files_that_change_are_noticed(client, files):
    from crfkit.chain.training.train import ChainTraining
    from crfkit.distributed.corpus import encode
    from crfkit.distributed.sources import file_sources

    training = ChainTraining(template=TEMPLATE)
    options = Cluster(client, shards=1)
    problem = encode(client, options, training, file_sources([str(files[0])], 1, True), True)
    files[0].write_text(column_text(10))
    shards = problem.loss.shards
    shards.recipes = tuple(replace(recipe, ready=None) for recipe in shards.recipes)
    shards._futures.clear()
    with pytest.raises(DataError, match=r"part0\.txt: 30 sequences became 10"):
        shards._restore_all()
    shards.close()


def test_attributes_that_l1_holds_at_zero_are_left_out_on_a_cluster_too(address):
    X = [[[f"w={k % 7}", f"once={i}-{k}"] for k in range(6)] for i in range(20)]
    y = [["A" if k % 7 < 3 else "B" for k in range(6)] for _ in X]
    options = {"penalty": L1(1.0), "solver": "owlqn", "tolerance": 1e-8}
    here, there = ChainCRF(**options).fit(X, y), ChainCRF(cluster=address, **options).fit(X, y)
    assert there.result_.w.size == here.result_.w.size < 60  # each attribute that occurs once would have a weight
    assert there.result_.value == pytest.approx(here.result_.value, rel=1e-9)
    assert there.predict(X) == here.predict(X)
