// Attributes of items, on their way into encoded sequences: read first, looked up many at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "../support/arena.hpp"
#include "sequences.hpp"

namespace crfkit {

// The names of the items of some sequences, with their values. Whoever reads them keeps the texts.
struct NameBatch {
    HashKey key;         // of the hashes
    bool hashes = true;  // whether anybody wants them
    std::vector<HashedName> names, pair_names;
    std::vector<double> values;                // of `names`; empty while all are 1
    std::vector<size_t> item_ends, pair_ends;  // of each item among the names
    std::vector<size_t> sequence_ends;         // of each sequence among the items
    Arena made;                                // names that were put together

    // Makes room for so many more names.
    void expect(size_t more) {
        if (names.capacity() - names.size() < more) names.reserve(2 * names.capacity() + more);
    }
    // Adds an attribute to the item under way.
    void add(std::string_view name, double value = 1.0) {
        if (value != 1.0 && values.empty()) values.assign(names.size(), 1.0);
        names.push_back({name, hashes ? hash_string(name, key) : 0});
        if (!values.empty() || value != 1.0) values.push_back(value);
    }
    // Adds the attribute "key:text" (in a dict that is nested in others, with "outer:" before it).
    void add_text(std::string_view outer, std::string_view name, std::string_view text) {
        add(made.join({outer, name, ":", text}));
    }
    void begin_items() {}
    void end_item() { item_ends.push_back(names.size()); }
    void end_items() { sequence_ends.push_back(item_ends.size()); }

    // Forgets everything but the memory; hashes will be of this key.
    void clear(HashKey new_key);
    // Forgets the sequence under way.
    void drop_sequence();
    // The place of a name: (sequence, item of it).
    std::pair<size_t, size_t> place_of(size_t name) const;
};

}  // namespace crfkit
