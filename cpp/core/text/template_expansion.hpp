// Rows of columns to attributes, by a template. Most cells and most pairs of cells occur again and again: what a line
// of the template makes of the same cells is looked up once and then remembered.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "interner.hpp"
#include "sequences.hpp"
#include "template.hpp"

namespace crfkit {

class TemplateExpansion {
public:
    explicit TemplateExpansion(Template rules);

    const Template& rules() const { return rules_; }
    // Appends one sequence.
    void encode(const Columns& x, Vocabulary& attributes, Vocabulary& pair_attributes, Encoded& out);

private:
    static constexpr size_t kMost = 3;  // cells of a line that is remembered
    struct Cell {
        int64_t row;
        size_t column;  // among those that are used
    };
    // A line, and the cells that it names. Lines with more cells, and Wapiti's, are expanded at every position.
    struct Line {
        const TemplateLine* source;
        bool remembered = false;
        std::vector<Cell> cells;
        std::vector<int32_t> ids;  // of a line of one cell: the attribute for each cell id, kUnknown: not looked up
    };
    struct Slot {
        uint64_t cells = 0;  // ids of the cells, 20 bits each
        int32_t line = -1, id = -1;
    };
    // The lines of one vocabulary, with the attributes of a sequence.
    struct Part {
        std::vector<Line> lines;
        std::vector<int32_t> found;  // [positions][lines] of the sequence under way
    };
    struct Missing {
        size_t place;  // in `found`
        size_t line;
        uint64_t cells;
    };

    void number_cells(const Columns& x);
    // The ids of a cell for the positions of the sequence under way.
    const int32_t* ids_of(const Cell& cell, int64_t length) const;
    // Writes the cells of the remembered lines for some positions to keys_[position][line], and asks for their slots.
    void number_keys(const Part& part, int64_t length, int64_t begin, int64_t end, size_t number);
    // Where the attribute of these cells is remembered, if it is.
    const int32_t* recall(const Line& line, size_t number, uint64_t cells) const;
    void remember(Line& line, size_t number, uint64_t cells, int32_t id);
    // Fills `found` for the positions from `first` on. `number` is that of the first line among all.
    void expand_part(Part& part, const Columns& x, int64_t first, size_t number, Vocabulary& vocabulary);
    void look_up_missing(Part& part, size_t number, Vocabulary& vocabulary);
    void start_anew();
    void forget();

    Template rules_;
    Part unigrams_, bigrams_;
    Interner cells_;
    int64_t reach_ = 0;                    // the farthest row that a remembered line names
    std::vector<int64_t> used_;            // the columns that remembered lines name
    std::vector<int32_t> cell_ids_;        // [used columns][reach + positions + reach] of the sequence under way
    std::vector<int32_t> before_, after_;  // the ids of what stands k + 1 rows before and after a sequence
    std::vector<Slot> slots_;
    std::vector<uint64_t> keys_;
    // Reused from call to call.
    std::vector<Missing> missing_;
    std::string text_;
    std::vector<size_t> ends_;
    std::vector<std::string_view> names_;
    std::vector<int32_t> ids_;
};

}  // namespace crfkit
