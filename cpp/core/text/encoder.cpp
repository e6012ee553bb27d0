#include "encoder.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <system_error>

#include "../support/parallel.hpp"

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
    : attributes_(std::move(attributes)),
      pair_attributes_(std::move(pair_attributes)),
      options_(options),
      parser_(options.loose ? ColumnParser::loose(rules ? rules->n_columns : 0, options.labelled)
                            : ColumnParser(options.labelled ? 2 : 1)) {
    if (rules) template_.emplace(*std::move(rules));
}

Encoder::Encoder(const TextRules& rules, Vocabulary attributes, EncoderOptions options)
    : text_(std::in_place, rules),
      attributes_(std::move(attributes)),
      options_(options),
      parser_(options.labelled ? 2 : 1) {}

std::string Encoder::where(size_t position) const {
    return "sequence " + std::to_string(n_sequences_) + ", position " + std::to_string(position) + ": ";
}

std::string Encoder::missing_column(int64_t n) const {
    const auto there_are = [n] {
        return std::string(", but there ") + (n == 1 ? "is" : "are") + " only " + counted(n, "feature column") +
               ", numbered from 0";
    };
    if (text_ && n < text_->rules().n_columns)
        return "the features use column " + std::to_string(text_->rules().n_columns - 1) + there_are();
    if (!template_ || n >= template_->rules().n_columns) return "";
    const auto& lines = template_->rules().line_numbers;
    int64_t column = n;  // the first that is missing and named
    while (lines[static_cast<size_t>(column)] == 0) ++column;
    return "line " + std::to_string(lines[static_cast<size_t>(column)]) + " of the template names column " +
           std::to_string(column) + there_are();
}

