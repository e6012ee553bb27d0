"""Training and tagging on a Dask cluster: a loss is a sum over shards, and the shards live on the workers.

The estimators take a cluster as an argument, so most programs need nothing from here::

    ChainCRF(features="ner", cluster="tcp://scheduler:8786").fit_file("s3://corpus/part-*.txt")

This package needs ``pip install 'crfkit[distributed]'`` on the client and on every worker.
"""

from __future__ import annotations

from crfkit.distributed.cluster import Cluster, connect
from crfkit.distributed.spark_tagging import tag_in_pandas
from crfkit.distributed.tagging import tag_bag, tag_dataframe

__all__ = ["Cluster", "connect", "tag_bag", "tag_dataframe", "tag_in_pandas"]
