#include "sequences.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

namespace crfkit {

void Encoded::clear() {
    for (auto* ends : {&starts, &offsets, &pair_offsets}) ends->assign(1, 0);
    for (auto* ids : {&attributes, &pair_attributes, &labels}) ids->clear();
    values.clear();
}

namespace {

// Puts a few numbers in ascending order: the place of each is the number of those before it. That takes n² comparisons,
// but no branch depends on their outcome, and several are made at once.
void sort_few(int32_t* values, size_t n, int32_t* copy) {
    std::copy(values, values + n, copy);
    for (size_t i = 0; i < n; ++i) {
        const int32_t value = copy[i];
        int32_t place = 0;
        for (size_t j = 0; j < i; ++j) place += copy[j] <= value;
        for (size_t j = i + 1; j < n; ++j) place += copy[j] < value;
        values[place] = value;
    }
}

void sort_ids(int32_t* values, size_t n) {
    int32_t copy[64];
    if (n <= std::size(copy))
        sort_few(values, n, copy);
    else
        std::sort(values, values + n);
}

}  // namespace

void Encoded::sort_positions() {
    std::vector<std::pair<int32_t, double>> entries;
    for (size_t t = 0; t + 1 < offsets.size(); ++t) {
        const int64_t begin = offsets[t], end = offsets[t + 1];
        if (values.empty()) {
            sort_ids(attributes.data() + begin, static_cast<size_t>(end - begin));
            continue;
        }
        entries.clear();
        for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k)
            entries.emplace_back(attributes[k], values[k]);
        std::stable_sort(entries.begin(), entries.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (size_t k = 0; k < entries.size(); ++k)
            std::tie(attributes[static_cast<size_t>(begin) + k], values[static_cast<size_t>(begin) + k]) = entries[k];
    }
    for (size_t t = 0; t + 1 < pair_offsets.size(); ++t)
        std::sort(pair_attributes.begin() + pair_offsets[t], pair_attributes.begin() + pair_offsets[t + 1]);
}

void Vocabulary::ids(const std::vector<std::string_view>& names, std::vector<int32_t>& out) {
    if (lookup_) {
        for (const auto name : names) out.push_back(lookup_->find(name));
        return;
    }
    if (buckets_ || grown_.bits > 0) {
        for (const auto name : names) {
            const uint32_t bucket = bucket_of(name, buckets_ ? buckets_->bits : grown_.bits);
            out.push_back(buckets_ ? buckets_->ids[bucket] : grown_.add(bucket));
        }
        return;
    }
    const StringIndex index = growing_ ? interner_.view() : frozen_;
    hashes_.clear();
    for (const auto name : names) {
        hashes_.push_back(hash_string(name, index.key));
        if (index.capacity > 0) __builtin_prefetch(&index.slots[hashes_.back() & (index.capacity - 1)]);
    }
    const auto each_guess = [&](const auto& look) {  // the string that stands first where the hash points
        for (const uint64_t hash : hashes_)
            if (const auto slot = static_cast<uint32_t>(index.slots[hash & (index.capacity - 1)]); slot != 0)
                look(slot - 1);
    };
    if (index.capacity > 0) {
        each_guess([&](uint32_t id) { __builtin_prefetch(&index.offsets[id]); });
        each_guess([&](uint32_t id) { __builtin_prefetch(index.bytes + index.offsets[id]); });
    }
    if (!growing_) {
        for (size_t i = 0; i < names.size(); ++i) out.push_back(frozen_.find(names[i], hashes_[i]));
        return;
    }
    for (size_t i = 0; i < names.size(); ++i)  // strings that collide make the table change its key
        out.push_back(interner_.key() == index.key ? interner_.intern(names[i], hashes_[i])
                                                   : interner_.intern(names[i]));
}

namespace {

// The attributes of one position: names expanded into one text, then looked up together.
class Expansion {
public:
    void add(const std::vector<TemplateLine>& lines, const Columns& x, int64_t t, Vocabulary& vocabulary,
             std::vector<int32_t>& out) {
        text_.clear();
        ends_.clear();
        for (const auto& line : lines) {
            expand(line, x, t, text_);
            ends_.push_back(text_.size());
        }
        names_.clear();
        size_t begin = 0;
        for (const size_t end : ends_) {
            names_.emplace_back(text_.data() + begin, end - begin);
            begin = end;
        }
        ids_.clear();
        vocabulary.ids(names_, ids_);
        for (const int32_t id : ids_)
            if (id >= 0) out.push_back(id);
    }

private:
    std::string text_;
    std::vector<size_t> ends_;
    std::vector<std::string_view> names_;
    std::vector<int32_t> ids_;
};

}  // namespace

void encode_columns(const Template& rules, const Columns& x, Vocabulary& attributes, Vocabulary& pair_attributes,
                    Encoded& out) {
    Expansion expansion;
    for (int64_t t = 0; t < x.length; ++t) {
        expansion.add(rules.unigrams, x, t, attributes, out.attributes);
        out.offsets.push_back(static_cast<int64_t>(out.attributes.size()));
        // No label pair ends at the first position.
        if (t > 0) expansion.add(rules.bigrams, x, t, pair_attributes, out.pair_attributes);
        out.pair_offsets.push_back(static_cast<int64_t>(out.pair_attributes.size()));
    }
    out.end_sequence();
}

namespace {

// The different codes that each id occurs with, ascending; code(t) < 0 is passed over. By counting
// sort of the codes on their ids.
template <class Code, class Emit>
void distinct_codes(int64_t n_positions, const int64_t* offsets, const int32_t* ids, int64_t n_ids, int64_t n_codes,
                    Code code, Emit emit) {
    std::vector<int64_t> first(static_cast<size_t>(n_ids) + 1, 0);
    const int64_t n = offsets[n_positions];
    for (int64_t k = 0; k < n; ++k) ++first[static_cast<size_t>(ids[k]) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<int32_t> sorted(static_cast<size_t>(n));  // codes of id at [first[id], first[id + 1])
    std::vector<int64_t> next(first.begin(), first.end() - 1);
    for (int64_t t = 0; t < n_positions; ++t) {
        const auto c = static_cast<int32_t>(code(t));
        for (int64_t k = offsets[t]; k < offsets[t + 1]; ++k)
            sorted[static_cast<size_t>(next[static_cast<size_t>(ids[k])]++)] = c;
    }
    const bool few = n_codes <= int64_t{1} << 22;  // else marks of all codes would take more memory than the data
    std::vector<int64_t> seen_by(few ? static_cast<size_t>(n_codes) : 0, -1);
    std::vector<int32_t> codes;
    for (int64_t id = 0; id < n_ids; ++id) {
        codes.clear();
        for (int64_t k = first[static_cast<size_t>(id)]; k < first[static_cast<size_t>(id) + 1]; ++k) {
            const int32_t c = sorted[static_cast<size_t>(k)];
            if (c < 0 || (few && seen_by[static_cast<size_t>(c)] == id)) continue;
            if (few) seen_by[static_cast<size_t>(c)] = id;
            codes.push_back(c);
        }
        std::sort(codes.begin(), codes.end());
        if (!few) codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
        emit(id, codes);
    }
}

auto appender(int64_t n_ids, std::vector<int64_t>& offsets, std::vector<int32_t>& codes) {
    offsets.assign(1, 0);
    offsets.reserve(static_cast<size_t>(n_ids) + 1);
    codes.clear();
    return [&](int64_t, const std::vector<int32_t>& found) {
        codes.insert(codes.end(), found.begin(), found.end());
        offsets.push_back(static_cast<int64_t>(codes.size()));
    };
}

}  // namespace

std::vector<int32_t> count_labels(const SequenceView& data, int64_t n_attributes, int64_t n_labels) {
    std::vector<int32_t> counts(static_cast<size_t>(n_attributes), 0);
    distinct_codes(
        data.n_positions, data.offsets, data.attributes, n_attributes, n_labels,
        [&](int64_t t) { return data.labels[t]; },
        [&](int64_t id, const std::vector<int32_t>& found) {
            counts[static_cast<size_t>(id)] = static_cast<int32_t>(found.size());
        });
    return counts;
}

void observed_pairs(const SequenceView& data, int64_t n_attributes, int64_t n_labels, std::vector<int64_t>& offsets,
                    std::vector<int32_t>& labels) {
    distinct_codes(
        data.n_positions, data.offsets, data.attributes, n_attributes, n_labels,
        [&](int64_t t) { return data.labels[t]; }, appender(n_attributes, offsets, labels));
}

void observed_triples(const SequenceView& data, int64_t n_pair_attributes, int64_t n_labels,
                      std::vector<int64_t>& offsets, std::vector<int32_t>& codes) {
    distinct_codes(
        data.n_positions, data.pair_offsets, data.pair_attributes, n_pair_attributes, n_labels * n_labels,
        [&](int64_t t) { return t > 0 ? data.labels[t - 1] * n_labels + data.labels[t] : -1; },
        appender(n_pair_attributes, offsets, codes));
}

int64_t renumber(int64_t n_positions, int64_t* offsets, int32_t* ids, double* values, const int32_t* rank) {
    std::vector<std::pair<int32_t, double>> entries;
    int64_t kept = 0, begin = 0;
    for (int64_t t = 0; t < n_positions; ++t) {
        const int64_t end = offsets[t + 1];
        entries.clear();
        for (int64_t k = begin; k < end; ++k)
            if (rank[ids[k]] >= 0) entries.emplace_back(rank[ids[k]], values ? values[k] : 1.0);
        std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [id, value] : entries) {
            ids[kept] = id;
            if (values) values[kept] = value;
            ++kept;
        }
        begin = end;
        offsets[t + 1] = kept;
    }
    return kept;
}

}  // namespace crfkit
