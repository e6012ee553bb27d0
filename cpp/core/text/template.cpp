#include "template.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace crfkit {

namespace {

// Reads an integer at text[i…], advancing i; false if there is none or it does not fit.
bool read_integer(std::string_view text, size_t& i, int64_t& value) {
    const char* begin = text.data() + i;
    const char* end = text.data() + text.size();
    if (end - begin > 1 && *begin == '+' && begin[1] != '-') ++begin;
    const auto [rest, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || value > largest_template_number || value < -largest_template_number) return false;
    i = static_cast<size_t>(rest - text.data());
    return true;
}

TemplateLine parse_line(std::string_view line, int64_t number) {
    const auto fail = [&](const std::string& what) -> TemplateError {
        return {number, what + " in '" + std::string(line) + "'; a macro is written %x[row,column], as in %x[-1,0]"};
    };
    TemplateLine result{std::string(line), {}, TemplateSyntax::crfpp};
    TemplatePiece piece;
    for (size_t i = 0; i < line.size();) {
        if (line[i] != '%') {
            piece.literal += line[i++];
            continue;
        }
        if (i + 1 >= line.size() || line[i + 1] != 'x') throw fail("unknown macro '" + macro_name(line, i) + "'");
        i += 2;
        const auto expect = [&](char c) {
            if (i >= line.size() || line[i] != c) throw fail("malformed macro");
            ++i;
        };
        expect('[');
        if (!read_integer(line, i, piece.row)) throw fail("malformed row");
        expect(',');
        if (!read_integer(line, i, piece.column) || piece.column < 0) throw fail("malformed column");
        expect(']');
        piece.has_macro = true;
        result.pieces.push_back(std::move(piece));
        piece = {};
    }
    if (!piece.literal.empty()) result.pieces.push_back(std::move(piece));
    return result;
}

void append_boundary(std::string& out, char sign, int64_t distance) {
    out += "_B";
    out += sign;
    out += std::to_string(distance);
}

}  // namespace

void note_columns(Template& t, const TemplateLine& line, int64_t number) {
    for (const auto& piece : line.pieces) {
        if (!piece.has_macro) continue;
        t.n_columns = std::max(t.n_columns, piece.column + 1);
        t.line_numbers.resize(static_cast<size_t>(t.n_columns), 0);
        int64_t& first = t.line_numbers[static_cast<size_t>(piece.column)];
        if (first == 0) first = number;
    }
}

TemplateSyntax template_syntax(std::string_view name) {
    if (name == "crf++") return TemplateSyntax::crfpp;
    if (name == "wapiti") return TemplateSyntax::wapiti;
    throw std::invalid_argument("unknown template syntax '" + std::string(name) + "'; expected 'crf++' or 'wapiti'");
}

std::string macro_name(std::string_view line, size_t at) {
    const bool ascii = at + 1 < line.size() && static_cast<unsigned char>(line[at + 1]) < 0x80;
    return std::string(line.substr(at, ascii ? 2 : 1));
}

std::string_view next_line(std::string_view& text) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

Template parse_template(std::string_view text, TemplateSyntax syntax) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    if (syntax == TemplateSyntax::wapiti) return parse_wapiti_patterns(text);
    Template result;
    for (int64_t number = 1; !text.empty(); ++number) {
        std::string_view line = next_line(text);
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
            line.remove_suffix(1);
        const size_t first = line.find_first_not_of(" \t");
        if (first == std::string_view::npos || line[first] == '#') continue;
        if (line[0] != 'U' && line[0] != 'B') {
            std::string message = "'" + std::string(line) + "' starts with neither U (unigram) nor B (bigram)";
            if (first > 0) message += "; remove the blanks before it";
            throw TemplateError{number, message};
        }
        TemplateLine parsed = parse_line(line, number);
        note_columns(result, parsed, number);
        if (line == "B") {
            if (result.transitions) throw TemplateError{number, "a bare 'B' is given twice; keep one"};
            result.transitions = true;
            result.transition_source = line;
        } else {
            (line[0] == 'U' ? result.unigrams : result.bigrams).push_back(std::move(parsed));
        }
    }
    if (result.unigrams.empty() && result.bigrams.empty() && !result.transitions)
        throw TemplateError{0, "the template has no U or B line"};
    return result;
}

void expand(const TemplateLine& line, const Columns& x, int64_t t, std::string& out) {
    if (line.syntax == TemplateSyntax::wapiti) return expand_wapiti(line, x, t, out);
    for (const auto& piece : line.pieces) {
        out += piece.literal;
        if (!piece.has_macro) continue;
        const int64_t at = t + piece.row;
        if (at < 0)
            append_boundary(out, '-', -at);
        else if (at >= x.length)
            append_boundary(out, '+', at - x.length + 1);
        else
            out += x.cells[at * x.n_columns + piece.column];
        check_expansion(out.size());
    }
}

std::vector<std::tuple<std::vector<std::string>, std::vector<std::string>>> expand_rows(
    const Template& rules, const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::string_view> cells;
    for (const auto& row : rows) {
        if (static_cast<int64_t>(row.size()) < rules.n_columns || row.size() != rows[0].size())
            throw std::invalid_argument("a row has too few columns, or not as many as the first");
        cells.insert(cells.end(), row.begin(), row.end());
    }
    const Columns x{cells.data(), static_cast<int64_t>(rows.size()),
                    rows.empty() ? 0 : static_cast<int64_t>(rows[0].size())};
    std::vector<std::tuple<std::vector<std::string>, std::vector<std::string>>> result(rows.size());
    for (int64_t t = 0; t < x.length; ++t) {
        auto& [unigrams, bigrams] = result[static_cast<size_t>(t)];
        for (const auto& line : rules.unigrams) expand(line, x, t, unigrams.emplace_back());
        for (const auto& line : rules.bigrams) expand(line, x, t, bigrams.emplace_back());
    }
    return result;
}

std::vector<std::string> sources(const std::vector<TemplateLine>& lines) {
    std::vector<std::string> texts;
    for (const auto& line : lines) texts.push_back(line.source);
    return texts;
}

}  // namespace crfkit
