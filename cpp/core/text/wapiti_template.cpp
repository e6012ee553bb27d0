// Wapiti's patterns: u (state), b (pair) and * (both) lines with %x, %t and %m.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include "template.hpp"

namespace crfkit {

namespace {

constexpr std::string_view blanks = " \t\n\v\f\r";

// Reads one line; `at` goes from its first character to its end.
class PatternReader {
public:
    PatternReader(std::string_view line, int64_t number) : line_(line), number_(number) {}

    TemplateLine read() {
        TemplateLine result{std::string(line_), {}, TemplateSyntax::wapiti};
        TemplatePiece piece;
        while (at_ < line_.size()) {
            if (line_[at_] != '%') {
                piece.literal += line_[at_++];
                continue;
            }
            read_command(piece);
            result.pieces.push_back(std::move(piece));
            piece = {};
        }
        if (!piece.literal.empty()) result.pieces.push_back(std::move(piece));
        return result;
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw TemplateError{number_, what + " in '" + std::string(line_) +
                                         "'; a command is written %x[row,column], %t[row,column,\"expression\"] or "
                                         "%m[row,column,\"expression\"], as in %x[-1,0] or %m[0,0,\"^.?.?\"]"};
    }

    void expect(char c) {
        if (at_ >= line_.size() || line_[at_] != c) fail("malformed command");
        ++at_;
    }

    void read_command(TemplatePiece& piece) {
        const char letter = at_ + 1 < line_.size() ? line_[at_ + 1] : '\0';
        piece.command = fold_case(letter);
        piece.fold = piece.command != letter;
        if (piece.command != 'x' && piece.command != 't' && piece.command != 'm')
            fail("unknown command '" + macro_name(line_, at_) + "'");
        at_ += 2;
        expect('[');
        if (at_ < line_.size() && line_[at_] == '@') {
            piece.absolute = true;
            ++at_;
        }
        piece.row = read_number("row", true);
        expect(',');
        piece.column = read_number("column", false);
        if (piece.column < 0) fail("negative column");
        if (piece.command != 'x') {
            expect(',');
            expect('"');
            const size_t begin = at_;
            while (at_ < line_.size() && line_[at_] != '"') at_ += line_[at_] == '\\' && at_ + 1 < line_.size() ? 2 : 1;
            if (at_ >= line_.size()) fail("an expression without its last quotation mark");
            try {
                piece.regex = WapitiRegex(line_.substr(begin, at_ - begin));
            } catch (const std::invalid_argument& error) {
                fail("an expression in which " + std::string(error.what()) + ",");
            }
            ++at_;
        }
        expect(']');
        piece.has_macro = true;
    }

    // As C's scanf reads it: blanks before it, a sign; rows may be hexadecimal (0x…) or octal (0…).
    int64_t read_number(const char* what, bool any_base) {
        while (at_ < line_.size() && blanks.find(line_[at_]) != std::string_view::npos) ++at_;
        bool negative = false;
        if (at_ < line_.size() && (line_[at_] == '-' || line_[at_] == '+')) negative = line_[at_++] == '-';
        int64_t base = 10;
        if (any_base && at_ + 1 < line_.size() && line_[at_] == '0') {
            base = 8;
            if (fold_case(line_[at_ + 1]) == 'x') {
                base = 16;
                at_ += 2;
            }
        }
        int64_t value = 0;
        const size_t begin = at_;
        for (; at_ < line_.size(); ++at_) {
            const char c = fold_case(line_[at_]);
            const int64_t digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : base;
            if (digit >= base) break;
            value = std::min(value * base + digit, largest_template_number + 1);
        }
        if (at_ == begin || value > largest_template_number) fail(std::string("malformed ") + what);
        return negative ? -value : value;
    }

