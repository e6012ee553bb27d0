// A CRFsuite model file where it lies: every access is checked against the file's bounds, so that a damaged or hostile
// file ends in BadModel. crfsuite_model.hpp describes the format.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lookup3.hpp"

namespace crfkit {

// A file that is not such a model; the message is a sentence.
struct BadModel : std::runtime_error {
    using std::runtime_error::runtime_error;
};

namespace crfsuite {

constexpr uint32_t kVersion = 100, kByteOrder = 0x62445371;
constexpr size_t kHeader = 48, kFeature = 20, kDatabaseHeader = 24, kTables = 256;
constexpr size_t kMostLabels = 46340;  // the code of a pair of labels is an int32
// A chain takes memory for every pair of labels: more labels than this only in a file that is not too small for them.
constexpr size_t kAlwaysLabels = 2048, kPairsPerByte = 256;
// A hash table has two buckets per string; more than this many used ones in a row are nobody's accident.
constexpr size_t kLongestChain = 1024;
enum Type : uint32_t { kState = 0, kTransition = 1 };

[[noreturn]] inline void refuse(const std::string& what) { throw BadModel(what); }

class Bytes {
public:
    explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
    size_t size() const { return bytes_.size(); }
    uint32_t number(size_t at) const {
        uint32_t x = 0;
        std::memcpy(&x, bytes_.data() + at, sizeof x);
        return x;
    }
    double real(size_t at) const {
        double x = 0.0;
        std::memcpy(&x, bytes_.data() + at, sizeof x);
        return x;
    }
    std::string_view text(size_t at, size_t size) const { return bytes_.substr(at, size); }
    // The chunk with this name at `offset`: its name, its size, more.
    Bytes chunk(size_t offset, const char* name, size_t least) const;
    // n records of `width` bytes at `at` must be inside.
    void check(size_t at, size_t n, size_t width, const char* what) const {
        if (at > size() || n > (size() - at) / width)
            refuse("it has " + std::to_string(n) + " " + what + ", which do not fit the file");
    }

private:
    std::string_view bytes_;
};

// Strings with ids 0 … size - 1.
class Database {
public:
    Database(const Bytes& file, size_t offset, const char* what);
    size_t size() const { return size_; }
    size_t bytes() const { return bytes_.size(); }
    std::string_view at(size_t id) const;
    // Calls f(string) for all of them. Records may overlap in a hostile file; all strings must fit into it
    // nevertheless.
    template <class F>
    void each(const F& f) const {
        size_t total = 0;
        for (size_t id = 0; id < size_; ++id) {
            const std::string_view text = at(id);
            total += text.size();
            if (total > bytes_.size()) refuse("its strings together are longer than their database");
            f(text);
        }
    }
    // The id of a string, or -1, by the file's own hash tables.
    int32_t find(std::string_view text) const;
    // Throws unless the hash tables hold as many strings as there are, each in its table and inside the database.
    void check_tables() const;

private:
    // The string of a record, which must be that of `id`.
    std::string_view read_record(size_t record, size_t id) const;

    Bytes bytes_;
    size_t size_ = 0, records_ = 0;
};

struct Feature {
    uint32_t type, source, target;
    double weight;
};

class Features {
public:
    Features(const Bytes& file, size_t offset);
    size_t size() const { return size_; }
    Feature operator[](size_t f) const {
        const size_t at = 12 + kFeature * f;
        return {bytes_.number(at), bytes_.number(at + 4), bytes_.number(at + 8), bytes_.real(at + 12)};
    }

private:
    Bytes bytes_;
    size_t size_;
};

class File {
public:
    // Checks the header and where the chunks are.
    explicit File(std::string_view bytes);

    Bytes bytes;
    Features features;
    Database labels, attributes;

    // Calls f(feature id, feature) for the features of an attribute or of a label; each must be of this source and
    // type.
    template <class F>
    void each_feature(Type type, size_t source, const F& f) const {
        const auto [at, count] = list(type, source);
        for (size_t k = 0; k < count; ++k) {
            const size_t id = bytes.number(at + 4 * k);
            if (id >= features.size()) refuse("a list of features names one that does not exist");
            const Feature feature = features[id];
            if (feature.type != type || feature.source != source || feature.target >= labels.size())
                refuse("a list of features names one that is not of its " + std::string(type ? "label" : "attribute"));
            f(id, feature);
        }
    }

private:
    // Where the list of a source's features begins, and how long it is.
    std::pair<size_t, size_t> list(Type type, size_t source) const;

    Bytes label_lists_, attribute_lists_;
};

}  // namespace crfsuite

}  // namespace crfkit
