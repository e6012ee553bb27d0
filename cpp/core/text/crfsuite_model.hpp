// Model files of CRFsuite: "lCRF", type "FOMC", version 100, all numbers little-endian.
//
//   header       magic, file size, type, version, numbers of features (0 in most files), labels and attributes, offsets
//   of the five chunks below FEAT         (type, source, target, weight) of each feature: type 0 is (attribute, label),
//   1 is (label, label) CQDB, twice  the labels, then the attributes: 256 hash tables over (id, size, string) records,
//   and the record of
//                each id
//   LFRF, AFRF   the features of each label as a source, and of each attribute
//
// Everything is checked: offsets and counts against the file, references against each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "crfsuite_file.hpp"
#include "interner.hpp"

namespace crfkit {

struct CrfsuiteModel {
    std::vector<std::string> labels;
    StringArrays attributes;
    // The features as a ChainField has them: labels ascend within each attribute.
    std::vector<int64_t> state_offsets{0};
    std::vector<int32_t> state_labels;
    std::vector<int32_t> transition_codes;  // source * number of labels + target, ascending
    std::vector<double> weights;            // of the states, then of the transitions
};

CrfsuiteModel read_crfsuite(std::string_view file);

// What a model file is written from; as above, with the attributes where they lie.
struct CrfsuiteParts {
    const std::vector<std::string>& labels;
    StringIndex attributes;
    const int64_t* state_offsets;
    const int32_t* state_labels;
    const int32_t* transition_codes;
    int64_t n_transition;
    const double* weights;
};

// The file. Attributes without features are left out, as CRFsuite does. Throws BadModel if it would have 4 GB or more.
std::string write_crfsuite(const CrfsuiteParts& model);

}  // namespace crfkit
