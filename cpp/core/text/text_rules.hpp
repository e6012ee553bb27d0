// Rules that make attributes of plain tokens: "lower[-1]|lower[0]" is the pair of the word before and this one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gazetteers.hpp"
#include "interner.hpp"

namespace crfkit {

enum class TextAtom {
    word,         // as it is written
    lower,        // in lower case
    prefix,       // prefix3: its first three characters; nothing if there are fewer
    suffix,       // suffix3
    lowerprefix,  // of the word in lower case
    lowersuffix,
    shape,      // shape2: see append_shape
    script,     // see append_scripts
    column,     // column1: another column of the token
    gazetteer,  // the list that a phrase with this word is in, and whether the word begins it
    embedding,  // the numbers of the word's vector
};

// An atom of the word at a distance; of all words from `first` to `last` if these differ.
struct TextPiece {
    TextAtom atom = TextAtom::word;
    int64_t size = 0;  // of affixes and shapes; the number of a column
    int64_t first = 0, last = 0;

    int64_t source() const { return atom == TextAtom::column ? size : 0; }
    bool same_value(const TextPiece& other) const { return atom == other.atom && size == other.size; }
};

struct TextRule {
    std::string name;  // as it was written
    std::vector<TextPiece> pieces;
};

struct BadTextRule {
    int64_t rule;
    std::string message;
};

// Throws BadTextRule.
TextRule parse_text_rule(std::string_view text, int64_t number);

// Words with vectors; the caller keeps the memory.
struct Embeddings {
    StringIndex words;
    const float* vectors = nullptr;  // [words, dimensions]
    int64_t dimensions = 0;

    // The row of a word, of its lower case if only that is known, or -1.
    int32_t row(std::string_view word) const;
};

struct TextRules {
    std::vector<TextRule> rules;
    std::vector<Gazetteer> gazetteers;
    Embeddings embeddings;
    int64_t n_columns = 1;

    explicit TextRules(const std::vector<std::string>& lines);
};

// The value of a piece in a token, appended to `out`; false if it has none.
bool append_value(const TextPiece& piece, std::string_view token, std::string& out);

}  // namespace crfkit
