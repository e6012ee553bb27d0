#include "crfsuite_file.hpp"

#include <utility>

namespace crfkit::crfsuite {

Bytes Bytes::chunk(size_t offset, const char* name, size_t least) const {
    const std::string quoted = "its chunk " + std::string(name);
    if (offset < kHeader || offset > size() || size() - offset < least)
        refuse(quoted + " lies outside the file: the file is truncated or damaged");
    if (text(offset, 4) != name) refuse("there is no chunk " + std::string(name) + " where its header points");
    const size_t length = number(offset + 4);
    if (length < least || length > size() - offset)
        refuse(quoted + " ends outside the file: the file is truncated or damaged");
    return Bytes(text(offset, length));
}

Database::Database(const Bytes& file, size_t offset, const char* what)
    : bytes_(file.chunk(offset, "CQDB", kDatabaseHeader + 8 * kTables)) {
    if (bytes_.number(12) != kByteOrder) refuse("its numbers are not little-endian");
    size_ = bytes_.number(16);
    records_ = bytes_.number(20);
    bytes_.check(records_, size_, 4, what);
}

std::string_view Database::read_record(size_t record, size_t id) const {
    if (record < kDatabaseHeader + 8 * kTables || record > bytes_.size() || bytes_.size() - record < 8)
        refuse("the record of string " + std::to_string(id) + " lies outside its database");
    const size_t length = bytes_.number(record + 4);  // with the zero at the end
    if (bytes_.number(record) != id || length < 1 || length > bytes_.size() - record - 8)
        refuse("the record of string " + std::to_string(id) + " is damaged");
    const std::string_view text = bytes_.text(record + 8, length);
    if (text.back() != '\0') refuse("string " + std::to_string(id) + " does not end where its record does");
    return text.substr(0, length - 1);
}

std::string_view Database::at(size_t id) const { return read_record(bytes_.number(records_ + 4 * id), id); }

int32_t Database::find(std::string_view text) const {
    const uint32_t hash = lookup3_with_zero(text);
    const size_t table = bytes_.number(kDatabaseHeader + 8 * (hash % kTables));
    const size_t n = bytes_.number(kDatabaseHeader + 8 * (hash % kTables) + 4);
    bytes_.check(table, n, 8, "hash buckets");
    for (size_t step = 0, b = n > 0 ? (hash >> 8) % n : 0; step < n; ++step, b = b + 1 < n ? b + 1 : 0) {
        const size_t record = bytes_.number(table + 8 * b + 4);
        if (record == 0) return -1;
        if (step >= kLongestChain) refuse("too many of the strings of a hash table collide");
        if (bytes_.number(table + 8 * b) != hash) continue;
        bytes_.check(record, 1, 8, "records");
        const size_t id = bytes_.number(record);
        if (id >= size_) refuse("a hash table leads to string " + std::to_string(id) + ", which does not exist");
        if (read_record(record, id) == text) return static_cast<int32_t>(id);
    }
    return -1;
}

void Database::check_tables() const {
    size_t filled = 0;
    for (size_t k = 0; k < kTables; ++k) {
        const size_t table = bytes_.number(kDatabaseHeader + 8 * k), n = bytes_.number(kDatabaseHeader + 8 * k + 4);
        bytes_.check(table, n, 8, "hash buckets");
        for (size_t b = 0; b < n; ++b) {
            const size_t record = bytes_.number(table + 8 * b + 4);
            if (record == 0) continue;
            ++filled;
            if (record >= bytes_.size() || bytes_.number(table + 8 * b) % kTables != k)
                refuse("hash table " + std::to_string(k) + " is damaged");
        }
    }
    if (filled != size_)
        refuse("its hash tables hold " + std::to_string(filled) + " strings, but there are " + std::to_string(size_));
}

Features::Features(const Bytes& file, size_t offset) : bytes_(file.chunk(offset, "FEAT", 12)), size_(bytes_.number(8)) {
    bytes_.check(12, size_, kFeature, "features");
}

namespace {

std::string printable(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c < ' ' || c > '~') c = '?';
    return out;
}

// The bytes, if they begin as a model does that we know.
Bytes checked_header(std::string_view bytes) {
    const Bytes whole(bytes);
    if (bytes.size() < kHeader || bytes.substr(0, 4) != "lCRF") refuse("its header is missing or incomplete");
    if (bytes.substr(8, 4) != "FOMC")
        refuse("it is a CRFsuite model of type '" + printable(bytes.substr(8, 4)) +
               "'; only first-order models ('FOMC') are known");
    if (whole.number(12) != kVersion)
        refuse("it is a CRFsuite model of version " + std::to_string(whole.number(12)) + "; only version 100 is known");
    if (whole.number(4) != bytes.size())
        refuse("its header says that it has " + std::to_string(whole.number(4)) + " bytes, but there are " +
               std::to_string(bytes.size()));
    return whole;
}

Bytes lists_of(const Bytes& file, size_t offset, const char* name, size_t n) {
    const Bytes chunk = file.chunk(offset, name, 12);
    if (chunk.number(8) < n) refuse("its chunk " + std::string(name) + " has too few entries");
    chunk.check(12, chunk.number(8), 4, "references");
    return chunk;
}

}  // namespace

File::File(std::string_view text)
    : bytes(checked_header(text)),
      features(bytes, bytes.number(28)),
      labels(bytes, bytes.number(32), "labels"),
      attributes(bytes, bytes.number(36), "attributes"),
      label_lists_(lists_of(bytes, bytes.number(40), "LFRF", labels.size())),
      attribute_lists_(lists_of(bytes, bytes.number(44), "AFRF", attributes.size())) {
    if (labels.size() == 0) refuse("it has no labels");
    const size_t n_labels = labels.size();
    if (n_labels > kMostLabels) refuse("it has more than " + std::to_string(kMostLabels) + " labels");
    if (n_labels > kAlwaysLabels && n_labels * n_labels > kPairsPerByte * bytes.size())
        refuse("it has " + std::to_string(n_labels) + " labels, too many for a file of its size");
    for (const auto& [named, n] : {std::pair{bytes.number(16), features.size()},
                                   {bytes.number(20), labels.size()},
                                   {bytes.number(24), attributes.size()}})
        if (named != 0 && named != n) refuse("the counts of its header contradict its chunks");
}

std::pair<size_t, size_t> File::list(Type type, size_t source) const {
    const size_t at = (type == kState ? attribute_lists_ : label_lists_).number(12 + 4 * source);  // in the file
    if (at == 0) return {0, 0};
    bytes.check(at, 1, 4, "lists of features");
    const size_t count = bytes.number(at);
    bytes.check(at + 4, count, 4, "features in a list");
    return {at + 4, count};
}

}  // namespace crfkit::crfsuite
