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

size_t slot_of(uint64_t cells, size_t line) {
    return fold_multiply(cells ^ 0x9e3779b97f4a7c15ull, 0xd1b54a32d192ed03ull + 2 * line) & (kSlots - 1);
}

}  // namespace

TemplateExpansion::TemplateExpansion(Template rules) : rules_(std::move(rules)) {
    used_.assign(static_cast<size_t>(rules_.n_columns), 0);
    const auto take = [&](const std::vector<TemplateLine>& lines, Part& part) {
        for (const auto& source : lines) {
            Line& line = part.lines.emplace_back();
            line.source = &source;
            for (const auto& piece : source.pieces)
                if (piece.has_macro) line.cells.push_back(&piece);
            line.remembered = source.syntax == TemplateSyntax::crfpp && line.cells.size() <= kMost &&
                              std::all_of(line.cells.begin(), line.cells.end(),
                                          [](const auto* cell) { return std::abs(cell->row) <= kFarthest; });
            if (!line.remembered) continue;
            for (const auto* cell : line.cells) {
                reach_ = std::max(reach_, std::abs(cell->row));
                used_[static_cast<size_t>(cell->column)] = 1;
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
    const int64_t n = rules_.n_columns;
    cell_ids_.resize(static_cast<size_t>(x.length * n));
    for (int64_t t = 0; t < x.length; ++t)
        for (int64_t c = 0; c < n; ++c)
            if (used_[static_cast<size_t>(c)])
                cell_ids_[static_cast<size_t>(t * n + c)] = cells_.intern(x.cells[t * x.n_columns + c]);
}

int32_t TemplateExpansion::cell_id(const TemplatePiece& cell, const Columns& x, int64_t t) const {
    const int64_t at = t + cell.row;
    if (at < 0) return before_[static_cast<size_t>(-at - 1)];
    if (at >= x.length) return after_[static_cast<size_t>(at - x.length)];
    return cell_ids_[static_cast<size_t>(at * rules_.n_columns + cell.column)];
}

uint64_t TemplateExpansion::key_of(const Line& line, const Columns& x, int64_t t) const {
    uint64_t key = 0;
    for (const auto* cell : line.cells) key = key << 20 | static_cast<uint64_t>(cell_id(*cell, x, t));
    return key;
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
        for (size_t k = 0; k < n; ++k) {
            const Line& line = part.lines[k];
            const size_t place = static_cast<size_t>(t) * n + k;
            uint64_t cells = 0;
            if (line.remembered) {
                cells = key_of(line, x, t);
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
    const auto append = [&](const Part& part, int64_t t, std::vector<int32_t>& ids, std::vector<int64_t>& ends) {
        const size_t n = part.lines.size();
        for (size_t k = static_cast<size_t>(t) * n; k < static_cast<size_t>(t + 1) * n; ++k)
            if (part.found[k] >= 0) ids.push_back(part.found[k]);
        ends.push_back(static_cast<int64_t>(ids.size()));
    };
    expand_part(unigrams_, x, 0, 0, attributes);
    // No label pair ends at the first position.
    expand_part(bigrams_, x, 1, unigrams_.lines.size(), pair_attributes);
    for (int64_t t = 0; t < x.length; ++t) {
        append(unigrams_, t, out.attributes, out.offsets);
        append(bigrams_, t, out.pair_attributes, out.pair_offsets);
    }
    out.end_sequence();
}

}  // namespace crfkit
