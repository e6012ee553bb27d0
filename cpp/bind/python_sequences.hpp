// Sequences of Python objects, handed to the encoder piece by piece.
#pragma once

#include <string_view>

#include "../core/text/encoder.hpp"
#include "common.hpp"

namespace crfkit {

// The UTF-8 text of a Python string, or of bytes. Throws BadInput, with the encoder's position, if it is not valid.
std::string_view utf8(nb::handle text, const Encoder& encoder);

// Adds one sequence of rows: tuples or lists of column strings, or plain strings (one column). With `alone`, those
// before are forgotten.
void add_rows(Encoder& encoder, nb::handle sequence, bool alone = false);

// Adds one sequence of items: lists of attribute strings, or dicts; or PreparedItems.
void add_items(Encoder& encoder, nb::handle sequence, bool alone = false);

// Adds all sequences of a list or tuple, on several threads.
void add_all_items(Encoder& encoder, nb::handle sequences, int n_threads);

// (different labels in order of first occurrence, the number of each label, the length of each row) of rows of labels;
// None unless all rows are plain lists or tuples of str.
nb::object number_labels(const nb::list& rows);

// A sequence of items whose attributes have been worked out: their names one after the other, and their values.
struct PreparedItems {
    std::string text;
    std::vector<size_t> name_ends, item_ends;  // of each name in text; of each item among the names
    std::vector<double> values;

    explicit PreparedItems(nb::handle sequence);
    // {name: value} of each item; the last value of names that are repeated.
    nb::list items() const;
    // visit(name, value) for each attribute, end_item() after each item.
    template <class Visit, class End>
    void each(const Visit& visit, const End& end_item) const;
};

// The PreparedItems behind a Python object, or null.
const PreparedItems* prepared(nb::handle sequence);

}  // namespace crfkit
