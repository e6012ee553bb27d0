// Column files (CoNLL, CRF++), parsed as a stream: a token per line, its columns separated by tabs
// or spaces, a blank line after each sequence. '#' is an ordinary token; there are no comments.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "template.hpp"

namespace crfkit {

struct InputError {
    int64_t line;
    std::string message;
};

// The offset of the first byte of `text` that is not UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);

// "1 column", "2 columns": a number with its noun.
std::string counted(int64_t n, std::string_view noun);

class ColumnParser {
public:
    // Called with each whole sequence, its raw lines (without line ends) and the number of its first
    // line; the views live until the call returns.
    using Sink = std::function<void(const Columns&, const std::vector<std::string_view>& lines, int64_t first_line)>;

    // A line with fewer columns than this is an error (the label column counts).
    explicit ColumnParser(int64_t least_columns) : least_columns_(least_columns) {}
    // Reads files as Wapiti does: any bytes, any blanks between columns, lines of any width. Of each line it takes the
    // first `n_features` columns and, with `labelled`, the last.
    static ColumnParser loose(int64_t n_features, bool labelled);

    // Takes the next bytes of the file; throws InputError.
    void feed(std::string_view bytes, const Sink& sink);
    // Takes the end of the file: the last line and sequence need no newline.
    void finish(const Sink& sink);
    int64_t n_columns() const { return n_columns_; }
    int64_t line() const { return line_; }

private:
    struct Span {
        size_t begin, size;
    };
    void take_line(size_t begin, size_t end, const Sink& sink);
    // Splits the line at `begin` into cells_; returns their number.
    int64_t split(size_t begin, std::string_view line);
    // Leaves the columns of a loose parser of the n last cells_; returns their number.
    int64_t take_wanted(int64_t n);
    void emit(const Sink& sink);

    std::string text_;         // the current sequence and what follows it
    size_t parsed_ = 0;        // text_ before this offset has been split into lines
    size_t scanned_ = 0;       // no line ends between parsed_ and here
    size_t sequence_end_ = 0;  // text_ before this offset has been handed out
    std::vector<Span> cells_, lines_;
    std::vector<std::string_view> cell_views_, line_views_;
    int64_t least_columns_;
    bool loose_ = false, labelled_ = false;
    int64_t n_features_ = 0;  // of a loose parser
    int64_t n_columns_ = 0;
    int64_t line_ = 0;
    int64_t first_line_ = 0;  // of the sequence under way
};

}  // namespace crfkit
