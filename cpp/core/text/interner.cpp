#include "interner.hpp"

#include <bit>
#include <utility>

namespace crfkit {

namespace {

constexpr uint64_t kMaxStrings = 0x7fffffff;  // ids are int32

uint64_t capacity_for(uint64_t size) { return std::bit_ceil(size * 2 + 2); }

void place(std::vector<uint64_t>& slots, uint64_t hash, uint64_t id) {
    const uint64_t mask = slots.size() - 1;
    uint64_t i = hash & mask;
    while (slots[i] != 0) i = (i + 1) & mask;
    slots[i] = (hash >> 32 << 32) | (id + 1);
}

}  // namespace

std::vector<uint64_t> build_slots(const uint64_t* offsets, const char* bytes, uint64_t size) {
    std::vector<uint64_t> slots(capacity_for(size), 0);
    const StringIndex index{slots.data(), slots.size(), offsets, bytes, size};
    constexpr uint64_t kAhead = 16;  // strings between asking for a slot and using it
    uint64_t hashes[kAhead];
    const uint64_t mask = slots.size() - 1;
    for (uint64_t id = 0; id < size + kAhead; ++id) {
        if (id >= kAhead) {
            const uint64_t earlier = id - kAhead, hash = hashes[earlier % kAhead];
            if (index.find(index.at(earlier), hash) >= 0)
                throw std::invalid_argument("the string '" + std::string(index.at(earlier)) + "' occurs twice");
            place(slots, hash, earlier);
        }
        if (id < size) {
            hashes[id % kAhead] = hash_string(index.at(id));
            __builtin_prefetch(&slots[hashes[id % kAhead] & mask], 1);
        }
    }
    return slots;
}

namespace {

void append(StringArrays& table, std::string_view text) {
    table.bytes.insert(table.bytes.end(), text.begin(), text.end());
    table.offsets.push_back(table.bytes.size());
}

StringArrays with_slots(StringArrays&& table) {
    table.slots =
        build_slots(table.offsets.data(), reinterpret_cast<const char*>(table.bytes.data()), table.offsets.size() - 1);
    return std::move(table);
}

}  // namespace

StringArrays freeze(const std::vector<std::string>& strings) {
    StringArrays table;
    for (const auto& text : strings) append(table, text);
    return with_slots(std::move(table));
}

StringArrays freeze(const StringIndex& source, std::span<const int64_t> order) {
    StringArrays table;
    table.offsets.reserve(order.size() + 1);
    for (const int64_t id : order) {
        if (id < 0 || static_cast<uint64_t>(id) >= source.size) throw std::out_of_range("string id out of range");
        append(table, source.at(static_cast<uint64_t>(id)));
    }
    return with_slots(std::move(table));
}

std::string check_index(const StringIndex& index, uint64_t n_bytes) {
    if (index.size > kMaxStrings) return "too many strings";
    if (!std::has_single_bit(index.capacity) || index.capacity <= index.size)
        return "its number of slots is not a power of two above the number of strings";
    if (index.offsets[0] != 0 || index.offsets[index.size] != n_bytes)
        return "string offsets do not span the string bytes";
    for (uint64_t i = 0; i < index.size; ++i)
        if (index.offsets[i] > index.offsets[i + 1]) return "string offsets decrease";
    uint64_t used = 0;
    for (uint64_t i = 0; i < index.capacity; ++i) {
        if (index.slots[i] == 0) continue;
        ++used;
        const uint64_t id = (index.slots[i] & 0xffffffffu) - 1;
        if (id >= index.size) return "a slot points past the last string";
    }
    if (used != index.size) return "the number of used slots differs from the number of strings";
    for (uint64_t id = 0; id < index.size; ++id)
        if (index.find(index.at(id)) != static_cast<int32_t>(id))
            return "string " + std::to_string(id) + " is not found where its hash says";
    return "";
}

Interner::Interner() : slots_(1024, 0) {}

int32_t Interner::intern(std::string_view text, uint64_t hash) {
    const uint64_t tag = hash >> 32;
    const uint64_t mask = slots_.size() - 1;
    uint64_t i = hash & mask;
    for (; slots_[i] != 0; i = (i + 1) & mask) {
        if (slots_[i] >> 32 != tag) continue;
        const auto id = static_cast<uint32_t>(slots_[i]) - 1;
        if (view().at(id) == text) return static_cast<int32_t>(id);
    }
    const uint64_t id = size();
    if (id >= kMaxStrings) throw std::length_error("more than 2147483647 different strings");
    slots_[i] = (tag << 32) | (id + 1);
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    offsets_.push_back(bytes_.size());
    if (size() * 2 > slots_.size()) grow();
    return static_cast<int32_t>(id);
}

void Interner::grow() {
    std::vector<uint64_t> slots(slots_.size() * 2, 0);
    const StringIndex old = view();
    for (uint64_t id = 0; id < old.size; ++id) place(slots, hash_string(old.at(id)), id);
    slots_ = std::move(slots);
}

}  // namespace crfkit
