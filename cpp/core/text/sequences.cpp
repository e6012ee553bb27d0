#include "sequences.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include "../support/parallel.hpp"

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
    hashed_.clear();
    for (const auto name : names) hashed_.push_back({name, uses_hashes() ? hash_string(name, key()) : 0});
    ids(hashed_, key(), out);
}

namespace {

// Calls find(i) for each name. A look-up reads a slot, then where the string that it names lies, and then that string;
// each is asked for kStep names before it is read, so that no look-up waits for memory.
template <class Find>
void look_up(std::span<const HashedName> names, const StringIndex& index, const Find& find) {
    constexpr size_t kStep = 16;
    const size_t n = names.size();
    const auto guess = [&](size_t i, const auto& look) {  // the string that stands first where the hash points
        if (const auto slot = static_cast<uint32_t>(index.slots[names[i].hash & (index.capacity - 1)]); slot != 0)
            look(slot - 1);
    };
    for (size_t i = 0; i < n + 3 * kStep; ++i) {
        if (i < n) __builtin_prefetch(&index.slots[names[i].hash & (index.capacity - 1)]);
        if (i >= kStep && i - kStep < n) guess(i - kStep, [&](uint32_t id) { __builtin_prefetch(&index.offsets[id]); });
        if (i >= 2 * kStep && i - 2 * kStep < n)
            guess(i - 2 * kStep, [&](uint32_t id) { __builtin_prefetch(index.bytes + index.offsets[id]); });
        if (i >= 3 * kStep) find(i - 3 * kStep);
    }
}

}  // namespace

void Vocabulary::known(std::span<const HashedName> names, std::vector<int32_t>& out) const {
    const size_t before = out.size();
    out.resize(before + names.size(), -1);
    int32_t* found = out.data() + before;
    if (const Buckets* buckets = buckets_ ? buckets_ : grown_.bits > 0 ? &grown_ : nullptr) {
        for (size_t i = 0; i < names.size(); ++i) found[i] = buckets->ids[bucket_at(names[i].hash, buckets->bits)];
        return;
    }
    const StringIndex index = growing_ ? interner_.view() : frozen_;
    if (index.capacity > 0)
        look_up(names, index, [&](size_t i) { found[i] = index.find(names[i].text, names[i].hash); });
}

