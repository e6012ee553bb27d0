"""
Several labels at once
======================

Whether it rains, whether people carry umbrellas, how they travel and whether they
have a picnic depend on the weather, and on each other. A field learns all four labels
together, so that its answers fit each other.

Read on: :doc:`/tutorials/several_labels`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crfkit import GraphCRF
from crfkit.synthetic import diary_table

plt.style.use("tableau-colorblind10")

# %%
# A generated diary: five measurements and four labels a day.
names, rows = diary_table(1600, seed=0)
table = np.array(rows)
X, Y = table[:, :5].astype(float), table[:, 5:]
X_train, Y_train, X_test, Y_test = X[:600], Y[:600], X[600:], Y[600:]

together = GraphCRF().fit(X_train, Y_train)
alone = MultiOutputClassifier(
    make_pipeline(StandardScaler(), LogisticRegression())
).fit(X_train, Y_train)
found = {"independent": alone.predict(X_test), "together": together.predict(X_test)}

# %%
# Single labels are about as often right. Whole days are more often right if the
# labels are predicted together.
fig, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
places = np.arange(5)
for k, (name, labels) in enumerate(found.items()):
    correct = labels == Y_test
    values = [*correct.mean(axis=0), correct.all(axis=1).mean()]
    bars = ax.bar(
        places + 0.4 * k - 0.2, values, 0.38, color=("C2", "C0")[k], label=name
    )
    ax.bar_label(bars, [f"{100 * value:.0f}" for value in values], fontsize=9)
ax.set_xticks(places, [*names[5:], "all four"])
ax.set_ylabel("share of days that are right")
ax.set_ylim(0, 1)
ax.legend(loc="upper right", ncols=2)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
