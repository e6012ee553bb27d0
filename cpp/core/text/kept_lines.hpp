// The lines of a column file, kept while they are tagged and written again with more columns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace crfkit {

class KeptLines {
public:
    void add_sequence(const std::vector<std::string_view>& lines);
    // Hands out the lines kept since the last call, each followed by its string of `extra` (columns separated by
    // tabs), separated as the line itself is; a blank line follows each sequence.
    std::string take_with(const std::vector<std::string_view>& extra);
    // The same, where line t gets names[ids[t]].
    std::string take_with(const std::vector<std::string_view>& names, std::span<const int32_t> ids);

private:
    template <class Extra>
    std::string take(size_t n, const Extra& extra);

    std::string text_;
    std::vector<size_t> line_ends_;      // into text_
    std::vector<size_t> sequence_ends_;  // numbers of lines
};

}  // namespace crfkit
