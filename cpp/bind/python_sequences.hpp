// Sequences of Python objects, handed to the encoder piece by piece.
#pragma once

#include <string_view>

#include "../core/text/encoder.hpp"
#include "common.hpp"

namespace crfkit {

// The UTF-8 text of a Python string, or of bytes. Throws BadInput, with the encoder's position, if it is not valid.
std::string_view utf8(nb::handle text, const Encoder& encoder);

// Adds one sequence of rows: tuples or lists of column strings, or plain strings (one column).
void add_rows(Encoder& encoder, nb::handle sequence);

// Adds one sequence of items: lists of attribute strings, or dicts.
void add_items(Encoder& encoder, nb::handle sequence);

// The attributes of each item as {name: value}, where repeated ones are added up; and, for items with repeated ones,
// the same with the last value of each, else None.
nb::tuple prepare_items(nb::handle sequence);

}  // namespace crfkit
