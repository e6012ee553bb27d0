// Templates, and counts over encoded sequences.
#include "../core/text/sequences.hpp"

#include "../core/text/template.hpp"
#include "common.hpp"

namespace crfkit {

namespace {

SequenceView view_of(const Array<int64_t>& offsets, const Array<int32_t>& ids, const Array<int32_t>& labels,
                     int64_t n_ids, int64_t n_labels) {
    check_size(offsets.size(), static_cast<int64_t>(labels.size()) + 1, "offsets");
    check_offsets(span_of(offsets), static_cast<int64_t>(ids.size()), "offsets");
    check_number(n_ids, 0, kMostIds, "the number of ids");
    check_ids(span_of(ids), n_ids, "id");
    check_labels(n_labels, 1);
    check_ids(span_of(labels), n_labels, "label");
    SequenceView view;
    view.n_positions = static_cast<int64_t>(labels.size());
    view.offsets = view.pair_offsets = offsets.data();
    view.attributes = view.pair_attributes = ids.data();
    view.labels = labels.data();
    return view;
}

// Wapiti's expressions may cut a character in two.
nb::list decoded(const std::vector<std::string>& texts) {
    nb::list result;
    for (const auto& text : texts)
        result.append(
            nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape")));
    return result;
}

}  // namespace

void bind_sequences(nb::module_& m) {
    m.def(
        "template_summary",
        [](const std::string& text, const std::string& syntax) {
            const Template rules = parse_template(text, template_syntax(syntax));
            return std::make_tuple(sources(rules.unigrams), sources(rules.bigrams),
                                   rules.transitions ? std::optional(rules.transition_source) : std::nullopt,
                                   rules.n_columns);
        },
        "text"_a, "syntax"_a = "crf++",
        "(unigram lines, bigram lines other than that of the transitions, that line or None, columns needed)");
    m.def(
        "expand_template",
        [](const std::string& text, const std::vector<std::vector<std::string>>& rows, const std::string& syntax) {
            nb::list result;
            for (const auto& [unigrams, bigrams] : expand_rows(parse_template(text, template_syntax(syntax)), rows))
                result.append(nb::make_tuple(decoded(unigrams), decoded(bigrams)));
            return result;
        },
        "template"_a, "rows"_a, "syntax"_a = "crf++",
        nb::sig("def expand_template(template: str, rows: Sequence[Sequence[str]], syntax: str = 'crf++') -> "
                "list[tuple[list[str], list[str]]]"),
        "Per position, the unigram and the bigram attributes.");
    m.def(
        "count_attributes",
        [](const Array<int64_t>& offsets, const Array<int32_t>& ids, const Array<int32_t>& labels, int64_t n_ids,
           int64_t n_labels) {
            AttributeCounts found = count_attributes(view_of(offsets, ids, labels, n_ids, n_labels), n_ids, n_labels);
            return std::make_tuple(to_numpy(std::move(found.occurrences)), to_numpy(std::move(found.labels)));
        },
        "offsets"_a, "ids"_a, "labels"_a, "n_ids"_a, "n_labels"_a,
        "(how often each id occurs, with how many different labels)");
    m.def(
        "observed_pairs",
        [](const Array<int64_t>& offsets, const Array<int32_t>& ids, const Array<int32_t>& labels, int64_t n_ids,
           int64_t n_labels, bool pairs) {
            std::vector<int64_t> first;
            std::vector<int32_t> codes;
            (pairs ? observed_triples : observed_pairs)(view_of(offsets, ids, labels, n_ids, n_labels), n_ids, n_labels,
                                                        first, codes);
            return std::make_tuple(to_numpy(std::move(first)), to_numpy(std::move(codes)));
        },
        "offsets"_a, "ids"_a, "labels"_a, "n_ids"_a, "n_labels"_a, "pairs"_a = false);
    m.def(
        "renumber",
        [](const OutputArray<int64_t>& offsets, const OutputArray<int32_t>& ids,
           const std::optional<OutputArray<double>>& values, const Array<int32_t>& rank, int n_threads) {
            check_number(n_threads, 1, 1 << 10, "the number of threads");
            check_offsets(span_of(offsets), static_cast<int64_t>(ids.size()), "offsets");
            check_ids(span_of(ids), static_cast<int64_t>(rank.size()), "id");
            if (values) check_size(values->size(), static_cast<int64_t>(ids.size()), "values");
            return renumber(static_cast<int64_t>(offsets.size()) - 1, offsets.data(), ids.data(),
                            values ? values->data() : nullptr, rank.data(), n_threads);
        },
        "offsets"_a, "ids"_a, "values"_a.none(), "rank"_a, "n_threads"_a = 1,
        "Renumbers in place, dropping negative ranks; returns the number of entries that remain.");
}

}  // namespace crfkit