void Encoder::encode(const Columns& x) {
    try {
        if (text_)
            text_->encode(x, attributes_, data_);
        else
            template_->encode(x, attributes_, pair_attributes_, data_);
        ++n_sequences_;
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
        ++n_sequences_;
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
    position_ = 0;
    batch_.clear(attributes_.key());  // a sequence that was refused has left its first items behind
}

void Encoder::add_number(std::string_view outer, std::string_view key, double number) {
    if (!std::isfinite(number))
        throw BadInput(where() + "'" + std::string(outer) + std::string(key) + "' is " +
                       (std::isnan(number) ? "nan"
                        : number > 0       ? "inf"
                                           : "-inf") +
                       "; feature values must be finite");
    add(outer.empty() ? key : batch_.made.join({outer, key}), number);
}

void Encoder::take_pairs() {
    auto& names = batch_.names;
    size_t kept = batch_.item_ends.empty() ? 0 : batch_.item_ends.back();
    for (size_t i = kept; i < names.size(); ++i) {
        const std::string_view name = names[i].text;
        const char kind = name.empty() ? '\0' : name[0];
        if (kind != 'u' && kind != 'b' && kind != '*')
            throw BadInput(where() + quoted_observation(name) +
                           " starts with neither u (unigram), b (bigram) nor * (both)");
        if (!batch_.values.empty() && batch_.values[i] != 1.0) throw BadInput(where() + "an observation has no value");
        // no label pair ends at the first position
        if (kind != 'u' && position_ > 0)
            batch_.pair_names.push_back({name, hash_string(name, pair_attributes_.key())});
        if (kind != 'b') names[kept++] = names[i];
    }
    names.resize(kept);
    if (!batch_.values.empty()) batch_.values.resize(kept);
    batch_.pair_ends.push_back(batch_.pair_names.size());
}

void Encoder::end_item() {
    if (options_.by_prefix) take_pairs();
    batch_.end_item();
    ++position_;
}

void Encoder::end_items() {
    batch_.end_items();
    ++n_sequences_;
    look_up(batch_);
}

namespace {

// Appends the ids of each item that are known, and where they end.
void append_ids(const std::vector<int32_t>& ids, const std::vector<size_t>& item_ends, std::vector<int32_t>& out,
                std::vector<int64_t>& ends) {
    size_t at = out.size(), k = 0;
    out.resize(at + ids.size());
    for (const size_t end : item_ends) {
        for (; k < end; ++k) {
            out[at] = ids[k];
            at += ids[k] >= 0;
        }
        ends.push_back(static_cast<int64_t>(at));
    }
    out.resize(at);
}

}  // namespace

template <class Find, class Place>
void Encoder::with_places(const NameBatch& batch, const Find& find, const Place& place) const {
    try {
        find();
    } catch (const TooManyStrings& error) {
        const auto [sequence, item] = batch.place_of(place());
        throw BadInput("sequence " + std::to_string(data_.starts.size() - 1 + sequence) + ", position " +
                       std::to_string(item) + ": " + error.what());
    }
}

void Encoder::look_up(const NameBatch& batch) {
    const auto find = [&](Vocabulary& vocabulary, const std::vector<HashedName>& names, HashKey key) {
        ids_.clear();
        with_places(batch, [&] { vocabulary.ids(names, key, ids_); }, [&] { return ids_.size(); });
    };
    if (options_.by_prefix) {
        find(pair_attributes_, batch.pair_names, pair_attributes_.key());
        append_ids(ids_, batch.pair_ends, data_.pair_attributes, data_.pair_offsets);
    }
    find(attributes_, batch.names, batch.key);
    append(batch, ids_);
}

void Encoder::append(const NameBatch& batch, const std::vector<int32_t>& ids) {
    bool valued = !data_.values.empty();
    for (size_t k = 0; k < batch.values.size() && !valued; ++k) valued = ids[k] >= 0 && batch.values[k] != 1.0;
    if (valued && data_.values.empty()) data_.values.assign(data_.attributes.size(), 1.0);
    for (size_t k = 0; k < ids.size() && valued; ++k)
        if (ids[k] >= 0) data_.values.push_back(batch.values.empty() ? 1.0 : batch.values[k]);
    const auto before = static_cast<int64_t>(data_.offsets.size()) - 1;
    append_ids(ids, batch.item_ends, data_.attributes, data_.offsets);
    for (const size_t end : batch.sequence_ends) data_.starts.push_back(before + static_cast<int64_t>(end));
}

// A round: threads take chunks of sequences, read them, and look their names up in what is known. Then one thread adds
// the names that are not known, in the order of the sequences: ids do not depend on threads. Few names are new in a
// round, as most occur again and again; at the beginning many are, so that the first rounds are short.
size_t Encoder::add_in_parallel(size_t n, int n_threads, const std::function<bool(size_t, NameBatch&)>& read,
                                const std::function<void()>& pause) {
    constexpr size_t kChunk = 16, kFirst = 8, kMost = 256;  // sequences of a chunk; chunks of a round
    constexpr size_t kMostNames = size_t{1} << 21;          // of a round, as far as can be foreseen
    struct Chunk {
        NameBatch batch;
        std::vector<int32_t> ids;
        std::vector<size_t> places;  // of names that are not known
        std::vector<HashedName> names;
        bool complete;
    };
    if (options_.by_prefix || !batch_.hashes) return 0;
    std::vector<Chunk> chunks;
    std::vector<std::vector<HashedName>> names(static_cast<size_t>(n_threads));  // that a thread reads
    size_t size = kFirst, added = 0;
    while (added < n) {
        size = std::min(size, (n - added + kChunk - 1) / kChunk);
        if (chunks.size() < size) chunks.resize(size);
        std::atomic<size_t> next{0};
        const auto work = [&](int thread) {
            for (size_t k; (k = next.fetch_add(1)) < size;) {
                Chunk& chunk = chunks[k];
                chunk.batch.names.swap(names[static_cast<size_t>(thread)]);
                chunk.batch.clear(attributes_.key());
                chunk.complete = true;
                const size_t begin = added + k * kChunk, end = std::min(begin + kChunk, n);
                for (size_t i = begin; i < end && chunk.complete; ++i) chunk.complete = read(i, chunk.batch);
                if (!chunk.complete) chunk.batch.drop_sequence();
                chunk.ids.clear();
                attributes_.known(chunk.batch.names, chunk.ids);
                chunk.places.clear();
                chunk.names.clear();
                for (size_t i = 0; i < chunk.ids.size() && attributes_.grows(); ++i) {
                    if (chunk.ids[i] >= 0) continue;
                    chunk.places.push_back(i);
                    chunk.names.push_back(chunk.batch.names[i]);
                }
                chunk.batch.names.swap(names[static_cast<size_t>(thread)]);
            }
        };
        try {
            run_threads(static_cast<int>(std::min(size, names.size())), work);
        } catch (const std::system_error&) {  // the machine has no room for more threads: the caller adds the rest
            return added;
        }
        size_t n_names = 0;
        for (size_t k = 0; k < size; ++k) {
            Chunk& chunk = chunks[k];
            ids_.clear();
            with_places(
                chunk.batch, [&] { attributes_.ids(chunk.names, chunk.batch.key, ids_); },
                [&] { return chunk.places[ids_.size()]; });
            for (size_t i = 0; i < ids_.size(); ++i) chunk.ids[chunk.places[i]] = ids_[i];
            append(chunk.batch, chunk.ids);
            n_names += chunk.ids.size();
            added += chunk.batch.sequence_ends.size();
            n_sequences_ += chunk.batch.sequence_ends.size();
            if (!chunk.complete) return added;
        }
        pause();
        size = std::min({2 * size, kMost, 1 + kMostNames * size / (n_names + 1)});
    }
    return added;
}

}  // namespace crfkit
