#include "columns.hpp"

#include <cstring>

namespace crfkit {

namespace {

// Length of the UTF-8 sequence at s (n bytes left), 0 if malformed, overlong, a surrogate or past U+10FFFF.
size_t utf8_length(const unsigned char* s, size_t n) {
    const auto follows = [&](size_t i) { return i < n && (s[i] & 0xc0) == 0x80; };
    if (s[0] < 0x80) return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf) return follows(1) ? 2 : 0;
    if (s[0] >= 0xe0 && s[0] <= 0xef) {
        if (!follows(1) || !follows(2)) return 0;
        if (s[0] == 0xe0 && s[1] < 0xa0) return 0;
        if (s[0] == 0xed && s[1] > 0x9f) return 0;
        return 3;
    }
    if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        if (!follows(1) || !follows(2) || !follows(3)) return 0;
        if (s[0] == 0xf0 && s[1] < 0x90) return 0;
        if (s[0] == 0xf4 && s[1] > 0x8f) return 0;
        return 4;
    }
    return 0;
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
    const auto* s = reinterpret_cast<const unsigned char*>(text.data());
    size_t i = 0;
    while (i < text.size()) {
        uint64_t word;
        if (i + 8 <= text.size() && (std::memcpy(&word, s + i, 8), (word & 0x8080808080808080ull) == 0)) {
            i += 8;
            continue;
        }
        const size_t length = utf8_length(s + i, text.size() - i);
        if (length == 0) return i;
        i += length;
    }
    return std::string_view::npos;
}

std::string counted(int64_t n, std::string_view noun) {
    return std::to_string(n) + ' ' + std::string(noun) + (n == 1 ? "" : "s");
}

ColumnParser ColumnParser::loose(int64_t n_features, bool labelled) {
    ColumnParser parser(0);
    parser.loose_ = true;
    parser.n_features_ = n_features;
    parser.labelled_ = labelled;
    return parser;
}

void ColumnParser::feed(std::string_view bytes, const Sink& sink) {
    text_.append(bytes);
    for (;;) {
        const size_t end = text_.find('\n', scanned_);
        if (end == std::string::npos) break;
        take_line(parsed_, end, sink);
        parsed_ = scanned_ = end + 1;
    }
    scanned_ = text_.size();
    // Drop what was handed out; the spans of the sequence under way move with the text.
    if (sequence_end_ > 0) {
        text_.erase(0, sequence_end_);
        for (auto& span : cells_) span.begin -= sequence_end_;
        for (auto& span : lines_) span.begin -= sequence_end_;
        parsed_ -= sequence_end_;
        scanned_ -= sequence_end_;
        sequence_end_ = 0;
    }
}

void ColumnParser::finish(const Sink& sink) {
    if (parsed_ < text_.size()) {
        take_line(parsed_, text_.size(), sink);
        parsed_ = scanned_ = text_.size();
    }
    emit(sink);
}

int64_t ColumnParser::split(size_t begin, std::string_view line) {
    const auto separates = [&](char c) {
        return c == ' ' || c == '\t' || (loose_ && (c == '\v' || c == '\f' || c == '\r'));
    };
    int64_t n = 0;
    for (size_t i = 0; i < line.size();) {
        if (separates(line[i])) {
            ++i;
            continue;
        }
        size_t stop = i;
        while (stop < line.size() && !separates(line[stop])) ++stop;
        cells_.push_back({begin + i, stop - i});
        ++n;
        i = stop;
    }
    return n;
}

int64_t ColumnParser::take_wanted(int64_t n) {
    const int64_t features = labelled_ ? n - 1 : n;
    if (features < n_features_)
        throw InputError{line_, counted(features, "feature column") + ", but the template needs " +
                                    std::to_string(n_features_) + ", numbered from 0"};
    const size_t first = cells_.size() - static_cast<size_t>(n);
    const int64_t wanted = n_features_ + (labelled_ ? 1 : 0);
    if (labelled_) {
        const Span label = cells_.back();
        const std::string_view text(text_.data() + label.begin, label.size);
        if (find_invalid_utf8(text) != std::string_view::npos)
            throw InputError{line_, "the label is not UTF-8; labels must be, unlike other columns"};
        cells_[first + static_cast<size_t>(n_features_)] = label;
    }
    cells_.resize(first + static_cast<size_t>(wanted));
    return wanted;
}

void ColumnParser::take_line(size_t begin, size_t end, const Sink& sink) {
    ++line_;
    if (!loose_ && line_ == 1 && text_.compare(begin, 3, "\xef\xbb\xbf") == 0) begin += 3;
    if (end > begin && text_[end - 1] == '\r') --end;
    const std::string_view line(text_.data() + begin, end - begin);
    if (const size_t bad = loose_ ? std::string_view::npos : find_invalid_utf8(line); bad != std::string_view::npos) {
        constexpr const char* digits = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(line[bad]);
        throw InputError{line_, "not UTF-8 at byte " + std::to_string(bad + 1) + " of the line (0x" +
                                    digits[byte >> 4] + digits[byte & 15] +
                                    "); name the encoding of the file, as in --encoding latin-1 or, in Python, "
                                    "encoding='latin-1'"};
    }
    int64_t n = split(begin, line);
    if (n == 0) {
        emit(sink);
        sequence_end_ = end;
        return;
    }
    if (lines_.empty()) first_line_ = line_;
    if (loose_) n = take_wanted(n);
    if (n_columns_ == 0) n_columns_ = n;
    if (n != n_columns_)
        throw InputError{line_, counted(n, "column") + ", but the lines before have " + std::to_string(n_columns_)};
    if (n < least_columns_)
        throw InputError{line_, "1 column; expected one or more feature columns and then the label"};
    lines_.push_back({begin, end - begin});
}

void ColumnParser::emit(const Sink& sink) {
    if (lines_.empty()) return;
    const auto view = [&](const std::vector<Span>& spans, std::vector<std::string_view>& views) {
        views.clear();
        for (const auto& span : spans) views.emplace_back(text_.data() + span.begin, span.size);
    };
    view(cells_, cell_views_);
    view(lines_, line_views_);
    const auto length = static_cast<int64_t>(lines_.size());
    cells_.clear();
    lines_.clear();
    sink({cell_views_.data(), length, n_columns_}, line_views_, first_line_);
}

}  // namespace crfkit
