#include "text_expansion.hpp"

#include <algorithm>
#include <utility>

namespace crfkit {

namespace {

constexpr std::string_view kBefore = "<s>", kAfter = "</s>";
constexpr uint64_t kMostTexts = uint64_t{1} << 18;  // more words than this, and all are forgotten
constexpr size_t kSlots = size_t{1} << 15;

// Whether a rule of one word has an attribute outside the sequence.
bool at_boundaries(const TextPiece& piece) {
    switch (piece.atom) {
        case TextAtom::word:
        case TextAtom::lower:
        case TextAtom::shape:
        case TextAtom::script:
        case TextAtom::column: return piece.first == piece.last;
        default: return false;
    }
}

}  // namespace

TextExpansion::TextExpansion(const TextRules& rules) : rules_(rules) {
    sources_.emplace_back();
    for (const auto& rule : rules_.rules) {
        const TextPiece& piece = rule.pieces[0];
        if (piece.atom == TextAtom::gazetteer) {
            gazetteer_rules_.push_back(&rule);
        } else if (piece.atom == TextAtom::embedding) {
            embedding_rules_.push_back(&rule);
        } else if (rule.pieces.size() == 1) {
            auto& groups = sources_[source_of(piece.source())].groups;
            const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
                return group.first == piece.first && group.last == piece.last;
            });
            if (same == groups.end())
                groups.push_back({piece.first, piece.last, {&rule}});
            else
                same->rules.push_back(&rule);
        } else {
            Joined joined{&rule, {}};
            for (const auto& part : rule.pieces) {
                const size_t place = source_of(part.source());
                auto& values = sources_[place].values;
                const auto same = std::find_if(values.begin(), values.end(),
                                               [&](const TextPiece& value) { return value.same_value(part); });
                joined.places.emplace_back(place, static_cast<size_t>(same - values.begin()));
                if (same == values.end()) values.push_back(part);
            }
            joined_.push_back(std::move(joined));
        }
    }
    if (!joined_.empty()) cache_.resize(kSlots);
    found_.resize(rules_.gazetteers.size());
}

size_t TextExpansion::source_of(int64_t column) {
    for (size_t s = 0; s < sources_.size(); ++s)
        if (sources_[s].column == column) return s;
    sources_.emplace_back().column = column;
    return sources_.size() - 1;
}

void TextExpansion::prepare(Vocabulary& attributes) {
    for (auto& source : sources_)
        for (const int boundary : {-1, 1}) add_entry(source, boundary < 0 ? kBefore : kAfter, boundary, attributes);
    if (prepared_) return;
    prepared_ = true;
    const auto list = [&](const TextRule& rule) -> Listed {
        names_.assign(texts_.begin(), texts_.end());
        found_ids_.clear();
        attributes.ids(names_, found_ids_);
        return {rule.pieces[0].first, rule.pieces[0].last, found_ids_};
    };
    for (const TextRule* rule : gazetteer_rules_) {
        texts_.clear();
        for (const auto& gazetteer : rules_.gazetteers)
            for (const char* place : {":B", ":I"}) texts_.push_back(rule->name + "=" + gazetteer.name() + place);
        phrases_.push_back(list(*rule));
    }
    for (const TextRule* rule : embedding_rules_) {
        texts_.clear();
        for (int64_t k = 0; k < rules_.embeddings.dimensions; ++k)
            texts_.push_back(rule->name + "=" + std::to_string(k));
        vectors_.push_back(list(*rule));
    }
}

void TextExpansion::forget(Vocabulary& attributes) {
    for (auto& source : sources_) {
        source.texts = Interner();
        source.ends.clear();
        source.ids.clear();
        source.value_ids.clear();
    }
    values_ = Interner();
    std::fill(cache_.begin(), cache_.end(), Slot{});
    gazetteer_words_.clear();
    embedding_rows_.clear();
    prepare(attributes);
}

