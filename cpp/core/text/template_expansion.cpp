#include "template_expansion.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace crfkit {

namespace {

constexpr int32_t kUnknown = -2;
constexpr size_t kSlots = size_t{1} << 17;
constexpr uint64_t kMostCells = uint64_t{1} << 20;  // their ids have 20 bits
constexpr size_t kMostBytes = size_t{1} << 26;      // of their texts
constexpr size_t kAtOnce = size_t{1} << 16;         // bytes of names that are looked up together
constexpr int64_t kFarthest = 64;                   // rows; lines that look farther are not remembered
constexpr int64_t kPositions = 16;                  // whose slots are asked for before they are read

size_t slot_of(uint64_t cells, size_t line) {
    return fold_multiply(cells ^ 0x9e3779b97f4a7c15ull, 0xd1b54a32d192ed03ull + 2 * line) & (kSlots - 1);
}

}  // namespace

TemplateExpansion::TemplateExpansion(Template rules) : rules_(std::move(rules)) {
    const auto place_of = [&](int64_t column) {
        const auto found = std::find(used_.begin(), used_.end(), column);
        if (found != used_.end()) return static_cast<size_t>(found - used_.begin());
        used_.push_back(column);
        return used_.size() - 1;
    };
    const auto take = [&](const std::vector<TemplateLine>& lines, Part& part) {
        for (const auto& source : lines) {
            Line& line = part.lines.emplace_back();
            line.source = &source;
            std::vector<const TemplatePiece*> cells;
            for (const auto& piece : source.pieces)
                if (piece.has_macro) cells.push_back(&piece);
            line.remembered = source.syntax == TemplateSyntax::crfpp && cells.size() <= kMost &&
                              std::all_of(cells.begin(), cells.end(),
                                          [](const auto* cell) { return std::abs(cell->row) <= kFarthest; });
            if (!line.remembered) continue;
            for (const auto* cell : cells) {
                reach_ = std::max(reach_, std::abs(cell->row));
                line.cells.push_back({cell->row, place_of(cell->column)});
            }
        }
    };
    take(rules_.unigrams, unigrams_);
    take(rules_.bigrams, bigrams_);
    forget();
}

void TemplateExpansion::forget() {
    cells_ = Interner();
    before_.clear();
    after_.clear();
    for (int64_t k = 1; k <= reach_; ++k) {  // what `expand` puts there
        before_.push_back(cells_.intern("_B-" + std::to_string(k)));
        after_.push_back(cells_.intern("_B+" + std::to_string(k)));
    }
    for (Part* part : {&unigrams_, &bigrams_})
        for (Line& line : part->lines) line.ids.clear();
    std::fill(slots_.begin(), slots_.end(), Slot{});
}

void TemplateExpansion::number_cells(const Columns& x) {
    if (cells_.size() + static_cast<uint64_t>(x.length * rules_.n_columns) >= kMostCells ||
        cells_.bytes().size() > kMostBytes)
        forget();
    const auto stride = static_cast<size_t>(x.length + 2 * reach_);
    cell_ids_.resize(used_.size() * stride);
    int32_t* ids = cell_ids_.data();
    for (const int64_t column : used_) {
        ids = std::copy(before_.rbegin(), before_.rend(), ids);
        for (int64_t t = 0; t < x.length; ++t) *ids++ = cells_.intern(x.cells[t * x.n_columns + column]);
        ids = std::copy(after_.begin(), after_.end(), ids);
    }
}

const int32_t* TemplateExpansion::ids_of(const Cell& cell, int64_t length) const {
    return cell_ids_.data() + static_cast<int64_t>(cell.column) * (length + 2 * reach_) + reach_ + cell.row;
}

void TemplateExpansion::number_keys(const Part& part, int64_t length, int64_t begin, int64_t end, size_t number) {
    const size_t n = part.lines.size();
    keys_.assign(static_cast<size_t>(kPositions) * n, 0);
    for (size_t k = 0; k < n; ++k) {
        const Line& line = part.lines[k];
        if (!line.remembered) continue;
        for (const Cell& cell : line.cells) {
            const int32_t* ids = ids_of(cell, length);
            uint64_t* key = keys_.data() + k;
            for (int64_t t = begin; t < end; ++t, key += n) *key = *key << 20 | static_cast<uint64_t>(ids[t]);
        }
        if (line.cells.size() == 1) continue;
        const uint64_t* key = keys_.data() + k;
        for (int64_t t = begin; t < end; ++t, key += n) __builtin_prefetch(&slots_[slot_of(*key, number + k)]);
    }
}

