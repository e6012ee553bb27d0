// Rules for plain tokens.
#include "encoder.hpp"

namespace crfkit {

namespace {

using Phrases = std::vector<std::pair<std::string, StringTable>>;

void make_text_rules(BoundTextRules* self, const std::vector<std::string>& rules, const Phrases& gazetteers, bool fold,
                     std::optional<StringTable> words, std::optional<Array<float>> vectors) {
    TextRules made(rules);
    for (const auto& [name, phrases] : gazetteers) made.gazetteers.emplace_back(name, phrases.view(), fold);
    if (words.has_value() != vectors.has_value()) throw nb::value_error("words and vectors go together");
    if (words && words->offsets.size() > 1) {
        const size_t n = words->offsets.size() - 1;
        if (vectors->size() % n != 0) throw nb::value_error("the number of vectors differs from that of words");
        made.embeddings = {words->view(), vectors->data(), static_cast<int64_t>(vectors->size() / n)};
    }
    new (self) BoundTextRules{std::move(words), std::move(vectors), std::move(made)};
}

// (attributes, values) of each position.
nb::list expanded(const BoundTextRules& self, const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::string_view> cells;
    for (const auto& row : rows) {
        if (static_cast<int64_t>(row.size()) < self.rules.n_columns || row.size() != rows[0].size())
            throw nb::value_error("a row has too few columns, or not as many as the first");
        cells.insert(cells.end(), row.begin(), row.end());
    }
    const Columns x{cells.data(), static_cast<int64_t>(rows.size()),
                    rows.empty() ? 0 : static_cast<int64_t>(rows[0].size())};
    TextExpansion expansion(self.rules);
    Vocabulary names;
    Encoded out;
    expansion.encode(x, names, out);
    nb::list result;
    for (size_t t = 0; t + 1 < out.offsets.size(); ++t) {
        nb::list position;
        for (auto k = static_cast<size_t>(out.offsets[t]); k < static_cast<size_t>(out.offsets[t + 1]); ++k) {
            const std::string_view name = names.interner().view().at(static_cast<uint64_t>(out.attributes[k]));
            position.append(
                nb::make_tuple(nb::str(name.data(), name.size()), out.values.empty() ? 1.0 : out.values[k]));
        }
        result.append(position);
    }
    return result;
}

}  // namespace

void bind_text_rules(nb::module_& m) {
    nb::class_<BoundTextRules>(m, "TextRules", "Rules that make attributes of plain tokens; see crfkit.text.words.")
        .def("__init__", &make_text_rules, "rules"_a, "gazetteers"_a = Phrases{}, "fold"_a = false,
             "words"_a = nb::none(), "vectors"_a = nb::none(),
             nb::sig("def __init__(self, rules: Sequence[str], gazetteers: Sequence[tuple[str, StringTable]] = (), "
                     "fold: bool = False, words: StringTable | None = None, vectors: NDArray[numpy.float32] | None = "
                     "None) -> None"))
        .def_prop_ro("n_columns", [](const BoundTextRules& self) { return self.rules.n_columns; })
        .def_prop_ro("dimensions", [](const BoundTextRules& self) { return self.rules.embeddings.dimensions; })
        .def("expand", &expanded, "rows"_a, "The attributes of each position, with their values.",
             nb::sig("def expand(self, rows: Sequence[Sequence[str]]) -> list[list[tuple[str, float]]]"));
}

}  // namespace crfkit