void TextExpansion::add_entry(Source& source, std::string_view text, int boundary, Vocabulary& attributes) {
    text_.clear();
    ends_.clear();
    std::vector<size_t> group_ends;
    for (const auto& group : source.groups) {
        for (const TextRule* rule : group.rules) {
            if (boundary != 0 && !at_boundaries(rule->pieces[0])) continue;
            const size_t begin = text_.size();
            text_.append(rule->name).push_back('=');
            if (boundary != 0)
                text_ += text;
            else if (!append_value(rule->pieces[0], text, text_)) {
                text_.resize(begin);
                continue;
            }
            ends_.push_back(text_.size());
        }
        group_ends.push_back(ends_.size());
    }
    look_up_texts(attributes);
    size_t k = 0;
    for (const size_t end : group_ends) {
        for (; k < end; ++k)
            if (found_ids_[k] >= 0) source.ids.push_back(found_ids_[k]);
        if (source.ids.size() > UINT32_MAX) throw TooManyStrings("a sequence has too many different words");
        source.ends.push_back(static_cast<uint32_t>(source.ids.size()));
    }
    std::string value;
    for (const auto& piece : source.values) {
        value.clear();
        const bool has = boundary != 0 || append_value(piece, text, value);
        source.value_ids.push_back(has ? values_.intern(boundary != 0 ? text : std::string_view(value)) : -1);
    }
    if (source.column != 0) return;
    if (!gazetteer_rules_.empty())
        for (const auto& gazetteer : rules_.gazetteers)
            gazetteer_words_.push_back(boundary != 0 ? -1 : gazetteer.word(text));
    if (!embedding_rules_.empty()) embedding_rows_.push_back(boundary != 0 ? -1 : rules_.embeddings.row(text));
}

void TextExpansion::find_entries(Source& source, const Columns& x, Vocabulary& attributes) {
    source.at.resize(static_cast<size_t>(x.length));
    for (int64_t t = 0; t < x.length; ++t) {
        const std::string_view text = x.cells[t * x.n_columns + source.column];
        const uint64_t known = source.texts.size();
        const int32_t id = source.texts.intern(text);
        if (static_cast<uint64_t>(id) == known) add_entry(source, text, 0, attributes);
        source.at[static_cast<size_t>(t)] = id + 2;
    }
}

void TextExpansion::add_single(int64_t t, int64_t length, std::vector<int32_t>& out) const {
    for (const auto& source : sources_) {
        const size_t n = source.groups.size();
        for (size_t g = 0; g < n; ++g) {
            const Group& group = source.groups[g];
            for (int64_t at = t + group.first; at <= t + group.last; ++at) {
                const size_t place = source.entry(at, length) * n + g;
                const uint32_t begin = place == 0 ? 0 : source.ends[place - 1];
                for (uint32_t k = begin; k < source.ends[place]; ++k) out.push_back(source.ids[k]);
            }
        }
    }
}

void TextExpansion::find_joined(int64_t length, Vocabulary& attributes) {
    const size_t n = joined_.size();
    joined_ids_.assign(static_cast<size_t>(length) * n, -1);
    missing_.clear();
    for (size_t r = 0; r < n; ++r) {
        const Joined& joined = joined_[r];
        for (int64_t t = 0; t < length; ++t) {
            Slot key{static_cast<int32_t>(r), -1, {}};
            uint64_t hash = r + 1;
            bool has = true;
            for (size_t k = 0; k < joined.places.size() && has; ++k) {
                const auto& [place, value] = joined.places[k];
                const Source& source = sources_[place];
                const size_t entry = source.entry(t + joined.rule->pieces[k].first, length);
                key.values[k] = source.value_ids[entry * source.values.size() + value];
                has = key.values[k] >= 0;
                hash = fold_multiply(hash ^ static_cast<uint64_t>(key.values[k]), 0x9e3779b97f4a7c15ull + k);
            }
            if (!has) continue;
            const size_t place = static_cast<size_t>(t) * n + r, slot = hash & (kSlots - 1);
            const Slot& known = cache_[slot];
            if (known.rule == key.rule && known.values == key.values)
                joined_ids_[place] = known.id;
            else
                missing_.push_back({place, key, slot});
        }
    }
    if (!missing_.empty()) look_up_missing(attributes);
}

