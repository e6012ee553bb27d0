// Lists of phrases, found in sequences of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "interner.hpp"

namespace crfkit {

struct StepHash {  // with a key, as whoever writes the phrases chooses the numbers
    size_t operator()(uint64_t step) const { return fold_multiply(step ^ key.first, key.second | 1); }
    HashKey key = secret_key();
};

class Gazetteer {
public:
    // The words of a phrase are separated by tabs; with `lower`, words match in any case.
    Gazetteer(std::string name, const StringIndex& phrases, bool lower);

    const std::string& name() const { return name_; }
    // The number of a word that occurs in a phrase, or -1.
    int32_t word(std::string_view text) const;
    // The phrases in a sequence of such numbers, from left to right, the longest first: at every position 0 (none),
    // 1 (a phrase begins) or 2 (it continues).
    void find(const std::vector<int32_t>& words, std::vector<uint8_t>& out) const;

private:
    std::string name_;
    bool lower_;
    Interner words_;
    std::unordered_map<uint64_t, uint32_t, StepHash> next_;  // node << 32 | word → node
    std::vector<bool> ends_{false};                          // per node, whether a phrase ends there
};

}  // namespace crfkit
