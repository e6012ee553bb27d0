// Tables of buckets that attribute names are hashed into.
#include <charconv>

#include "strings.hpp"

namespace crfkit {

namespace {

std::string name_of(uint32_t bucket) {
    std::string name = "#";
    return name.append(std::to_string(bucket));
}

// The bucket that name_of names, or -1.
int64_t named_bucket(std::string_view text) {
    int64_t bucket = -1;
    if (text.size() < 2 || text[0] != '#') return -1;
    const auto [rest, error] = std::from_chars(text.data() + 1, text.data() + text.size(), bucket);
    return error == std::errc() && rest == text.data() + text.size() ? bucket : -1;
}

int32_t find(const Buckets& table, int64_t bucket) {
    return bucket < 0 || static_cast<uint64_t>(bucket) >= table.ids.size() ? -1
                                                                           : table.ids[static_cast<size_t>(bucket)];
}

BucketTable make(int64_t bits, const uint32_t* used, size_t n) {
    check_bits(bits);
    auto table = std::make_shared<Buckets>(bits);
    table->used.reserve(n);
    for (size_t k = 0; k < n; ++k) {
        if (used[k] >> bits != 0) throw nb::value_error("a bucket is outside the table");
        if (static_cast<size_t>(table->add(used[k])) != k) throw nb::value_error("a bucket occurs twice");
    }
    return {std::move(table)};
}

}  // namespace

void check_bits(int64_t bits) {
    if (bits < kFewestBits || bits > kMostBits) throw nb::value_error("hash_bits must be from 4 to 28");
}

BucketTable taken(const Buckets& table, const Array<int64_t>& order) {
    std::vector<uint32_t> used;
    used.reserve(order.size());
    for (size_t k = 0; k < order.size(); ++k) {
        if (order(k) < 0 || static_cast<size_t>(order(k)) >= table.used.size())
            throw nb::index_error("bucket id out of range");
        used.push_back(table.used[static_cast<size_t>(order(k))]);
    }
    return make(table.bits, used.data(), used.size());
}

void bind_buckets(nb::module_& m) {
    nb::class_<BucketTable>(m, "BucketTable", "Buckets of hashed names with ids 0, 1, …; their names are #0, #1, ….")
        .def(
            "__init__",
            [](BucketTable* self, int64_t bits, const Array<uint32_t>& buckets) {
                new (self) BucketTable(make(bits, buckets.data(), buckets.size()));
            },
            "bits"_a, "buckets"_a, "Checks that the buckets make a table.")
        .def("__len__", [](const BucketTable& t) { return t.buckets->used.size(); })
        .def(
            "__getitem__",
            [](const BucketTable& t, int64_t id) {
                if (id < 0 || static_cast<size_t>(id) >= t.buckets->used.size())
                    throw nb::index_error("bucket id out of range");
                return name_of(t.buckets->used[static_cast<size_t>(id)]);
            },
            "id"_a)
        .def(
            "find", [](const BucketTable& t, std::string_view text) { return find(*t.buckets, named_bucket(text)); },
            "text"_a, "The id of a bucket's name, or -1.")
        .def(
            "find_name",
            [](const BucketTable& t, std::string_view name) {
                return find(*t.buckets, bucket_of(name, t.buckets->bits));
            },
            "name"_a, "The id of the bucket that an attribute falls into, or -1.")
        .def(
            "find_all",
            [](const BucketTable& t, const BucketTable& other) {
                std::vector<int64_t> ids;
                for (const uint32_t bucket : other.buckets->used)
                    ids.push_back(t.buckets->bits == other.buckets->bits ? find(*t.buckets, bucket) : -1);
                return to_numpy(std::move(ids));
            },
            "other"_a, "The ids here of the buckets of another table, -1 for those that are not here.")
        .def("to_list",
             [](const BucketTable& t) {
                 std::vector<std::string> names;
                 for (const uint32_t bucket : t.buckets->used) names.push_back(name_of(bucket));
                 return names;
             })
        .def(
            "take", [](const BucketTable& t, const Array<int64_t>& order) { return taken(*t.buckets, order); },
            "order"_a, "The table of these ids' buckets, renumbered in this order.")
        .def(
            "merged",
            [](const BucketTable& t, const BucketTable& other) {
                if (t.buckets->bits != other.buckets->bits) throw nb::value_error("the tables differ in their bits");
                auto united = std::make_shared<Buckets>(*t.buckets);
                for (const uint32_t bucket : other.buckets->used) united->add(bucket);
                return BucketTable{std::move(united)};
            },
            "other"_a, "These buckets, followed by those that only the other table has.")
        .def_prop_ro("bits", [](const BucketTable& t) { return t.buckets->bits; })
        .def_prop_ro(
            "buckets", [](const BucketTable& t) { return to_numpy(std::vector<uint32_t>(t.buckets->used)); },
            nb::rv_policy::move);
}

}  // namespace crfkit
