#include "characters.hpp"

#include <array>
#include <iterator>
#include <memory>

namespace crfkit {

namespace {

struct ClassRange {
    char32_t first, last;
    char32_t step;
    CharClass value;
};
struct LowerRange {
    char32_t first, last;
    char32_t step;
    int32_t delta;
};

#include "unicode_tables.inl"

constexpr char32_t kDirect = 0x10000;  // characters below are looked up at once, those above in the ranges

struct Tables {
    std::array<CharClass, kDirect> classes{};
    std::array<uint16_t, kDirect> lower{};

    Tables() {
        for (char32_t c = 0; c < kDirect; ++c) lower[c] = static_cast<uint16_t>(c);
        for (const auto& range : class_ranges)
            for (char32_t c = range.first; c <= range.last && c < kDirect; c += range.step) classes[c] = range.value;
        for (const auto& range : lower_ranges)
            for (char32_t c = range.first; c <= range.last && c < kDirect; c += range.step)
                lower[c] = static_cast<uint16_t>(static_cast<int32_t>(c) + range.delta);
    }
};

const Tables& tables() {
    static const auto made = std::make_unique<const Tables>();
    return *made;
}

template <class Range>
bool holds(const Range& range, char32_t c) {
    return range.first <= c && c <= range.last && (c - range.first) % range.step == 0;
}

// The letters of a shape; 0 for a mark, 1 for a character that stands for itself.
char shape_of(CharClass found) {
    constexpr std::array<char, 7> letters{'\1', 'X', 'x', 'a', '\0', 'd', '\1'};
    return letters[static_cast<size_t>(found)];
}

char script_of(char32_t c) {
    const auto within = [c](char32_t first, char32_t last) { return first <= c && c <= last; };
    if (c >= 0x1100) {
        if (within(0x3040, 0x309f)) return 'h';
        if (within(0x30a0, 0x30ff) || within(0x31f0, 0x31ff) || within(0xff66, 0xff9f)) return 'k';
        if (within(0x1100, 0x11ff) || within(0xac00, 0xd7a3)) return 'g';
        if (within(0x3400, 0x4dbf) || within(0x4e00, 0x9fff) || within(0xf900, 0xfaff) || within(0x20000, 0x3ffff))
            return 'H';
    }
    constexpr std::array<char, 7> letters{'p', 'X', 'x', 'a', 'm', 'd', 's'};
    return letters[static_cast<size_t>(class_of(c))];
}

}  // namespace

CharClass class_of(char32_t c) {
    if (c < kDirect) return tables().classes[c];
    for (const auto& range : class_ranges)
        if (holds(range, c)) return range.value;
    return CharClass::other;
}

char32_t lower_of(char32_t c) {
    if (c < kDirect) return tables().lower[c];
    for (const auto& range : lower_ranges)
        if (holds(range, c)) return static_cast<char32_t>(static_cast<int32_t>(c) + range.delta);
    return c;
}

char32_t next_character(std::string_view text, size_t& i) {
    const auto at = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
    const unsigned char lead = at(i++);
    const size_t more = lead < 0xc0 || lead >= 0xf8 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (more == 0 || text.size() - i < more) return lead;
    char32_t c = lead & (0x3f >> more);
    for (size_t k = 0; k < more; ++k) {
        if ((at(i + k) & 0xc0) != 0x80) return lead;
        c = c << 6 | (at(i + k) & 0x3f);
    }
    i += more;
    return c;
}

void append_character(std::string& out, char32_t c) {
    const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xc0 | c >> 6);
        put(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        put(0xe0 | c >> 12);
        put(0x80 | (c >> 6 & 0x3f));
        put(0x80 | (c & 0x3f));
    } else {
        put(0xf0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3f));
        put(0x80 | (c >> 6 & 0x3f));
        put(0x80 | (c & 0x3f));
    }
}

void append_lowered(std::string& out, std::string_view text) {
    for (size_t i = 0; i < text.size();) append_character(out, lower_of(next_character(text, i)));
}

bool first_characters(std::string_view text, int64_t n, std::string_view& found) {
    size_t i = 0;
    for (; n > 0 && i < text.size(); --n) next_character(text, i);
    found = text.substr(0, i);
    return n == 0;
}

bool last_characters(std::string_view text, int64_t n, std::string_view& found) {
    size_t i = text.size();
    for (; n > 0 && i > 0; --n) do
            --i;
        while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80);
    found = text.substr(i);
    return n == 0;
}

void append_shape(std::string& out, std::string_view text, int64_t limit) {
    char32_t last = 0;
    int64_t run = 0;
    for (size_t i = 0; i < text.size();) {
        char32_t c = next_character(text, i);
        const char letter = shape_of(class_of(c));
        if (letter == '\0') continue;
        if (letter != '\1') c = static_cast<char32_t>(letter);
        run = c == last ? run + 1 : 1;
        last = c;
        if (run <= limit) append_character(out, c);
    }
}

void append_scripts(std::string& out, std::string_view text) {
    char last = '\0';
    for (size_t i = 0; i < text.size();) {
        const char letter = script_of(next_character(text, i));
        if (letter != last) out += letter;
        last = letter;
    }
}

}  // namespace crfkit
