// The weights of Wapiti's model files: a line "12=0x1.8p-1" each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace crfkit {

struct WapitiWeights {
    std::vector<int64_t> index;
    std::vector<double> values;
};

// Hexadecimal numbers need their exponent and every line its end, so that a file that was cut is noticed. Throws
// std::invalid_argument with what is wrong.
WapitiWeights parse_wapiti_weights(std::string_view text);
std::string format_wapiti_weights(std::span<const int64_t> index, std::span<const double> values);

}  // namespace crfkit
