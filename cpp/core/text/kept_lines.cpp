#include "kept_lines.hpp"

#include <stdexcept>

namespace crfkit {

void KeptLines::add_sequence(const std::vector<std::string_view>& lines) {
    for (const auto& line : lines) {
        text_ += line;
        line_ends_.push_back(text_.size());
    }
    sequence_ends_.push_back(line_ends_.size());
}

std::string KeptLines::take_with(const std::vector<std::string_view>& extra) {
    return take(extra.size(), [&](size_t t) { return extra[t]; });
}

std::string KeptLines::take_with(const std::vector<std::string_view>& names, std::span<const int32_t> ids) {
    return take(ids.size(), [&](size_t t) { return names.at(static_cast<size_t>(ids[t])); });
}

template <class Extra>
std::string KeptLines::take(size_t n, const Extra& extra) {
    if (n != line_ends_.size()) throw std::invalid_argument("one string per line is needed");
    std::string out;
    out.reserve(text_.size() * 2);
    size_t begin = 0, next_end = 0;
    for (size_t t = 0; t < line_ends_.size(); ++t) {
        const std::string_view line(text_.data() + begin, line_ends_[t] - begin);
        out += line;
        const bool spaces = line.find('\t') == std::string_view::npos && line.find(' ') != std::string_view::npos;
        const char separator = spaces ? ' ' : '\t';
        out += separator;
        const std::string_view more = extra(t);
        if (more.find('\t') == std::string_view::npos)
            out += more;
        else
            for (const char c : more) out += c == '\t' ? separator : c;
        out += '\n';
        begin = line_ends_[t];
        if (next_end < sequence_ends_.size() && t + 1 == sequence_ends_[next_end]) {
            out += '\n';
            ++next_end;
        }
    }
    text_.clear();
    line_ends_.clear();
    sequence_ends_.clear();
    return out;
}

}  // namespace crfkit
