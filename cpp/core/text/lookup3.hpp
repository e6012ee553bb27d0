// Bob Jenkins' hash function "lookup3" (hashlittle, 2006, public domain), which CRFsuite's databases are built on.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace crfkit {

// The hash of a text with a zero byte at its end, as CRFsuite stores its keys.
inline uint32_t lookup3_with_zero(std::string_view text) {
    const size_t size = text.size() + 1;
    uint32_t a = 0xdeadbeef + static_cast<uint32_t>(size), b = a, c = a;
    const auto word = [&](size_t at) {  // four bytes; those past the end are 0
        uint32_t x = 0;
        if (at < text.size()) std::memcpy(&x, text.data() + at, text.size() - at < 4 ? text.size() - at : 4);
        return x;
    };
    size_t at = 0;
    for (; size - at > 12; at += 12) {
        a += word(at), b += word(at + 4), c += word(at + 8);
        a -= c, a ^= std::rotl(c, 4), c += b;
        b -= a, b ^= std::rotl(a, 6), a += c;
        c -= b, c ^= std::rotl(b, 8), b += a;
        a -= c, a ^= std::rotl(c, 16), c += b;
        b -= a, b ^= std::rotl(a, 19), a += c;
        c -= b, c ^= std::rotl(b, 4), b += a;
    }
    a += word(at), b += word(at + 4), c += word(at + 8);
    c ^= b, c -= std::rotl(b, 14);
    a ^= c, a -= std::rotl(c, 11);
    b ^= a, b -= std::rotl(a, 25);
    c ^= b, c -= std::rotl(b, 16);
    a ^= c, a -= std::rotl(c, 4);
    b ^= a, b -= std::rotl(a, 14);
    c ^= b, c -= std::rotl(b, 24);
    return c;
}

}  // namespace crfkit
