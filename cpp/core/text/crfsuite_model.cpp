#include "crfsuite_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "crfsuite_file.hpp"

namespace crfkit {

namespace {

using namespace crfsuite;

// The features of a type are those that the lists of their sources name, each once.
void check_lists(const File& file, Type type, size_t n_sources, size_t n_features) {
    std::vector<bool> seen(file.features.size());
    size_t total = 0;
    for (size_t source = 0; source < n_sources; ++source)
        file.each_feature(type, source, [&](size_t id, const Feature&) {
            if (seen[id]) refuse("a feature is listed twice");
            seen[id] = true;
            ++total;
        });
    if (total != n_features)
        refuse("its lists name " + std::to_string(total) + " features, but there are " + std::to_string(n_features));
}

// Sorts feature ids by source and target if necessary; the same pair must not come twice.
void put_in_order(std::vector<uint32_t>& ids, const Features& features) {
    const auto key = [&](uint32_t f) {
        const Feature feature = features[f];
        return static_cast<uint64_t>(feature.source) << 32 | feature.target;
    };
    const auto before = [&](uint32_t f, uint32_t g) { return key(f) < key(g); };
    if (!std::is_sorted(ids.begin(), ids.end(), before)) std::sort(ids.begin(), ids.end(), before);
    for (size_t k = 1; k < ids.size(); ++k)
        if (!before(ids[k - 1], ids[k])) refuse("a feature occurs twice");
}

}  // namespace

CrfsuiteModel read_crfsuite(std::string_view bytes) {
    const File file(bytes);
    const Features& features = file.features;
    const Database &labels = file.labels, &attributes = file.attributes;
    labels.check_tables();
    attributes.check_tables();

    CrfsuiteModel model;
    labels.each([&](std::string_view text) { model.labels.emplace_back(text); });
    model.attributes.offsets.reserve(attributes.size() + 1);
    model.attributes.bytes.reserve(attributes.bytes());
    attributes.each([&](std::string_view text) {
        model.attributes.bytes.insert(model.attributes.bytes.end(), text.begin(), text.end());
        model.attributes.offsets.push_back(model.attributes.bytes.size());
    });
    try {
        model.attributes.slots =
            build_slots(model.attributes.offsets.data(), reinterpret_cast<const char*>(model.attributes.bytes.data()),
                        attributes.size());
    } catch (const std::invalid_argument&) {
        refuse("an attribute occurs twice");
    }

    std::vector<uint32_t> states, transitions;
    states.reserve(features.size());
    for (size_t f = 0; f < features.size(); ++f) {
        const Feature feature = features[f];
        const size_t sources = feature.type == kState ? attributes.size() : labels.size();
        if (feature.type > kTransition || feature.source >= sources || feature.target >= labels.size())
            refuse("feature " + std::to_string(f) + " is of no attribute or of no label");
        if (!std::isfinite(feature.weight)) refuse("the weight of feature " + std::to_string(f) + " is not finite");
        (feature.type == kState ? states : transitions).push_back(static_cast<uint32_t>(f));
    }
    check_lists(file, kTransition, labels.size(), transitions.size());
    check_lists(file, kState, attributes.size(), states.size());
    put_in_order(states, features);
    put_in_order(transitions, features);
    model.state_offsets.assign(attributes.size() + 1, 0);
    model.state_labels.reserve(states.size());
    model.weights.reserve(features.size());
    for (const uint32_t f : states) {
        const Feature feature = features[f];
        ++model.state_offsets[feature.source + 1];
        model.state_labels.push_back(static_cast<int32_t>(feature.target));
        model.weights.push_back(feature.weight);
    }
    std::partial_sum(model.state_offsets.begin(), model.state_offsets.end(), model.state_offsets.begin());
    for (const uint32_t f : transitions) {
        const Feature feature = features[f];
        model.transition_codes.push_back(static_cast<int32_t>(feature.source * labels.size() + feature.target));
        model.weights.push_back(feature.weight);
    }
    return model;
}

namespace {

// A file under construction. Numbers that are known later are set where they belong.
class Writer {
public:
    size_t size() const { return out_.size(); }
    void text(std::string_view text) { out_ += text; }
    void number(size_t x) {
        out_.resize(out_.size() + 4);
        set(out_.size() - 4, x);
    }
    void set(size_t at, size_t x) {
        if (x > UINT32_MAX) refuse("the model is too large for CRFsuite's format, which ends at 4 GB");
        const auto word = static_cast<uint32_t>(x);
        std::memcpy(out_.data() + at, &word, sizeof word);
    }
    void real(double x) { out_.append(reinterpret_cast<const char*>(&x), sizeof x); }
    void zeros(size_t n) { out_.resize(out_.size() + n); }
    std::string take() { return std::move(out_); }

private:
    std::string out_;
};

// A chunk begins with its name and its size, which is set when it ends.
size_t begin_chunk(Writer& out, const char* name) {
    const size_t begin = out.size();
    out.text(name);
    out.number(0);
    return begin;
}

void end_chunk(Writer& out, size_t begin) { out.set(begin + 4, out.size() - begin); }

// A database of n strings: their records, the hash tables (twice as many buckets as strings in each), the record of
// each id. Offsets count from the beginning of the chunk.
template <class StringAt>
void write_database(Writer& out, size_t n, const StringAt& string_at) {
    const size_t begin = begin_chunk(out, "CQDB");
    out.number(0);
    out.number(kByteOrder);
    out.number(n);
    out.zeros(4 + 8 * kTables);
    struct Record {
        uint32_t hash;
        size_t at;
    };
    std::vector<std::vector<Record>> tables(kTables);
    std::vector<size_t> records;
    for (size_t id = 0; id < n; ++id) {
        const std::string_view text = string_at(id);
        if (text.find('\0') != std::string_view::npos)
            refuse("a label or attribute has a zero byte, which ends a text there");
        const uint32_t hash = lookup3_with_zero(text);
        records.push_back(out.size() - begin);
        tables[hash % kTables].push_back({hash, records.back()});
        out.number(id);
        out.number(text.size() + 1);
        out.text(text);
        out.zeros(1);
    }
    std::vector<Record> buckets;
    for (size_t k = 0; k < kTables; ++k) {
        const size_t size = 2 * tables[k].size();
        out.set(begin + kDatabaseHeader + 8 * k, size == 0 ? 0 : out.size() - begin);
        out.set(begin + kDatabaseHeader + 8 * k + 4, size);
        buckets.assign(size, {0, 0});
        for (const Record& record : tables[k]) {
            size_t b = (record.hash >> 8) % size;
            for (size_t steps = 0; buckets[b].at != 0; b = (b + 1) % size)
                if (++steps >= kLongestChain)
                    refuse("too many attributes collide in the hash tables of CRFsuite's format");
            buckets[b] = record;
        }
        for (const Record& bucket : buckets) {
            out.number(bucket.hash);
            out.number(bucket.at);
        }
    }
    out.set(begin + 20, out.size() - begin);
    for (const size_t record : records) out.number(record);
    end_chunk(out, begin);
}

// For each source, where its list of features is, then the lists; features are numbered from `first` on, and those of
// source s are counts[s] successive ones. `unused` entries follow that have no list.
void write_references(Writer& out, const char* name, const std::vector<size_t>& counts, size_t first, size_t unused) {
    const size_t begin = begin_chunk(out, name);
    out.number(counts.size() + unused);
    out.zeros(4 * (counts.size() + unused));
    for (size_t s = 0; s < counts.size(); ++s) {
        out.set(begin + 12 + 4 * s, out.size());
        out.number(counts[s]);
        for (size_t k = 0; k < counts[s]; ++k) out.number(first++);
    }
    end_chunk(out, begin);
}

}  // namespace

std::string write_crfsuite(const CrfsuiteParts& model) {
    const size_t n_labels = model.labels.size();
    std::vector<size_t> kept, counts, label_counts(n_labels, 0);  // attributes with weights, and how many
    Writer out;
    out.text("lCRF");
    out.number(0);
    out.text("FOMC");
    out.number(kVersion);
    out.zeros(kHeader - out.size());
    out.set(28, out.size());
    const size_t features = begin_chunk(out, "FEAT");
    out.number(0);
    const auto write_feature = [&](Type type, size_t source, size_t target, double weight) {
        out.number(type);
        out.number(source);
        out.number(target);
        out.real(weight);
    };
    size_t n_state = 0, n_transition = 0;
    for (size_t a = 0; a < model.attributes.size; ++a) {
        size_t count = 0;
        for (int64_t k = model.state_offsets[a]; k < model.state_offsets[a + 1]; ++k) {
            if (model.weights[k] == 0.0) continue;
            write_feature(kState, kept.size(), static_cast<size_t>(model.state_labels[k]), model.weights[k]);
            ++count;
        }
        if (count == 0) continue;
        kept.push_back(a);
        counts.push_back(count);
        n_state += count;
    }
    const double* transitions = model.weights + model.state_offsets[model.attributes.size];
    for (int64_t k = 0; k < model.n_transition; ++k) {
        if (transitions[k] == 0.0) continue;
        const auto code = static_cast<size_t>(model.transition_codes[k]);
        write_feature(kTransition, code / n_labels, code % n_labels, transitions[k]);
        ++label_counts[code / n_labels];
        ++n_transition;
    }
    out.set(features + 8, n_state + n_transition);
    end_chunk(out, features);
    out.set(20, n_labels);
    out.set(24, kept.size());
    out.set(32, out.size());
    write_database(out, n_labels, [&](size_t j) { return std::string_view(model.labels[j]); });
    out.set(36, out.size());
    write_database(out, kept.size(), [&](size_t a) { return model.attributes.at(kept[a]); });
    out.zeros((4 - out.size() % 4) % 4);
    out.set(40, out.size());
    write_references(out, "LFRF", label_counts, n_state, 2);  // of the labels, and none of begin and end
    out.set(44, out.size());
    write_references(out, "AFRF", counts, 0, 0);
    out.set(4, out.size());
    return out.take();
}

}  // namespace crfkit
