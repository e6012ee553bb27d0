// Plain tokens to attributes, by the rules for text. The attributes of a word at a distance are worked out once and
// then copied; those of several words are kept in a small cache.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sequences.hpp"
#include "text_rules.hpp"

namespace crfkit {

class TextExpansion {
public:
    // The caller keeps the rules.
    explicit TextExpansion(const TextRules& rules);

    const TextRules& rules() const { return rules_; }
    // Appends one sequence.
    void encode(const Columns& x, Vocabulary& attributes, Encoded& out);

private:
    // Rules of one word at the same distances.
    struct Group {
        int64_t first, last;
        std::vector<const TextRule*> rules;
    };
    // A column of the tokens. Its entries 0 and 1 stand for what is before and after a sequence.
    struct Source {
        int64_t column = 0;
        std::vector<Group> groups;
        std::vector<TextPiece> values;  // those that rules of several words need
        Interner texts;                 // entry = id + 2
        std::vector<uint32_t> ends;     // [entries, groups]: where the group's attributes end in ids
        std::vector<int32_t> ids;
        std::vector<int32_t> value_ids;  // [entries, values], -1: none
        std::vector<int32_t> at;         // the entry of every position of the sequence under way

        size_t entry(int64_t t, int64_t length) const {
            return t < 0 ? 0 : t >= length ? 1 : static_cast<size_t>(at[static_cast<size_t>(t)]);
        }
    };
    struct Joined {  // a rule of several words
        const TextRule* rule;
        std::vector<std::pair<size_t, size_t>> places;  // source, value
    };
    struct Listed {  // a rule of gazetteers or embeddings, and its attributes
        int64_t first, last;
        std::vector<int32_t> ids;  // [gazetteers, 2] or [dimensions]
    };
    static constexpr size_t kMost = 4;
    struct Slot {
        int32_t rule = -1, id = -1;
        std::array<int32_t, kMost> values{};
    };

    size_t source_of(int64_t column);
    void prepare(Vocabulary& attributes);
    void forget(Vocabulary& attributes);
    void add_entry(Source& source, std::string_view text, int boundary, Vocabulary& attributes);
    void find_entries(Source& source, const Columns& x, Vocabulary& attributes);
    void add_single(int64_t t, int64_t length, std::vector<int32_t>& out) const;
    // The attributes of all rules of several words in the sequence: [positions, rules], -1: none.
    void find_joined(int64_t length, Vocabulary& attributes);
    void look_up_missing(Vocabulary& attributes);
    void find_phrases(int64_t length);
    void add_phrases(int64_t t, int64_t length, std::vector<int32_t>& out) const;
    void add_vectors(int64_t t, int64_t length, Encoded& out) const;

    const TextRules& rules_;
    std::vector<Source> sources_;
    std::vector<Joined> joined_;
    std::vector<const TextRule*> gazetteer_rules_, embedding_rules_;
    std::vector<Listed> phrases_, vectors_;
    Interner values_;  // texts of values
    std::vector<Slot> cache_;
    bool prepared_ = false;
    // Per word entry: the number of the word in each gazetteer; its row in the embeddings.
    std::vector<int32_t> gazetteer_words_, embedding_rows_;
    std::vector<std::vector<uint8_t>> found_;  // [gazetteers][positions] of the sequence under way
    std::vector<int32_t> words_;
    std::vector<int32_t> joined_ids_;  // [positions, rules] of the sequence under way
    struct Missing {                   // an attribute that is not in the cache
        size_t place;                  // in joined_ids_
        Slot key;
        size_t slot;
    };
    std::vector<Missing> missing_;
    // Reused from call to call.
    std::string text_;
    std::vector<size_t> ends_;
    std::vector<std::string> texts_;
    std::vector<std::string_view> names_;
    std::vector<int32_t> found_ids_;
};

}  // namespace crfkit