const int32_t* TemplateExpansion::recall(const Line& line, size_t number, uint64_t cells) const {
    if (line.cells.size() == 1)
        return cells < line.ids.size() && line.ids[cells] != kUnknown ? &line.ids[cells] : nullptr;
    const Slot& slot = slots_[slot_of(cells, number)];
    return slot.cells == cells && slot.line == static_cast<int32_t>(number) ? &slot.id : nullptr;
}

void TemplateExpansion::remember(Line& line, size_t number, uint64_t cells, int32_t id) {
    if (line.cells.size() == 1) {
        if (cells >= line.ids.size()) line.ids.resize(std::max<size_t>(cells + 1, cells_.size()), kUnknown);
        line.ids[cells] = id;
    } else {
        slots_[slot_of(cells, number)] = {cells, static_cast<int32_t>(number), id};
    }
}

void TemplateExpansion::expand_part(Part& part, const Columns& x, int64_t first, size_t number,
                                    Vocabulary& vocabulary) {
    const size_t n = part.lines.size();
    part.found.assign(static_cast<size_t>(x.length) * n, -1);
    for (int64_t t = first; t < x.length; ++t) {
        const int64_t ahead = (t - first) % kPositions;
        if (ahead == 0) number_keys(part, x.length, t, std::min(t + kPositions, x.length), number);
        for (size_t k = 0; k < n; ++k) {
            const Line& line = part.lines[k];
            const size_t place = static_cast<size_t>(t) * n + k;
            const uint64_t cells = keys_[static_cast<size_t>(ahead) * n + k];
            if (line.remembered) {
                if (const int32_t* id = recall(line, number + k, cells)) {
                    part.found[place] = *id;
                    continue;
                }
            }
            missing_.push_back({place, k, cells});
            expand(*line.source, x, t, text_);
            ends_.push_back(text_.size());
        }
        if (text_.size() > kAtOnce) look_up_missing(part, number, vocabulary);
    }
    look_up_missing(part, number, vocabulary);
}

void TemplateExpansion::look_up_missing(Part& part, size_t number, Vocabulary& vocabulary) {
    names_.clear();
    size_t begin = 0;
    for (const size_t end : ends_) {
        names_.emplace_back(text_.data() + begin, end - begin);
        begin = end;
    }
    ids_.clear();
    vocabulary.ids(names_, ids_);
    for (size_t k = 0; k < missing_.size(); ++k) {
        const Missing& missing = missing_[k];
        part.found[missing.place] = ids_[k];
        Line& line = part.lines[missing.line];
        if (line.remembered) remember(line, number + missing.line, missing.cells, ids_[k]);
    }
    start_anew();
}

void TemplateExpansion::start_anew() {
    missing_.clear();
    ends_.clear();
    if (text_.size() > 2 * kAtOnce) text_ = std::string();
    text_.clear();
}

void TemplateExpansion::encode(const Columns& x, Vocabulary& attributes, Vocabulary& pair_attributes, Encoded& out) {
    if (slots_.empty()) slots_.resize(kSlots);
    start_anew();  // a sequence that was refused may have left something behind
    number_cells(x);
    const auto append = [&](const Part& part, std::vector<int32_t>& ids, std::vector<int64_t>& ends) {
        const size_t n = part.lines.size();
        size_t at = ids.size();
        ids.resize(at + part.found.size());
        const int32_t* found = part.found.data();
        for (int64_t t = 0; t < x.length; ++t) {
            for (size_t k = 0; k < n; ++k) {
                ids[at] = *found++;
                at += ids[at] >= 0;
            }
            ends.push_back(static_cast<int64_t>(at));
        }
        ids.resize(at);
    };
    expand_part(unigrams_, x, 0, 0, attributes);
    // No label pair ends at the first position.
    expand_part(bigrams_, x, 1, unigrams_.lines.size(), pair_attributes);
    append(unigrams_, out.attributes, out.offsets);
    append(bigrams_, out.pair_attributes, out.pair_offsets);
    out.end_sequence();
}

}  // namespace crfkit
