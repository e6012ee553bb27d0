// Builds encoded sequences: from column files as they are read, from rows of columns, from items of attributes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "columns.hpp"
#include "kept_lines.hpp"
#include "name_batch.hpp"
#include "sequences.hpp"
#include "template.hpp"
#include "template_expansion.hpp"
#include "text_expansion.hpp"

namespace crfkit {

// A sequence that cannot be encoded; the message says where and why.
struct BadInput : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct EncoderOptions {
    bool labelled = false;    // the last column of a file is the label
    bool keep_lines = false;  // for files that are written again with more columns
    // The first character of an item's attribute says whether it is of labels (u), of label pairs (b) or both (*).
    bool by_prefix = false;
    // Wapiti's way to read: texts need not be UTF-8, and lines may have any number of columns.
    bool loose = false;
};

class Encoder {
public:
    // `rules` expands columns; without them only labels are taken from columns. `attributes` is a vocabulary that
    // grows, or one that is fixed, so that unknown names are dropped; the caller keeps the memory behind the latter.
    Encoder(std::optional<Template> rules, Vocabulary attributes, Vocabulary pair_attributes, EncoderOptions options);
    // Plain tokens, with rules that the caller keeps.
    Encoder(const TextRules& rules, Vocabulary attributes, EncoderOptions options);

    // Items only, with attributes that are looked up in a model; the caller keeps it.
    explicit Encoder(Lookup& attributes) : attributes_(attributes), parser_(1) { batch_.hashes = false; }

    // Takes the next bytes of a column file; with `end`, the file's last.
    void feed(std::string_view bytes, bool end);

    // One sequence of rows: the cells of a row, end_row, …, end_rows. The cells' text lives until end_rows.
    void begin_rows();
    void add_cell(std::string_view text) { cells_.push_back(text); }
    void end_row();
    void end_rows();

    // One sequence of items: the attributes of an item, end_item, …, end_items.
    void begin_items();
    void expect(size_t more) { batch_.expect(more); }
    // Adds an attribute; the text of `name` lives until end_items.
    void add(std::string_view name, double value = 1.0) { batch_.add(name, value); }
    // The entries of a feature dict, by sklearn-crfsuite's rules: {"w": "the"} is the attribute "w:the"; a number is
    // the value of the attribute "w"; nested dicts give "outer:inner:…", where `outer` is "outer:" or empty.
    void add_text(std::string_view outer, std::string_view key, std::string_view text) {
        batch_.add_text(outer, key, text);
    }
    void add_number(std::string_view outer, std::string_view key, double number);
    // "outer:key:", which lives until end_items.
    std::string_view nested(std::string_view outer, std::string_view key) {
        return batch_.made.join({outer, key, ":"});
    }
    // Holds texts until end_items.
    Arena& made() { return batch_.made; }
    void end_item();
    // Gives out the attributes of the item under way, visit(name, value), in place of end_item.
    template <class Visit>
    void hand_out(const Visit& visit) {
        for (size_t i = 0; i < batch_.names.size(); ++i)
            visit(batch_.names[i].text, batch_.values.empty() ? 1.0 : batch_.values[i]);
        batch_.clear(attributes_.key());
        ++position_;
    }
    void end_items();

    // Adds the sequences of items 0 … n on several threads. read(i, batch) puts sequence i into a batch and returns
    // true, or false if it cannot; it is called by several threads at once. Nobody reads while pause() runs, which is
    // called every now and then. Returns how many sequences were added: all before the first that could not be read.
    size_t add_in_parallel(size_t n, int n_threads, const std::function<bool(size_t, NameBatch&)>& read,
                           const std::function<void()>& pause);

    // "sequence 3, position 2: ", of the row or item under way.
    std::string where() const { return where(position_); }

    Encoded take() {
        n_sequences_ = 0;
        return std::exchange(data_, {});
    }
    Encoded& data() { return data_; }
    // Forgets what was encoded.
    void clear() {
        n_sequences_ = 0;
        data_.clear();
    }
    KeptLines& kept_lines() { return kept_; }
    KeptLines take_lines() { return std::exchange(kept_, {}); }
    bool labelled() const { return options_.labelled; }
    bool loose() const { return options_.loose; }
    // Whether tokens are rows of columns (or plain words), not items.
    bool takes_rows() const { return template_ || text_; }
    bool has_pairs() const { return options_.by_prefix || (template_ && !template_->rules().bigrams.empty()); }
    int64_t n_columns() const { return parser_.n_columns(); }
    int64_t line() const { return parser_.line(); }
    StringIndex labels() const { return labels_.view(); }
    const Vocabulary& attributes() const { return attributes_; }
    const Vocabulary& pair_attributes() const { return pair_attributes_; }

private:
    std::string where(size_t position) const;
    // What is wrong with n feature columns, or "" if the rules need no more.
    std::string missing_column(int64_t n) const;
    void encode(const Columns& x);
    void take_columns(const Columns& x, const std::vector<std::string_view>& lines, int64_t first_line);
    // Takes the names of label pairs out of the item under way.
    void take_pairs();
    // Appends what a batch holds to the data: after looking it up, or with the ids of its names.
    void look_up(const NameBatch& batch);
    void append(const NameBatch& batch, const std::vector<int32_t>& ids);
    // Calls find(); errors name the sequence and the item of the name at `place()` of the batch.
    template <class Find, class Place>
    void with_places(const NameBatch& batch, const Find& find, const Place& place) const;

    std::optional<TemplateExpansion> template_;
    std::optional<TextExpansion> text_;
    Vocabulary attributes_, pair_attributes_;
    Interner labels_;
    EncoderOptions options_;
    ColumnParser parser_;
    Encoded data_;
    KeptLines kept_;
    size_t position_ = 0;
    // The rows under way.
    std::vector<std::string_view> cells_;
    size_t row_begin_ = 0, n_columns_ = 0;
    // The items under way.
    NameBatch batch_;
    size_t n_sequences_ = 0;  // that are in data_, or will be
    std::vector<int32_t> ids_;
};

}  // namespace crfkit