    std::string_view line_;
    int64_t number_;
    size_t at_ = 0;
};

// Which lines begin with the literal of another one, which could then give the same text.
std::vector<bool> find_imitable(const std::vector<TemplateLine>& lines) {
    const auto literal = [&](size_t k) -> std::string_view { return lines[k].pieces[0].literal; };
    std::vector<size_t> order(lines.size()), outer;  // outer: the lines that the one at hand begins with
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return literal(a) < literal(b); });
    std::vector<bool> imitable(lines.size());
    for (const size_t k : order) {
        while (!outer.empty() && !literal(k).starts_with(literal(outer.back()))) outer.pop_back();
        imitable[k] = !outer.empty();
        if (imitable[k] && literal(outer.back()) == literal(k)) imitable[outer.back()] = true;
        outer.push_back(k);
    }
    return imitable;
}

// Makes the first b line without a command the transitions, if no other line can give its text: the kernels share
// their scores between positions.
void take_transitions(Template& rules) {
    const std::vector<bool> imitable = find_imitable(rules.bigrams);
    size_t k = 0;
    for (; k < rules.bigrams.size(); ++k)
        if (const TemplateLine& line = rules.bigrams[k];
            line.source[0] == 'b' && !line.pieces[0].has_macro && !imitable[k])
            break;
    if (k == rules.bigrams.size()) return;
    rules.transitions = true;
    rules.transition_source = rules.bigrams[k].source;
    rules.bigrams.erase(rules.bigrams.begin() + static_cast<std::ptrdiff_t>(k));
}

// What stands for a cell outside the sequence.
std::string_view outside(int64_t at, int64_t length) {
    static constexpr std::string_view before[] = {"_x-1", "_x-2", "_x-3", "_x-4", "_x-#"};
    static constexpr std::string_view after[] = {"_x+1", "_x+2", "_x+3", "_x+4", "_x+#"};
    return at < 0 ? before[std::min<int64_t>(-at - 1, 4)] : after[std::min<int64_t>(at - length, 4)];
}

}  // namespace

Template parse_wapiti_patterns(std::string_view text) {
    Template result;
    for (int64_t number = 1; !text.empty(); ++number) {
        std::string_view given = next_line(text);
        given = given.substr(0, given.find('#'));
        const size_t last = given.find_last_not_of(blanks);
        if (last == std::string_view::npos) continue;
        std::string line(given.substr(0, last + 1));
        line[0] = fold_case(line[0]);
        if (line[0] != 'u' && line[0] != 'b' && line[0] != '*') {
            std::string message = "'" + line + "' starts with neither u (unigram), b (bigram) nor * (both)";
            if (blanks.find(line[0]) != std::string_view::npos) message += "; remove the blanks before it";
            throw TemplateError{number, message};
        }
        TemplateLine parsed = PatternReader(line, number).read();
        note_columns(result, parsed, number);
        if (line[0] == '*') result.unigrams.push_back(parsed);
        (line[0] == 'u' ? result.unigrams : result.bigrams).push_back(std::move(parsed));
    }
    if (result.unigrams.empty() && result.bigrams.empty()) throw TemplateError{0, "the template has no u, b or * line"};
    take_transitions(result);
    return result;
}

void expand_wapiti(const TemplateLine& line, const Columns& x, int64_t t, std::string& out) {
    for (const auto& piece : line.pieces) {
        out += piece.literal;
        if (!piece.has_macro) continue;
        const int64_t at = !piece.absolute ? t + piece.row : piece.row < 0 ? x.length + piece.row : piece.row - 1;
        std::string_view value =
            at < 0 || at >= x.length ? outside(at, x.length) : x.cells[at * x.n_columns + piece.column];
        bool cut = false;
        if (piece.command != 'x') {
            const WapitiRegex::Match found = piece.regex.find(value);
            if (piece.command == 't') {
                value = found.begin < 0 ? "false" : "true";
            } else {
                const auto begin = static_cast<size_t>(std::max<int64_t>(found.begin, 0));
                // Past the end of a cell Wapiti copies its final zero byte, which ends the observation.
                cut = begin + static_cast<size_t>(found.length) > value.size();
                value = value.substr(begin, static_cast<size_t>(found.length));
            }
        }
        if (piece.fold)
            std::transform(value.begin(), value.end(), std::back_inserter(out), fold_case);
        else
            out += value;
        check_expansion(out.size());
        if (cut) return;
    }
}

}  // namespace crfkit
