#pragma once

#include <algorithm>
#include <memory>

#include "../core/text/encoder.hpp"
#include "common.hpp"
#include "strings.hpp"

namespace crfkit {

// Rules for plain tokens, with the vectors that they look up.
struct BoundTextRules {
    std::optional<StringTable> words;
    std::optional<Array<float>> vectors;
    TextRules rules;
};

// Attribute names: in a table, or hashed into buckets.
using AttributeTable = std::variant<StringTable, BucketTable>;

// An encoder that keeps the tables alive that it looks strings up in.
struct BoundEncoder {
    std::optional<AttributeTable> attributes, pair_attributes;
    nb::object text;  // BoundTextRules or None
    Encoder encoder;

    BoundEncoder(const std::optional<std::string>& rules, std::optional<AttributeTable> attributes,
                 std::optional<AttributeTable> pair_attributes, bool labelled, bool keep_lines,
                 const std::string& syntax, bool loose, nb::object text, int64_t hash_bits, uint64_t most)
        : attributes(std::move(attributes)),
          pair_attributes(std::move(pair_attributes)),
          text(std::move(text)),
          encoder(make(rules,
                       {labelled, keep_lines, !rules && template_syntax(syntax) == TemplateSyntax::wapiti, loose},
                       syntax, hash_bits, most)) {}

private:
    Encoder make(const std::optional<std::string>& rules, EncoderOptions options, const std::string& syntax,
                 int64_t hash_bits, uint64_t most) const {
        most = std::min(most, kMostStrings);
        if (hash_bits != 0) check_bits(hash_bits);
        const auto empty = [&] { return hash_bits != 0 ? Vocabulary::hashed(hash_bits) : Vocabulary(most); };
        Vocabulary names = attributes ? vocabulary(*attributes) : empty();
        if (!text.is_none()) return {nb::cast<const BoundTextRules&>(text).rules, std::move(names), options};
        Vocabulary pairs = pair_attributes ? vocabulary(*pair_attributes)
                           : attributes    ? Vocabulary(StringIndex{})
                                           : empty();
        return {rules ? std::optional(parse_template(*rules, template_syntax(syntax))) : std::nullopt, std::move(names),
                std::move(pairs), options};
    }
    static Vocabulary vocabulary(const AttributeTable& table) {
        if (const auto* strings = std::get_if<StringTable>(&table)) return Vocabulary(strings->view());
        return Vocabulary(*std::get<BucketTable>(table).buckets);
    }
};

}  // namespace crfkit
