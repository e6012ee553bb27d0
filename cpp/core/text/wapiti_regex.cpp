#include "wapiti_regex.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace crfkit {

namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alpha(char c) { return is_lower(c) || is_upper(c); }
bool is_alnum(char c) { return is_alpha(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_punct(char c) { return c > ' ' && c < 0x7f && !is_alnum(c); }

constexpr size_t kMostAtoms = 1000;  // the time is their number times the length of the text
constexpr std::string_view classes = "adlpsuwADLPSUW";

// What a part of the pattern gives at a place of the text: whether it matches, and by how much the length grew (also
// if it does not match, because a ? before it keeps that).
struct Outcome {
    bool matches;
    uint32_t length;
};

uint32_t sum(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(std::min<uint64_t>(uint64_t{a} + b, std::numeric_limits<int32_t>::max()));
}

}  // namespace

char fold_case(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

WapitiRegex::WapitiRegex(std::string_view pattern) {
    if (pattern.starts_with('^')) {
        at_start_ = true;
        pattern.remove_prefix(1);
    }
    while (!pattern.empty()) {
        if (pattern == "$") {
            at_end_ = true;
            break;
        }
        Atom atom{'=', pattern[0], Repeat::once};
        size_t size = 1;
        if (pattern[0] == '*' || pattern[0] == '?')
            throw std::invalid_argument("nothing stands before " + std::string(1, pattern[0]) + "; write \\" +
                                        std::string(1, pattern[0]) + " for the character itself");
        if (pattern[0] == '.') {
            atom.kind = '.';
        } else if (pattern[0] == '\\') {
            if (pattern.size() == 1) throw std::invalid_argument("nothing follows the last \\");
            size = 2;
            atom.value = pattern[1];
            if (classes.find(pattern[1]) != std::string_view::npos) atom.kind = pattern[1];
        }
        pattern.remove_prefix(size);
        if (!pattern.empty() && (pattern[0] == '*' || pattern[0] == '?')) {
            atom.repeat = pattern[0] == '*' ? Repeat::any : Repeat::optional;
            pattern.remove_prefix(1);
        }
        atoms_.push_back(atom);
        if (atoms_.size() > kMostAtoms)
            throw std::invalid_argument("it has more than " + std::to_string(kMostAtoms) + " parts");
    }
}

bool WapitiRegex::Atom::matches(char c) const {
    switch (kind) {
        case '.': return true;
        case 'a': return is_alpha(c);
        case 'd': return is_digit(c);
        case 'l': return is_lower(c);
        case 'p': return is_punct(c);
        case 's': return is_space(c);
        case 'u': return is_upper(c);
        case 'w': return is_alnum(c);
        case 'A': return !is_alpha(c);
        case 'D': return !is_digit(c);
        case 'L': return !is_lower(c);
        case 'P': return !is_punct(c);
        case 'S': return !is_space(c);
        case 'U': return !is_upper(c);
        case 'W': return !is_alnum(c);
        default: return c == value;
    }
}

// From the last atom to the first, what the rest of the pattern gives at every place of the text.
WapitiRegex::Match WapitiRegex::find(std::string_view text) const {
    const size_t n = text.size();
    thread_local std::vector<Outcome> next, here;  // kept, because expressions are small and many
    next.assign(n + 1, Outcome{!at_end_, 0});
    here.resize(n + 1);
    next[n].matches = true;
    for (auto atom = atoms_.rbegin(); atom != atoms_.rend(); ++atom) {
        for (size_t s = n + 1; s-- > 0;) {
            const bool fits = s < n && atom->matches(text[s]);
            switch (atom->repeat) {
                case Repeat::once:
                    here[s] = fits ? Outcome{next[s + 1].matches, sum(next[s + 1].length, 1)} : Outcome{false, 1};
                    break;
                case Repeat::optional:
                    if (!fits)
                        here[s] = next[s];
                    else if (next[s + 1].matches)
                        here[s] = {true, sum(next[s + 1].length, 1)};
                    else
                        here[s] = {next[s].matches, sum(next[s + 1].length, next[s].length)};
                    break;
                case Repeat::any:
                    if (next[s].matches)
                        here[s] = next[s];
                    else
                        here[s] = fits ? Outcome{here[s + 1].matches, sum(here[s + 1].length, 1)} : Outcome{false, 1};
            }
        }
        std::swap(here, next);
    }
    for (size_t s = 0; s <= (at_start_ ? 0 : n); ++s)
        if (next[s].matches) return {static_cast<int64_t>(s), next[s].length};
    return {};
}

}  // namespace crfkit