void Vocabulary::ids(std::span<const HashedName> names, HashKey key, std::vector<int32_t>& out) {
    if (lookup_) {
        for (const auto& name : names) out.push_back(lookup_->find(name.text));
    } else if (grown_.bits > 0) {
        for (const auto& name : names) out.push_back(grown_.add(bucket_at(name.hash, grown_.bits)));
    } else if (!growing_) {
        known(names, out);
    } else {
        StringIndex index = interner_.view();
        look_up(names, index, [&](size_t i) {
            out.push_back(interner_.key() == key ? interner_.intern(names[i].text, names[i].hash)
                                                 : interner_.intern(names[i].text));
            index = interner_.view();
        });
    }
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

namespace {

constexpr int64_t kMostLabels = 64;  // of which an attribute has a bit each

// The labels that each attribute occurs with, as bits; calls seen(attribute) for each occurrence.
template <class Seen>
std::vector<uint64_t> label_bits(const SequenceView& data, int64_t n_attributes, const Seen& seen) {
    std::vector<uint64_t> bits(static_cast<size_t>(n_attributes), 0);
    for (int64_t t = 0; t < data.n_positions; ++t) {
        const uint64_t bit = uint64_t{1} << data.labels[t];
        for (int64_t k = data.offsets[t]; k < data.offsets[t + 1]; ++k) {
            const auto a = static_cast<size_t>(data.attributes[k]);
            bits[a] |= bit;
            seen(a);
        }
    }
    return bits;
}

}  // namespace

AttributeCounts count_attributes(const SequenceView& data, int64_t n_attributes, int64_t n_labels) {
    const auto n = static_cast<size_t>(n_attributes);
    AttributeCounts counts{std::vector<int64_t>(n, 0), std::vector<int32_t>(n, 0)};
    const auto seen = [&](size_t a) { ++counts.occurrences[a]; };
    if (n_labels <= kMostLabels) {
        const auto bits = label_bits(data, n_attributes, seen);
        for (size_t a = 0; a < n; ++a) counts.labels[a] = std::popcount(bits[a]);
        return counts;
    }
    for (int64_t k = 0; k < data.offsets[data.n_positions]; ++k) seen(static_cast<size_t>(data.attributes[k]));
    distinct_codes(
        data.n_positions, data.offsets, data.attributes, n_attributes, n_labels,
        [&](int64_t t) { return data.labels[t]; },
        [&](int64_t id, const std::vector<int32_t>& found) {
            counts.labels[static_cast<size_t>(id)] = static_cast<int32_t>(found.size());
        });
    return counts;
}

void observed_pairs(const SequenceView& data, int64_t n_attributes, int64_t n_labels, std::vector<int64_t>& offsets,
                    std::vector<int32_t>& labels) {
    if (n_labels > kMostLabels)
        return distinct_codes(
            data.n_positions, data.offsets, data.attributes, n_attributes, n_labels,
            [&](int64_t t) { return data.labels[t]; }, appender(n_attributes, offsets, labels));
    offsets.assign(1, 0);
    offsets.reserve(static_cast<size_t>(n_attributes) + 1);
    labels.clear();
    for (uint64_t bits : label_bits(data, n_attributes, [](size_t) {})) {
        for (; bits != 0; bits &= bits - 1) labels.push_back(std::countr_zero(bits));
        offsets.push_back(static_cast<int64_t>(labels.size()));
    }
}

void observed_triples(const SequenceView& data, int64_t n_pair_attributes, int64_t n_labels,
                      std::vector<int64_t>& offsets, std::vector<int32_t>& codes) {
    distinct_codes(
        data.n_positions, data.pair_offsets, data.pair_attributes, n_pair_attributes, n_labels * n_labels,
        [&](int64_t t) { return t > 0 ? data.labels[t - 1] * n_labels + data.labels[t] : -1; },
        appender(n_pair_attributes, offsets, codes));
}

namespace {

// Renumbers the positions from `first` to `last`, and puts what remains of them where they began. Returns its end;
// offsets[t + 1] is that of position t.
int64_t renumber_part(int64_t first, int64_t last, int64_t* offsets, int32_t* ids, double* values,
                      const int32_t* rank) {
    std::vector<std::pair<int32_t, double>> entries;
    int64_t begin = offsets[first], kept = begin;
    for (int64_t t = first; t < last; ++t) {
        const int64_t end = offsets[t + 1], at = kept;
        if (!values) {
            for (int64_t k = begin; k < end; ++k) {
                const int32_t id = rank[ids[k]];
                ids[kept] = id;
                kept += id >= 0;
            }
            sort_ids(ids + at, static_cast<size_t>(kept - at));
        } else {
            entries.clear();
            for (int64_t k = begin; k < end; ++k)
                if (rank[ids[k]] >= 0) entries.emplace_back(rank[ids[k]], values[k]);
            std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
            for (const auto& [id, value] : entries) {
                ids[kept] = id;
                values[kept++] = value;
            }
        }
        begin = end;
        if (t + 1 < last) offsets[t + 1] = kept;  // the next part begins at the last
    }
    return kept;
}

}  // namespace

int64_t renumber(int64_t n_positions, int64_t* offsets, int32_t* ids, double* values, const int32_t* rank,
                 int n_threads) {
    const std::vector<int64_t> bounds =
        split_by_cost(n_positions, n_threads, [&](int64_t t) { return static_cast<double>(offsets[t]); });
    std::vector<int64_t> begins, ends(static_cast<size_t>(n_threads));
    for (int part = 0; part < n_threads; ++part) begins.push_back(offsets[bounds[static_cast<size_t>(part)]]);
    run_threads(n_threads, [&](int part) {
        const auto p = static_cast<size_t>(part);
        ends[p] = bounds[p] == bounds[p + 1] ? begins[p]
                                             : renumber_part(bounds[p], bounds[p + 1], offsets, ids, values, rank);
    });
    int64_t kept = 0;
    for (size_t p = 0; p < ends.size(); ++p) {  // moves the parts together
        const int64_t begin = begins[p], gap = begin - kept;
        if (gap > 0) {
            std::copy(ids + begin, ids + ends[p], ids + kept);
            if (values) std::copy(values + begin, values + ends[p], values + kept);
            for (int64_t t = bounds[p]; t < bounds[p + 1]; ++t) offsets[t] -= gap;
        }
        kept += ends[p] - begin;
    }
    offsets[n_positions] = kept;
    return kept;
}

}  // namespace crfkit