void TextExpansion::look_up_texts(Vocabulary& attributes) {
    names_.clear();
    size_t begin = 0;
    for (const size_t end : ends_) {
        names_.emplace_back(text_.data() + begin, end - begin);
        begin = end;
    }
    found_ids_.clear();
    attributes.ids(names_, found_ids_);
}

void TextExpansion::look_up_missing(Vocabulary& attributes) {
    const StringIndex values = values_.view();
    text_.clear();
    ends_.clear();
    for (const auto& missing : missing_) {
        const Joined& joined = joined_[static_cast<size_t>(missing.key.rule)];
        text_ += joined.rule->name;
        for (size_t k = 0; k < joined.places.size(); ++k) {
            text_ += k == 0 ? '=' : '|';
            text_ += values.at(static_cast<uint64_t>(missing.key.values[k]));
        }
        ends_.push_back(text_.size());
    }
    look_up_texts(attributes);
    for (size_t k = 0; k < missing_.size(); ++k) {
        Missing& missing = missing_[k];
        joined_ids_[missing.place] = missing.key.id = found_ids_[k];
        cache_[missing.slot] = missing.key;
    }
}

void TextExpansion::find_phrases(int64_t length) {
    const size_t n = rules_.gazetteers.size();
    for (size_t g = 0; g < n; ++g) {
        words_.resize(static_cast<size_t>(length));
        for (size_t t = 0; t < words_.size(); ++t)
            words_[t] = gazetteer_words_[static_cast<size_t>(sources_[0].at[t]) * n + g];
        rules_.gazetteers[g].find(words_, found_[g]);
    }
}

void TextExpansion::add_phrases(int64_t t, int64_t length, std::vector<int32_t>& out) const {
    for (const auto& rule : phrases_)
        for (int64_t at = std::max<int64_t>(t + rule.first, 0); at <= std::min(t + rule.last, length - 1); ++at)
            for (size_t g = 0; g < found_.size(); ++g) {
                const uint8_t found = found_[g][static_cast<size_t>(at)];
                if (found == 0) continue;
                if (const int32_t id = rule.ids[2 * g + found - 1]; id >= 0) out.push_back(id);
            }
}

void TextExpansion::add_vectors(int64_t t, int64_t length, Encoded& out) const {
    if (vectors_.empty()) return;
    out.values.resize(out.attributes.size(), 1.0);
    const auto dimensions = static_cast<size_t>(rules_.embeddings.dimensions);
    for (const auto& rule : vectors_)
        for (int64_t at = std::max<int64_t>(t + rule.first, 0); at <= std::min(t + rule.last, length - 1); ++at) {
            const int32_t row = embedding_rows_[static_cast<size_t>(sources_[0].at[static_cast<size_t>(at)])];
            if (row < 0) continue;
            const float* vector = rules_.embeddings.vectors + static_cast<size_t>(row) * dimensions;
            for (size_t k = 0; k < dimensions; ++k) {
                if (rule.ids[k] < 0 || vector[k] == 0.0f) continue;
                out.attributes.push_back(rule.ids[k]);
                out.values.push_back(static_cast<double>(vector[k]));
            }
        }
}

void TextExpansion::encode(const Columns& x, Vocabulary& attributes, Encoded& out) {
    if (!prepared_) prepare(attributes);
    if (values_.size() > kMostTexts || std::any_of(sources_.begin(), sources_.end(), [](const Source& source) {
            return source.texts.size() > kMostTexts;
        }))
        forget(attributes);
    for (auto& source : sources_) find_entries(source, x, attributes);
    if (!phrases_.empty()) find_phrases(x.length);
    const size_t n = joined_.size();
    find_joined(x.length, attributes);
    for (int64_t t = 0; t < x.length; ++t) {
        add_single(t, x.length, out.attributes);
        for (size_t r = 0; r < n; ++r)
            if (const int32_t id = joined_ids_[static_cast<size_t>(t) * n + r]; id >= 0) out.attributes.push_back(id);
        add_phrases(t, x.length, out.attributes);
        add_vectors(t, x.length, out);
        out.offsets.push_back(static_cast<int64_t>(out.attributes.size()));
    }
    out.end_sequence();
}

}  // namespace crfkit
