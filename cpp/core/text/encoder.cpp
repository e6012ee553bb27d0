#include "encoder.hpp"

#include <cmath>

namespace crfkit {

namespace {

// The name in a message, unless it is not UTF-8.
std::string quoted_observation(std::string_view name) {
    std::string text = "an observation";
    if (find_invalid_utf8(name) == std::string_view::npos) text.assign("the observation '").append(name).append("'");
    return text;
}

}  // namespace

Encoder::Encoder(std::optional<Template> rules, Vocabulary attributes, Vocabulary pair_attributes,
                 EncoderOptions options)
    : rules_(std::move(rules)),
      attributes_(std::move(attributes)),
      pair_attributes_(std::move(pair_attributes)),
      options_(options),
      parser_(options.loose ? ColumnParser::loose(rules_ ? rules_->n_columns : 0, options.labelled)
                            : ColumnParser(options.labelled ? 2 : 1)) {}

Encoder::Encoder(const TextRules& rules, Vocabulary attributes, EncoderOptions options)
    : text_(std::in_place, rules),
      attributes_(std::move(attributes)),
      options_(options),
      parser_(options.labelled ? 2 : 1) {}

std::string Encoder::where(size_t position) const {
    return "sequence " + std::to_string(data_.starts.size() - 1) + ", position " + std::to_string(position) + ": ";
}

std::string Encoder::missing_column(int64_t n) const {
    const auto there_are = [n] {
        return std::string(", but there ") + (n == 1 ? "is" : "are") + " only " + counted(n, "feature column") +
               ", numbered from 0";
    };
    if (text_ && n < text_->rules().n_columns)
        return "the features use column " + std::to_string(text_->rules().n_columns - 1) + there_are();
    if (!rules_ || n >= rules_->n_columns) return "";
    int64_t column = n;  // the first that is missing and named
    while (rules_->line_numbers[static_cast<size_t>(column)] == 0) ++column;
    return "line " + std::to_string(rules_->line_numbers[static_cast<size_t>(column)]) +
           " of the template names column " + std::to_string(column) + there_are();
}

void Encoder::encode(const Columns& x) {
    try {
        if (text_)
            text_->encode(x, attributes_, data_);
        else
            encode_columns(*rules_, x, attributes_, pair_attributes_, data_);
    } catch (const std::length_error& error) {
        throw BadInput(error.what());
    }
}

void Encoder::feed(std::string_view bytes, bool end) {
    const auto sink = [&](const Columns& x, const std::vector<std::string_view>& lines, int64_t first_line) {
        take_columns(x, lines, first_line);
    };
    parser_.feed(bytes, sink);
    if (end) parser_.finish(sink);
}

void Encoder::take_columns(const Columns& x, const std::vector<std::string_view>& lines, int64_t first_line) {
    const int64_t n = options_.labelled ? x.n_columns - 1 : x.n_columns;
    if (takes_rows()) {
        if (std::string wrong = missing_column(n); !wrong.empty()) throw InputError{first_line, std::move(wrong)};
        try {
            encode(x);
        } catch (const BadInput& error) {
            throw InputError{first_line, error.what()};
        }
    } else {
        for (int64_t t = 0; t < x.length; ++t) data_.offsets.push_back(0);
        data_.end_sequence();
    }
    for (int64_t t = 0; options_.labelled && t < x.length; ++t)
        data_.labels.push_back(labels_.intern(x.cells[t * x.n_columns + n]));
    if (options_.keep_lines) kept_.add_sequence(lines);
}

void Encoder::begin_rows() {
    cells_.clear();
    position_ = row_begin_ = n_columns_ = 0;
}

void Encoder::end_row() {
    const size_t n = cells_.size() - row_begin_;
    if (position_ == 0) n_columns_ = n;
    if (n != n_columns_)
        throw BadInput(where() + counted(static_cast<int64_t>(n), "column") + ", but the tokens before have " +
                       std::to_string(n_columns_));
    row_begin_ = cells_.size();
    ++position_;
}

void Encoder::end_rows() {
    if (!takes_rows()) throw BadInput("rows of columns need a template");
    const Columns x{cells_.data(), static_cast<int64_t>(position_), static_cast<int64_t>(n_columns_)};
    if (x.length > 0)
        if (const std::string wrong = missing_column(x.n_columns); !wrong.empty()) throw BadInput(where(0) + wrong);
    encode(x);
}

void Encoder::begin_items() {
    forget_item();
    position_ = 0;
    // an item that was refused has left the ones before it behind
    data_.offsets.resize(static_cast<size_t>(data_.starts.back()) + 1);
    const auto kept = static_cast<size_t>(data_.offsets.back());
    data_.attributes.resize(kept);
    if (!data_.values.empty()) data_.values.resize(kept);
    if (options_.by_prefix) {
        data_.pair_offsets.resize(data_.offsets.size());
        data_.pair_attributes.resize(static_cast<size_t>(data_.pair_offsets.back()));
    }
}

void Encoder::forget_item() {
    names_.clear();
    name_values_.clear();
    made_.clear();
}

void Encoder::add_text(std::string_view outer, std::string_view key, std::string_view text) {
    add(made_.join({outer, key, ":", text}), 1.0);
}

void Encoder::add_number(std::string_view outer, std::string_view key, double number) {
    if (!std::isfinite(number))
        throw BadInput(where() + "'" + std::string(outer) + std::string(key) + "' is " +
                       (std::isnan(number) ? "nan"
                        : number > 0       ? "inf"
                                           : "-inf") +
                       "; feature values must be finite");
    add(outer.empty() ? key : made_.join({outer, key}), number);
}

void Encoder::take_pairs() {
    std::vector<std::string_view> pairs;
    size_t kept = 0;
    for (size_t i = 0; i < names_.size(); ++i) {
        const char kind = names_[i].empty() ? '\0' : names_[i][0];
        if (kind != 'u' && kind != 'b' && kind != '*')
            throw BadInput(where() + quoted_observation(names_[i]) +
                           " starts with neither u (unigram), b (bigram) nor * (both)");
        if (name_values_[i] != 1.0) throw BadInput(where() + "an observation has no value");
        if (kind != 'u') pairs.push_back(names_[i]);
        if (kind != 'b') names_[kept++] = names_[i];
    }
    names_.resize(kept);
    name_values_.resize(kept);
    ids_.clear();
    if (position_ > 0) pair_attributes_.ids(pairs, ids_);  // no label pair ends at the first position
    for (const int32_t id : ids_)
        if (id >= 0) data_.pair_attributes.push_back(id);
    data_.pair_offsets.push_back(static_cast<int64_t>(data_.pair_attributes.size()));
}

void Encoder::end_item() {
    try {
        if (options_.by_prefix) take_pairs();
        ids_.clear();
        attributes_.ids(names_, ids_);
    } catch (const TooManyStrings& error) {
        throw BadInput(where() + error.what());
    }
    for (size_t i = 0; i < ids_.size(); ++i) {
        if (ids_[i] < 0) continue;
        const double value = name_values_[i];
        if (value != 1.0 && data_.values.empty()) data_.values.assign(data_.attributes.size(), 1.0);
        data_.attributes.push_back(ids_[i]);
        if (value != 1.0 || !data_.values.empty()) data_.values.push_back(value);
    }
    forget_item();
    data_.offsets.push_back(static_cast<int64_t>(data_.attributes.size()));
    ++position_;
}

}  // namespace crfkit
