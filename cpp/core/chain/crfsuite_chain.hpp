// A CRFsuite model file as a chain. An attribute is taken over when it first occurs, so that opening a file takes no
// longer than reading it, and a few short texts touch little of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../text/crfsuite_file.hpp"
#include "../text/interner.hpp"
#include "../text/sequences.hpp"
#include "weights.hpp"

namespace crfkit {

class CrfsuiteChain : public Lookup {
public:
    // The caller keeps the file's bytes. Throws BadModel.
    CrfsuiteChain(std::string_view file, const ChainKernels& kernels);

    // Takes the attribute over. Throws BadModel where the file is damaged.
    int32_t find(std::string_view attribute) override;
    const std::vector<std::string>& labels() const { return labels_; }
    // Valid until the next find.
    FieldView field() const;
    ChainWeights weights() const;

private:
    FieldView transition_field() const;

    crfsuite::File file_;
    std::vector<std::string> labels_;
    std::vector<int32_t> transition_codes_;
    std::vector<double> transition_weights_;
    std::unique_ptr<PreparedWeights<double>> transitions_;
    Interner taken_;  // the attributes that have occurred; their ids here
    std::vector<int64_t> state_offsets_{0};
    std::vector<int32_t> state_labels_;
    std::vector<double> state_weights_;
};

}  // namespace crfkit
