// Encoded sequences: what the builders fill.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../support/views.hpp"
#include "buckets.hpp"
#include "interner.hpp"
#include "template.hpp"

namespace crfkit {

struct Encoded {
    std::vector<int64_t> starts{0}, offsets{0}, pair_offsets{0};
    std::vector<int32_t> attributes, pair_attributes, labels;
    std::vector<double> values;  // empty while every value is 1
    int64_t n_positions() const { return static_cast<int64_t>(offsets.size()) - 1; }
    void end_sequence() { starts.push_back(n_positions()); }
    // Forgets everything but the memory.
    void clear();
    // Puts the ids of every position in ascending order, with their values.
    void sort_positions();
};

// A name with its hash (of the vocabulary's key, or of none for buckets).
struct HashedName {
    std::string_view text;
    uint64_t hash;
};

// Attributes of a model that is read as it is needed.
struct Lookup {
    virtual ~Lookup() = default;
    virtual int32_t find(std::string_view name) = 0;  // its id, or -1
};

// Attribute names and their ids: growing while training, fixed (unknown names are dropped) afterwards.
class Vocabulary {
public:
    // Grows to `most` names.
    explicit Vocabulary(uint64_t most = kMostStrings) : interner_(most) {}
    explicit Vocabulary(StringIndex frozen) : frozen_(frozen), growing_(false) {}
    explicit Vocabulary(Lookup& lookup) : lookup_(&lookup), growing_(false) {}
    // Names are hashed into buckets: growing, or fixed; the caller keeps those.
    static Vocabulary hashed(int64_t bits) {
        Vocabulary found;
        found.grown_ = Buckets(bits);
        return found;
    }
    explicit Vocabulary(const Buckets& frozen) : buckets_(&frozen), growing_(false) {}
    // The key of the hashes that `ids` wants. It changes when strings were chosen to collide.
    HashKey key() const { return growing_ ? interner_.key() : frozen_.key; }
    // Whether `ids` looks at the hashes of names at all.
    bool uses_hashes() const { return !lookup_; }
    // The ids of several names, appended to `out` (-1: unknown). Their hashes are of `key`, which may be out of date.
    void ids(std::span<const HashedName> names, HashKey key, std::vector<int32_t>& out);
    void ids(const std::vector<std::string_view>& names, std::vector<int32_t>& out);
    // The same for what is known now (-1: not yet, or never); hashes are of the key that is in use. Changes nothing.
    void known(std::span<const HashedName> names, std::vector<int32_t>& out) const;
    bool grows() const { return growing_; }
    const Interner& interner() const { return interner_; }
    const Buckets& buckets() const { return grown_; }
    // Of a vocabulary that grows.
    uint64_t size() const { return grown_.bits > 0 ? grown_.used.size() : interner_.size(); }

private:
    Interner interner_;
    StringIndex frozen_;
    Lookup* lookup_ = nullptr;
    Buckets grown_;
    const Buckets* buckets_ = nullptr;
    bool growing_ = true;
    std::vector<HashedName> hashed_;
};

// How often each attribute occurs, and with how many different labels.
struct AttributeCounts {
    std::vector<int64_t> occurrences;
    std::vector<int32_t> labels;
};
AttributeCounts count_attributes(const SequenceView& data, int64_t n_attributes, int64_t n_labels);

// The (attribute, label) pairs that occur: labels[offsets[a] … offsets[a + 1]) ascending.
void observed_pairs(const SequenceView& data, int64_t n_attributes, int64_t n_labels, std::vector<int64_t>& offsets,
                    std::vector<int32_t>& labels);
// The same for pair attributes; a label pair (i, j) is coded i * n_labels + j.
void observed_triples(const SequenceView& data, int64_t n_pair_attributes, int64_t n_labels,
                      std::vector<int64_t>& offsets, std::vector<int32_t>& codes);

// Renumbers ids in place (new id = rank[id], dropped where negative), ascending within each position.
// Returns the new number of entries; `values` may be null.
int64_t renumber(int64_t n_positions, int64_t* offsets, int32_t* ids, double* values, const int32_t* rank,
                 int n_threads);

}  // namespace crfkit
