// Characters of UTF-8 texts: their classes, their lower case, the shapes of words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace crfkit {

enum class CharClass : uint8_t { other, upper, lower, letter, mark, digit, space };

CharClass class_of(char32_t c);
// The lower case, if it is one character; otherwise the character itself.
char32_t lower_of(char32_t c);

// The character at text[i], which i passes; a byte that is not UTF-8 is a character of its own.
char32_t next_character(std::string_view text, size_t& i);
void append_character(std::string& out, char32_t c);

void append_lowered(std::string& out, std::string_view text);
// The first or the last n characters; false if there are fewer.
bool first_characters(std::string_view text, int64_t n, std::string_view& found);
bool last_characters(std::string_view text, int64_t n, std::string_view& found);

// X for upper case, x for lower case, a for other letters, d for digits, nothing for marks, other characters as they
// are; of the same several times in a row, `limit` are kept. "McDonald's" is "XxXx'x" with limit 1.
void append_shape(std::string& out, std::string_view text, int64_t limit);
// The scripts of the characters, each run once: H Han, h hiragana, k katakana, g hangul; otherwise X, x, a, d, m for
// marks, s for spaces, p for others.
void append_scripts(std::string& out, std::string_view text);

}  // namespace crfkit
