#include "gazetteers.hpp"

#include <algorithm>
#include <utility>

#include "characters.hpp"

namespace crfkit {

Gazetteer::Gazetteer(std::string name, const StringIndex& phrases, bool lower) : name_(std::move(name)), lower_(lower) {
    std::string text;
    for (uint64_t id = 0; id < phrases.size; ++id) {
        text.clear();
        if (lower)
            append_lowered(text, phrases.at(id));
        else
            text = phrases.at(id);
        uint64_t node = 0;
        for (size_t begin = 0; begin <= text.size();) {
            const size_t end = std::min(text.find('\t', begin), text.size());
            const auto word = static_cast<uint32_t>(words_.intern(std::string_view(text).substr(begin, end - begin)));
            const auto [found, is_new] = next_.try_emplace(node << 32 | word, static_cast<uint32_t>(ends_.size()));
            if (is_new) ends_.push_back(false);
            node = found->second;
            begin = end + 1;
        }
        ends_[node] = true;
    }
}

int32_t Gazetteer::word(std::string_view text) const {
    if (!lower_) return words_.find(text);
    std::string low;
    append_lowered(low, text);
    return words_.find(low);
}

void Gazetteer::find(const std::vector<int32_t>& words, std::vector<uint8_t>& out) const {
    out.assign(words.size(), 0);
    for (size_t t = 0; t < words.size();) {
        size_t longest = 0;
        uint64_t node = 0;
        for (size_t k = t; k < words.size() && words[k] >= 0; ++k) {
            const auto found = next_.find(node << 32 | static_cast<uint32_t>(words[k]));
            if (found == next_.end()) break;
            node = found->second;
            if (ends_[node]) longest = k - t + 1;
        }
        for (size_t k = 0; k < longest; ++k) out[t + k] = k == 0 ? 1 : 2;
        t += std::max<size_t>(longest, 1);
    }
}

}  // namespace crfkit
