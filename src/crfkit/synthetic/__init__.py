"""Generated data with a seed, so that demos, examples and tests need no files.

>>> from crfkit.synthetic import news_corpus
>>> len(news_corpus(3))
3
"""

from crfkit.synthetic.chains import gaussian_chains, labelled_words
from crfkit.synthetic.fields import PairwiseTable, random_pairwise
from crfkit.synthetic.images import disc_images
from crfkit.synthetic.news import news_corpus
from crfkit.synthetic.sentences import Token, entity_corpus, entity_words, word_shape, write_columns
from crfkit.synthetic.tables import SURVEY_COLUMNS, SURVEY_EDGES, diary_table, survey_table

__all__ = [
    "SURVEY_COLUMNS",
    "SURVEY_EDGES",
    "PairwiseTable",
    "Token",
    "diary_table",
    "disc_images",
    "entity_corpus",
    "entity_words",
    "gaussian_chains",
    "labelled_words",
    "news_corpus",
    "random_pairwise",
    "survey_table",
    "word_shape",
    "write_columns",
]
