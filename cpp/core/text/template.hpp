// Feature templates of CRF++ and patterns of Wapiti: compiled once, expanded at every position.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "wapiti_regex.hpp"

namespace crfkit {

enum class TemplateSyntax { crfpp, wapiti };
// "crf++" or "wapiti"; throws std::invalid_argument.
TemplateSyntax template_syntax(std::string_view name);

// One sequence as a table of column values; cell (t, c) is cells[t * n_columns + c].
struct Columns {
    const std::string_view* cells;
    int64_t length;
    int64_t n_columns;
};

// "U05:%x[-1,0]/%x[0,0]" is literal "U05:", macro (-1, 0), literal "/", macro (0, 0).
struct TemplatePiece {
    std::string literal;  // text before the macro
    bool has_macro = false;
    int64_t row = 0, column = 0;
    // Wapiti's alone: %x gives a cell, %t whether the expression occurs in it, %m where it does.
    char command = 'x';
    bool fold = false;      // %X, %T, %M: in lower case
    bool absolute = false;  // @1 is the first row, @-1 the last
    WapitiRegex regex;
};

struct TemplateLine {
    std::string source;
    std::vector<TemplatePiece> pieces;
    TemplateSyntax syntax = TemplateSyntax::crfpp;
};

// In Wapiti's syntax a line of type * is among both, and the first b line without a command stands for the transitions.
struct Template {
    std::vector<TemplateLine> unigrams;  // U…: one weight per label
    std::vector<TemplateLine> bigrams;   // B…: one weight per label pair; a bare "B" is not among them
    bool transitions = false;            // a bare "B" was given
    std::string transition_source;       // the line that stands for the transitions
    int64_t n_columns = 0;               // 1 + largest column that a macro names
    std::vector<int64_t> line_numbers;   // of the line that first names column c, per column
};

struct TemplateError {
    int64_t line;
    std::string message;
};

// Throws TemplateError.
Template parse_template(std::string_view text, TemplateSyntax syntax = TemplateSyntax::crfpp);

// Appends the attribute of `line` at position t to `out`. Outside the sequence a macro
// gives _B-1, _B-2 … before its start and _B+1, _B+2 … after its end; Wapiti's gives _x-1 … _x-4, _x-# and _x+1 ….
void expand(const TemplateLine& line, const Columns& x, int64_t t, std::string& out);

// The unigram and the bigram attributes of every position; rows are lists of columns. Throws std::invalid_argument.
std::vector<std::tuple<std::vector<std::string>, std::vector<std::string>>> expand_rows(
    const Template& rules, const std::vector<std::vector<std::string>>& rows);
// The lines as they were written.
std::vector<std::string> sources(const std::vector<TemplateLine>& lines);

// Parts that the syntaxes share.
Template parse_wapiti_patterns(std::string_view text);
void expand_wapiti(const TemplateLine& line, const Columns& x, int64_t t, std::string& out);
// The macro at this % as messages name it: % and a letter, but no part of a longer character.
std::string macro_name(std::string_view line, size_t at);
// Takes the next line off `text`, without its end.
std::string_view next_line(std::string_view& text);
// Notes which columns the line needs.
void note_columns(Template& rules, const TemplateLine& line, int64_t number);
constexpr int64_t largest_template_number = 1'000'000;
// Throws std::length_error if the attributes of one position become too long: a short line may name a long cell often.
inline void check_expansion(size_t size) {
    constexpr size_t most = size_t{1} << 27;
    if (size > most)
        throw std::length_error("the template makes attributes of more than 134 million bytes at one position");
}

}  // namespace crfkit
