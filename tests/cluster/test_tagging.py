"""Tagging on a cluster: the same as in one process, with a model that each worker loads once."""

from __future__ import annotations

import pickle
import shutil
import sys
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optional import optional

optional("distributed.client")  # the folder of this file is a namespace package of the name "distributed"
bags = optional("dask.bag")

from crfkit import ChainCRF, ChainModel  # noqa: E402
from crfkit.distributed import tag_bag, tag_dataframe, tag_in_pandas  # noqa: E402
from crfkit.distributed.worker_models import LoadedModels, ModelParts, model_source, models_loaded  # noqa: E402
from crfkit.errors import DataError, ModelFileError, ParameterError  # noqa: E402
from crfkit.synthetic import entity_words  # noqa: E402

HERE = {"scheduler": "synchronous"}
X, Y = entity_words(120)


@pytest.fixture(scope="module")
def crf():
    return ChainCRF(features="pos", n_threads=1).fit(X, Y)


@pytest.fixture(scope="module")
def path(crf, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.crf"
    crf.save(path)
    return path


def compute(client, collection):
    return client.compute(collection).result(timeout=60)


# --- bags


def test_a_bag_is_tagged_as_in_one_process(client, crf):
    bag = bags.from_sequence(X, npartitions=5)
    assert compute(client, tag_bag(crf, bag)) == crf.predict(X)
    assert compute(client, tag_bag(crf.model_, bag, "spans", batch_size=7)) == crf.predict_spans(X)


@pytest.mark.parametrize("sent", ["path", "object"])
def test_a_worker_loads_a_model_once(client, crf, path, sent, tmp_path):
    model = shutil.copy(path, tmp_path / "once.crf") if sent == "path" else ChainCRF(features="pos").fit(X[:50], Y[:50])
    before = client.run(models_loaded)
    bag = bags.from_sequence(X * 4, npartitions=24)
    compute(client, tag_bag(model, bag))
    compute(client, tag_bag(model, bag, "marginals"))
    after = client.run(models_loaded)
    assert sum(after.values()) > sum(before.values())
    assert all(after[worker] - before[worker] <= 1 for worker in after)


def test_what_may_be_asked_of_a_bag(crf):
    bag = bags.from_sequence(X, npartitions=2)
    spans = tag_bag(crf, bag, "spans", min_probability=0.9).compute(**HERE)
    assert spans == crf.predict_spans(X, min_probability=0.9)
    nbest = tag_bag(crf, bag, "nbest", n=2).compute(**HERE)
    assert nbest == crf.predict_nbest(X, 2)
    marginals = tag_bag(crf, bag, "marginals", batch_size=11).compute(**HERE)
    assert all(map(np.array_equal, marginals, crf.predict_marginals(X)))
    decoded = tag_bag(crf, bag, "decoded", method="posterior").compute(**HERE)
    assert [found.labels for found in decoded] == [found.labels for found in crf.decode(X, method="posterior")]


def test_partitions_of_a_bag_may_be_empty_and_lazy(crf):
    bag = bags.from_sequence(X, npartitions=6).filter(lambda x: x[0] == X[0][0])
    assert tag_bag(crf, bag).compute(**HERE) == crf.predict([x for x in X if x[0] == X[0][0]])


def test_what_is_no_bag_of_sequences_is_an_error(crf, path):
    with pytest.raises(ParameterError, match=r"bag must be a dask\.bag\.Bag, not list"):
        tag_bag(crf, X)
    for items, kind in ((["Ada saw Oslo"], "str"), ([3], "int"), ([None], "NoneType")):
        with pytest.raises(DataError, match=f"item 2 of a partition of the bag is a {kind}; expected a sequence"):
            tag_bag(path, bags.from_sequence([*X[:2], *items], npartitions=1)).compute(**HERE)
    with pytest.raises(DataError, match="in a partition of the bag, from item 2 on: "):
        tag_bag(path, bags.from_sequence([*X[:2], [["a", "b"], 3.5]], npartitions=1), batch_size=2).compute(**HERE)
    with pytest.raises(ParameterError, match="unknown prediction 'label'"):
        tag_bag(path, bags.from_sequence(X), "label")
    with pytest.raises(ParameterError, match="labels of a bag have no option 'n'; they have none"):
        tag_bag(path, bags.from_sequence(X), n=2)
    with pytest.raises(ParameterError, match="batch_size must be an integer >= 1"):
        tag_bag(path, bags.from_sequence(X), batch_size=0)
    with pytest.raises(ParameterError, match="a ChainModel or a fitted ChainCRF, not dict"):
        tag_bag({}, bags.from_sequence(X))


def test_a_file_that_a_worker_cannot_read_is_an_error(client, tmp_path):
    found = tag_bag(tmp_path / "none.crf", bags.from_sequence(X, npartitions=1))
    with pytest.raises(ModelFileError, match=r"cannot read .*none\.crf on .*every worker must be able to read it"):
        compute(client, found)
    (tmp_path / "text.crf").write_text("no model")
    with pytest.raises(ModelFileError, match=r"on .*text\.crf: this is not a model that crfkit knows"):
        compute(client, tag_bag(tmp_path / "text.crf", bags.from_sequence(X, npartitions=1)))


# --- frames of Dask


def table(n=40):
    pandas = optional("pandas")
    rows = [(k, t, word, label) for k in range(n) for t, (word, label) in enumerate(zip(X[k], Y[k], strict=True))]
    return pandas.DataFrame(rows, columns=["sentence", "position", "word", "tag"])


@pytest.fixture(scope="module")
def frames():
    return optional("dask.dataframe")


@pytest.fixture(scope="module")
def framed():
    return ChainCRF(features="pos", n_threads=1).fit_frame(table(), label="tag", token="word")


def test_a_frame_is_tagged_as_in_one_process(client, frames, framed):
    rows = table()
    frame = frames.from_pandas(rows, npartitions=4)
    found = tag_dataframe(framed, frame, probability=True)
    expected = framed.predict_frame(rows, probability=True)
    computed = compute(client, found)
    assert computed["predicted"].tolist() == expected["tag"].tolist()
    np.testing.assert_allclose(computed["probability"], expected["probability"], rtol=1e-12)
    assert computed[list(rows.columns)].equals(frame.compute(**HERE))
    assert found.divisions == frame.divisions
    assert (found.dtypes == computed.dtypes).all()


@pytest.mark.parametrize("more", [0, 3, 1000])
def test_sentences_may_cross_a_border(frames, framed, more):
    rows = table(16)
    size = int(rows.groupby("sentence").size().max()) + more
    frame = frames.from_map(lambda begin: rows.iloc[begin : begin + size], range(0, len(rows), size))
    found = tag_dataframe(framed, frame, batch_size=3).compute(**HERE)
    assert found["predicted"].tolist() == framed.predict_frame(rows).tolist()


def test_a_sentence_in_three_partitions_is_an_error(frames, framed):
    rows = table(3)
    frame = frames.from_pandas(rows, npartitions=len(rows))
    with pytest.raises(DataError, match=r"in partition \d+ of the frame: sentence \d takes more than two partitions"):
        tag_dataframe(framed, frame).compute(**HERE)
    apart = tag_dataframe(framed, frame, borders=False).compute(**HERE)
    alone = [framed.predict([[word]])[0][0] for word in rows["word"]]
    assert apart["predicted"].tolist() == alone


def test_partitions_of_a_frame_may_be_empty(frames, framed, client):
    frame = frames.from_pandas(table(), npartitions=4)
    some = frame[frame["sentence"] < 9]
    rows = table(9)
    found = compute(client, tag_dataframe(framed, some, probability=True))
    assert found["predicted"].tolist() == framed.predict_frame(rows).tolist()
    assert found["probability"].dtype == "float64"


def test_the_sentence_may_be_the_index_and_rows_in_any_order(frames, framed):
    rows = table()
    mixed = rows.sample(frac=1, random_state=0)
    frame = frames.from_pandas(mixed, npartitions=3, sort=False).set_index("sentence", npartitions=3)
    found = tag_dataframe(framed, frame, position="position").compute(**HERE)
    found = found.reset_index().sort_values(["sentence", "position"])
    assert found["predicted"].tolist() == framed.predict_frame(rows).tolist()
    shuffled = frames.from_pandas(mixed, npartitions=3, sort=False).shuffle("sentence")
    again = tag_dataframe(framed, shuffled, position="position").compute(**HERE).sort_values(["sentence", "position"])
    assert again["predicted"].tolist() == found["predicted"].tolist()


def test_labels_that_are_numbers_have_their_type(frames):
    rows = table(10).assign(tag=lambda found: (found["tag"] != "O").astype(int))
    crf = ChainCRF(features="pos").fit_frame(rows, label="tag", token="word")
    found = tag_dataframe(crf, frames.from_pandas(rows, npartitions=2))
    assert found["predicted"].dtype == "int64"
    assert found.compute(**HERE)["predicted"].tolist() == crf.predict_frame(rows).tolist()


def test_wrong_columns_are_errors_at_once(frames, framed, crf, path, tmp_path):
    frame = frames.from_pandas(table(), npartitions=2)
    with pytest.raises(DataError, match=r"the frame has no column 'doc'; it has 'sentence', 'position', 'word', 'tag'"):
        tag_dataframe(framed, frame, sequence="doc")
    with pytest.raises(DataError, match="no column 'form'"):
        tag_dataframe(framed, frame, token="form")
    with pytest.raises(DataError, match="no column 'place'"):
        tag_dataframe(framed, frame, position="place")
    with pytest.raises(ParameterError, match="already has a column 'tag'; choose another name with label="):
        tag_dataframe(framed, frame, label="tag")
    with pytest.raises(ParameterError, match="was not trained on a frame; name the columns"):
        tag_dataframe(path, frame)
    with pytest.raises(ParameterError, match=r"must be a dask\.dataframe\.DataFrame, not DataFrame"):
        tag_dataframe(framed, table())
    with pytest.raises(ModelFileError, match=r"none\.crf.*needed here as well"):
        tag_dataframe(tmp_path / "none.crf", frame)
    named = tag_dataframe(path, frame, sequence="sentence", token="word").compute(**HERE)
    assert named["predicted"].tolist() == [label for row in crf.predict(X[:40]) for label in row]


# --- frames of Spark


@pytest.mark.parametrize("size", [1, 3, 10, 10_000])
def test_batches_that_end_inside_sentences(framed, size):
    rows = table(16)
    batches = [rows.iloc[k : k + size].reset_index(drop=True) for k in range(0, len(rows), size)]
    batches.insert(1, rows.iloc[:0])
    function = pickle.loads(pickle.dumps(tag_in_pandas(framed, probability=True, batch_size=5)))
    found = list(function(iter(batches)))
    expected = framed.predict_frame(rows, probability=True)
    joined = optional("pandas").concat(found, ignore_index=True)
    assert joined[list(rows.columns)].equals(rows)
    assert joined["predicted"].tolist() == expected["tag"].tolist()
    np.testing.assert_allclose(joined["probability"], expected["probability"], rtol=1e-12)
    assert list(function(iter([]))) == []


@given(cuts=st.sets(st.integers(0, 60)), seed=st.integers(0, 9))
def test_batches_may_be_cut_anywhere(framed, cuts, seed):
    rows = table(8).iloc[:60]
    mixed = rows.sample(frac=1, random_state=seed).sort_values("sentence", kind="stable")
    ends = sorted({*cuts, 0, len(rows)})
    batches = [mixed.iloc[begin:end] for begin, end in pairwise(ends) if begin < len(rows)]
    found = optional("pandas").concat(tag_in_pandas(framed, position="position")(batches))
    assert found.index.tolist() == mixed.index.tolist()
    assert found.sort_index()["predicted"].tolist() == framed.predict_frame(rows).tolist()


def test_batches_are_tagged_as_they_come(framed):
    rows = table()
    taken = 0

    def batches():
        nonlocal taken
        for k in range(0, len(rows), 50):
            taken += 1
            yield rows.iloc[k : k + 50]

    next(tag_in_pandas(framed)(batches()))
    assert taken == 1


def test_batches_that_cannot_be_tagged(framed, crf):
    rows = table(5)
    with pytest.raises(DataError, match="rows of the sentence 0 do not lie together; sort the frame"):
        list(tag_in_pandas(framed)([rows, rows[:2]]))
    with pytest.raises(DataError, match="no column 'word'; it has 'sentence'"):
        list(tag_in_pandas(framed)([rows[["sentence"]]]))
    with pytest.raises(ParameterError, match="was not trained on a frame"):
        list(tag_in_pandas(crf)([rows]))
    with pytest.raises(ParameterError, match="label must not be 'probability'"):
        tag_in_pandas(framed, label="probability", probability=True)
    with pytest.raises(ParameterError, match="sequence must be the name of a column, not 3"):
        tag_in_pandas(framed, sequence=3)


# --- models on workers


def test_the_parts_of_a_model_are_plain_and_make_the_same_model(crf):
    source = model_source(crf)
    assert isinstance(source, ModelParts)
    sent = pickle.dumps(source)
    assert b"crfkit.chain.model" not in sent
    assert b"sklearn" not in sent
    again = pickle.loads(sent)
    assert again.digest == model_source(crf.model_).digest == source.digest
    assert again.model().predict(X) == crf.predict(X)
    assert again.model() is again.model()
    assert again.model().n_threads == 1
    assert sys.getsizeof(again) > crf.coef_.nbytes
    assert model_source(ChainCRF(features="pos").fit(X[:5], Y[:5])).digest != source.digest


def test_arrays_that_arrive_unaligned_are_aligned(crf):
    source = model_source(crf)
    moved = {
        name: np.frombuffer(b"." + array.tobytes(), array.dtype, array.size, offset=1).reshape(array.shape)
        for name, array in source.tensors.items()
    }
    assert not moved["weights"].flags.aligned
    model = ModelParts("moved", source.metadata, moved).model()
    assert model.w.flags.aligned
    assert model.predict(X) == crf.predict(X)


def test_a_file_that_changes_is_loaded_again(crf, path, tmp_path):
    copy = tmp_path / "model.crf"
    shutil.copy(path, copy)
    first = model_source(copy)
    assert first.model() is model_source(copy).model()
    other = ChainCRF(features="pos").fit(X[:20], Y[:20])
    other.save(copy)
    second = model_source(str(copy))
    assert second != first  # so that Dask does not take it for the same task
    assert second.model().predict(X) == other.predict(X)


def test_addresses_are_read_with_fsspec(crf, path):
    fsspec = optional("fsspec")
    with fsspec.open("memory://models/model.crf", "wb") as stream:
        stream.write(path.read_bytes())
    source = model_source("memory://models/model.crf")
    assert source.model().predict(X) == crf.predict(X)
    assert source.model() is source.model()
    with pytest.raises(ModelFileError, match=r"cannot read memory://none\.crf on .*every worker"):
        model_source("memory://none.crf").model()
    with fsspec.open("memory://models/text.crf", "wb") as stream:
        stream.write(b"no model")
    with pytest.raises(ModelFileError, match=r"memory://models/text\.crf: this is not a model"):
        model_source("memory://models/text.crf").model()


def test_threads_share_one_load_and_few_models_are_kept(path):
    cache, made = LoadedModels(most=2), []
    model = ChainModel.load(path)

    def make():
        time.sleep(0.05)
        made.append(model)
        return model

    threads = [threading.Thread(target=cache.get, args=("one", None, make)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == cache.loads == 1
    cache.get("two", None, make)
    cache.get("one", None, make)
    cache.get("three", None, make)
    assert len(made) == 3
    cache.get("one", None, make)  # used later than "two", so still there
    assert len(made) == 3
    cache.get("two", None, make)
    assert len(made) == 4


def test_a_load_that_fails_is_tried_again(path):
    cache = LoadedModels()

    def fail():
        raise ModelFileError("away")

    with pytest.raises(ModelFileError):
        cache.get("one", None, fail)
    assert cache.get("one", None, lambda: ChainModel.load(path)) is not None
