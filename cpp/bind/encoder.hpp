#pragma once

#include "../core/text/encoder.hpp"
#include "common.hpp"
#include "strings.hpp"

namespace crfkit {

// An encoder that keeps the tables alive that it looks strings up in.
struct BoundEncoder {
    std::optional<StringTable> attributes, pair_attributes;
    Encoder encoder;

    BoundEncoder(const std::optional<std::string>& rules, std::optional<StringTable> attributes,
                 std::optional<StringTable> pair_attributes, bool labelled, bool keep_lines, const std::string& syntax,
                 bool loose)
        : attributes(std::move(attributes)),
          pair_attributes(std::move(pair_attributes)),
          encoder(rules ? std::optional(parse_template(*rules, template_syntax(syntax))) : std::nullopt,
                  view_of(this->attributes), view_of(this->pair_attributes),
                  {labelled, keep_lines, !rules && template_syntax(syntax) == TemplateSyntax::wapiti, loose}) {}

    static std::optional<StringIndex> view_of(const std::optional<StringTable>& table) {
        return table ? std::optional(table->view()) : std::nullopt;
    }
};

}  // namespace crfkit
