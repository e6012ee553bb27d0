#include "wapiti_weights.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#ifndef __cpp_lib_to_chars
#include <locale.h>
#include <stdlib.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#endif

namespace crfkit {

namespace {

bool all_printable(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

[[noreturn]] void fail(std::string_view line, const char* what) {
    const std::string shown(line.substr(0, 60));
    std::string message = "a line of weights";
    if (all_printable(shown)) message.assign(1, '\'').append(shown).append("'");
    throw std::invalid_argument(message + what);
}

// As std::from_chars of the same format.
std::from_chars_result read_double(const char* begin, const char* end, double& value, bool hexadecimal) {
#ifdef __cpp_lib_to_chars
    return std::from_chars(begin, end, value, hexadecimal ? std::chars_format::hex : std::chars_format::general);
#else  // libc++ before version 20
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    const std::string text = (hexadecimal ? "0x" : "") + std::string(begin, end);
    char* rest = nullptr;
    value = begin == end || *begin <= ' ' ? 0.0 : strtod_l(text.c_str(), &rest, plain);
    if (!rest || rest <= text.c_str() + (hexadecimal ? 2 : 0)) return {begin, std::errc::invalid_argument};
    const char* stop = end - (text.c_str() + text.size() - rest);
    return {stop, std::isfinite(value) ? std::errc() : std::errc::result_out_of_range};
#endif
}

double parse_number(std::string_view text, std::string_view line) {
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if (hexadecimal) text.remove_prefix(2);
    const bool begins = !text.empty() && text[0] != '-' && text[0] != '+';
    const bool whole = !hexadecimal || text.find_first_of("pP") != std::string_view::npos;
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = read_double(text.data(), end, value, hexadecimal);
    if (!begins || !whole || error == std::errc::invalid_argument || rest != end)
        fail(line, " is not a weight, as in 12=0x1.8p-1");
    if (error == std::errc::result_out_of_range || !std::isfinite(value)) fail(line, " is not a finite number");
    return negative ? -value : value;
}

}  // namespace

WapitiWeights parse_wapiti_weights(std::string_view text) {
    WapitiWeights result;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        if (end == std::string_view::npos) fail(text, " is not a whole line of weights");
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        int64_t index = 0;
        const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), index);
        const auto at = static_cast<size_t>(rest - line.data());
        if (error != std::errc() || index < 0 || at >= line.size() || line[at] != '=')
            fail(line, " is not a weight, as in 12=0x1.8p-1");
        result.values.push_back(parse_number(line.substr(at + 1), line));
        result.index.push_back(index);
    }
    return result;
}

std::string format_wapiti_weights(std::span<const int64_t> index, std::span<const double> values) {
    std::string out;
    char digits[32];
    const auto append = [&](auto... number) {
        out.append(digits, std::to_chars(digits, digits + sizeof digits, number...).ptr);
    };
    for (size_t i = 0; i < index.size(); ++i) {  // as C's "%lld=%a\n" writes it where a point is a point
        append(index[i]);
        out += std::signbit(values[i]) ? "=-0x" : "=0x";
        append(std::fabs(values[i]), std::chars_format::hex);
        out += '\n';
    }
    return out;
}

}  // namespace crfkit
