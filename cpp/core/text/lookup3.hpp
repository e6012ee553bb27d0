// Bob Jenkins' hash function "lookup3" (hashlittle, 2006, public domain), which CRFsuite's databases are built on.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace crfkit {

inline uint32_t lookup3(std::string_view key) {
    uint32_t a = 0xdeadbeef + static_cast<uint32_t>(key.size()), b = a, c = a;
    const auto word = [&](size_t at) {  // up to four bytes; those past the end are 0
        uint32_t x = 0;
        if (at + 4 <= key.size()) {
            std::memcpy(&x, key.data() + at, 4);
            return x;
        }
        for (size_t i = 0; i < 4 && at + i < key.size(); ++i)
            x |= static_cast<uint32_t>(static_cast<uint8_t>(key[at + i])) << 8 * i;
        return x;
    };
    size_t at = 0;
    for (; key.size() - at > 12; at += 12) {
        a += word(at), b += word(at + 4), c += word(at + 8);
        a -= c, a ^= std::rotl(c, 4), c += b;
        b -= a, b ^= std::rotl(a, 6), a += c;
        c -= b, c ^= std::rotl(b, 8), b += a;
        a -= c, a ^= std::rotl(c, 16), c += b;
        b -= a, b ^= std::rotl(a, 19), a += c;
        c -= b, c ^= std::rotl(b, 4), b += a;
    }
    if (at == key.size()) return c;
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
