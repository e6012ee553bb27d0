#include "text_rules.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "characters.hpp"

namespace crfkit {

namespace {

constexpr int64_t kFarthest = 100, kLargest = 1000;
constexpr size_t kMostPieces = 4;

struct AtomName {
    std::string_view name;
    TextAtom atom;
    bool sized;
};
constexpr std::array<AtomName, 11> atom_names{{
    {"word", TextAtom::word, false},
    {"lower", TextAtom::lower, false},
    {"prefix", TextAtom::prefix, true},
    {"suffix", TextAtom::suffix, true},
    {"lowerprefix", TextAtom::lowerprefix, true},
    {"lowersuffix", TextAtom::lowersuffix, true},
    {"shape", TextAtom::shape, true},
    {"script", TextAtom::script, false},
    {"column", TextAtom::column, true},
    {"gazetteer", TextAtom::gazetteer, false},
    {"embedding", TextAtom::embedding, false},
}};

class Parser {
public:
    Parser(std::string_view text, int64_t number) : text_(text), number_(number) {}

    TextRule rule() {
        TextRule rule{std::string(text_), {}};
        do rule.pieces.push_back(piece());
        while (take("|"));
        if (at_ != text_.size()) fail("there is more than a rule");
        if (rule.pieces.size() > kMostPieces) fail("more than 4 parts");
        for (const auto& piece : rule.pieces)
            if (rule.pieces.size() > 1 &&
                (piece.first != piece.last || piece.atom == TextAtom::gazetteer || piece.atom == TextAtom::embedding))
                fail("a part with several values stands alone");
        return rule;
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw BadTextRule{number_, what + " in '" + std::string(text_) +
                                       "'; a rule is written as in lower[-1]|lower[0], suffix3[0] or word[-3..-1]"};
    }
    bool take(std::string_view token) {
        if (!text_.substr(at_).starts_with(token)) return false;
        at_ += token.size();
        return true;
    }
    bool number(int64_t& value) {
        const char* begin = text_.data() + at_;
        const char* end = text_.data() + text_.size();
        if (end - begin > 1 && *begin == '+' && begin[1] != '-') ++begin;
        const auto [rest, error] = std::from_chars(begin, end, value);
        if (error != std::errc()) return false;
        at_ = static_cast<size_t>(rest - text_.data());
        return true;
    }
    TextPiece piece() {
        const size_t begin = at_;
        while (at_ < text_.size() && text_[at_] >= 'a' && text_[at_] <= 'z') ++at_;
        const std::string_view name = text_.substr(begin, at_ - begin);
        const auto known = std::find_if(atom_names.begin(), atom_names.end(),
                                        [&](const AtomName& candidate) { return candidate.name == name; });
        if (known == atom_names.end()) fail("unknown part '" + std::string(name) + "'");
        TextPiece piece;
        piece.atom = known->atom;
        if (known->sized && (!number(piece.size) || piece.size < 1 || piece.size > kLargest))
            fail("'" + std::string(name) + "' needs a number from 1 to 1000");
        if (!take("[") || !number(piece.first)) fail("malformed distance");
        piece.last = piece.first;
        if (take("..") && (!number(piece.last) || piece.last < piece.first)) fail("malformed distances");
        if (!take("]")) fail("malformed distance");
        if (piece.first < -kFarthest || piece.last > kFarthest) fail("a distance beyond 100");
        return piece;
    }

    std::string_view text_;
    int64_t number_;
    size_t at_ = 0;
};

}  // namespace

TextRule parse_text_rule(std::string_view text, int64_t number) { return Parser(text, number).rule(); }

int32_t Embeddings::row(std::string_view word) const {
    if (const int32_t found = words.find(word); found >= 0) return found;
    std::string low;
    append_lowered(low, word);
    return words.find(low);
}

TextRules::TextRules(const std::vector<std::string>& lines) {
    for (const auto& line : lines) {
        rules.push_back(parse_text_rule(line, static_cast<int64_t>(rules.size()) + 1));
        for (const auto& piece : rules.back().pieces) n_columns = std::max(n_columns, piece.source() + 1);
    }
}

bool append_value(const TextPiece& piece, std::string_view token, std::string& out) {
    std::string_view part;
    std::string low;
    switch (piece.atom) {
        case TextAtom::word:
        case TextAtom::column: out += token; return true;
        case TextAtom::lower: append_lowered(out, token); return true;
        case TextAtom::lowerprefix:
        case TextAtom::lowersuffix:
            append_lowered(low, token);
            token = low;
            [[fallthrough]];
        case TextAtom::prefix:
        case TextAtom::suffix: {
            const bool prefix = piece.atom == TextAtom::prefix || piece.atom == TextAtom::lowerprefix;
            if (!(prefix ? first_characters : last_characters)(token, piece.size, part)) return false;
            out += part;
            return true;
        }
        case TextAtom::shape: append_shape(out, token, piece.size); return true;
        case TextAtom::script: append_scripts(out, token); return true;
        case TextAtom::gazetteer:
        case TextAtom::embedding: break;
    }
    return false;
}

}  // namespace crfkit
