// Wapiti's small regular expressions, over bytes: . \a \d \l \p \s \u \w (upper case: not), \ before any other byte
// for that byte, * and ? after one of these, ^ first and $ last.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crfkit {

class WapitiRegex {
public:
    WapitiRegex() = default;
    // Throws std::invalid_argument with what is wrong.
    explicit WapitiRegex(std::string_view pattern);

    struct Match {
        int64_t begin = -1;  // -1: no match
        int64_t length = 0;  // may reach past the end of the text; see find()
    };
    // The first match in `text`, in time proportional to the sizes of pattern and text. * takes as little as it can, ?
    // takes its character if it can. The length is Wapiti's own: after a ? that had to give its character back, the
    // characters that were compared in vain are counted as well. Observations in existing models were made so.
    Match find(std::string_view text) const;

private:
    enum class Repeat : uint8_t { once, optional, any };
    struct Atom {
        char kind;  // '.', a class letter, or '=' for `value` itself
        char value;
        Repeat repeat;
        bool matches(char c) const;
    };
    std::vector<Atom> atoms_;
    bool at_start_ = false, at_end_ = false;
};

// As in C's "C" locale, whatever the program's locale is.
char fold_case(char c);

}  // namespace crfkit
