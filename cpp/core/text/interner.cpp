#include "interner.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace crfkit {

namespace {

constexpr uint64_t kAhead = 16;  // strings between asking for a slot and using it

uint64_t capacity_for(uint64_t size) { return std::bit_ceil(size * 2 + 2); }

// Puts an id into the next empty slot; returns false, and puts it nowhere, if that is too far away.
bool place(std::vector<uint64_t>& slots, uint64_t hash, uint64_t id) {
    const uint64_t mask = slots.size() - 1;
    uint64_t i = hash & mask;
    for (uint64_t steps = 0; slots[i] != 0; i = (i + 1) & mask)
        if (++steps > kLongestRun) return false;
    slots[i] = (hash >> 32 << 32) | (id + 1);
    return true;
}

bool has_long_run(const uint64_t* slots, uint64_t capacity) {
    uint64_t run = 0;
    for (uint64_t i = 0; i < capacity; ++i) {
        run = slots[i] == 0 ? 0 : run + 1;
        if (run > kLongestRun) return true;
    }
    return false;
}

// A key that depends on all strings: who changes one to make them collide gets another key.
HashKey key_of(const char* bytes, uint64_t n_bytes) {
    const std::string_view all(bytes, n_bytes);
    return {siphash(all, {1, 2}) | 1, siphash(all, {3, 4})};
}

// Fills the slots; returns false if strings collide too often under this key.
bool fill(std::vector<uint64_t>& slots, const uint64_t* offsets, const char* bytes, uint64_t size, HashKey key,
          const uint64_t* known = nullptr) {
    slots.assign(capacity_for(size), 0);
    const StringIndex index{slots.data(), slots.size(), offsets, bytes, size, key};
    uint64_t hashes[kAhead];
    const uint64_t mask = slots.size() - 1;
    for (uint64_t id = 0; id < size + kAhead; ++id) {
        if (id >= kAhead) {
            const uint64_t earlier = id - kAhead, hash = hashes[earlier % kAhead];
            uint64_t i = hash & mask, steps = 0;
            for (; slots[i] != 0; i = (i + 1) & mask) {
                if (slots[i] >> 32 == hash >> 32 && index.at(static_cast<uint32_t>(slots[i]) - 1) == index.at(earlier))
                    throw std::invalid_argument("the string '" + std::string(index.at(earlier)) + "' occurs twice");
                if (++steps > kLongestRun) return false;
            }
            slots[i] = (hash >> 32 << 32) | (earlier + 1);
        }
        if (id < size) {
            hashes[id % kAhead] = known ? known[id] : hash_string(index.at(id), key);
            __builtin_prefetch(&slots[hashes[id % kAhead] & mask], 1);
        }
    }
    return !has_long_run(slots.data(), slots.size());
}

}  // namespace

std::vector<uint64_t> build_slots(const uint64_t* offsets, const char* bytes, uint64_t size, const uint64_t* hashes) {
    std::vector<uint64_t> slots;
    if (fill(slots, offsets, bytes, size, {}, hashes)) return slots;
    const HashKey key = key_of(bytes, offsets[size]);
    if (!fill(slots, offsets, bytes, size, key)) throw std::invalid_argument("too many of the strings collide");
    slots.push_back(key.first);
    slots.push_back(key.second);
    return slots;
}

namespace {

StringArrays with_slots(StringArrays&& table, const uint64_t* hashes = nullptr) {
    table.slots = build_slots(table.offsets.data(), reinterpret_cast<const char*>(table.bytes.data()),
                              table.offsets.size() - 1, hashes);
    return std::move(table);
}

// The strings of `source` at `order`, without slots.
StringArrays gather(const StringIndex& source, std::span<const int64_t> order) {
    StringArrays table;
    table.offsets.resize(order.size() + 1);
    uint64_t size = 0;
    for (size_t k = 0; k < order.size(); ++k) {
        const int64_t id = order[k];
        if (id < 0 || static_cast<uint64_t>(id) >= source.size) throw std::out_of_range("string id out of range");
        size += source.at(static_cast<uint64_t>(id)).size();
        table.offsets[k + 1] = size;
    }
    table.bytes.resize(size);
    for (size_t k = 0; k < order.size(); ++k) {
        if (k + kAhead < order.size()) __builtin_prefetch(source.at(static_cast<uint64_t>(order[k + kAhead])).data());
        const std::string_view text = source.at(static_cast<uint64_t>(order[k]));
        std::copy(text.begin(), text.end(), table.bytes.begin() + static_cast<int64_t>(table.offsets[k]));
    }
    return table;
}

}  // namespace

StringArrays freeze(const std::vector<std::string>& strings) {
    StringArrays table;
    for (const auto& text : strings) {
        table.bytes.insert(table.bytes.end(), text.begin(), text.end());
        table.offsets.push_back(table.bytes.size());
    }
    return with_slots(std::move(table));
}

StringArrays freeze(const StringIndex& source, std::span<const int64_t> order) {
    return with_slots(gather(source, order));
}

StringArrays freeze(const Interner& source, std::span<const int64_t> order) {
    StringArrays table = gather(source.view(), order);
    if (source.key().is_set()) return with_slots(std::move(table));
    std::vector<uint64_t> hashes(order.size());
    for (size_t k = 0; k < order.size(); ++k) hashes[k] = source.hashes()[static_cast<size_t>(order[k])];
    return with_slots(std::move(table), hashes.data());
}

std::string check_index(const StringIndex& index, uint64_t n_bytes) {
    if (index.size > kMostStrings) return "too many strings";
    if (!std::has_single_bit(index.capacity) || index.capacity <= index.size)
        return "its number of slots is not a power of two above the number of strings";
    if (index.offsets[0] != 0 || index.offsets[index.size] != n_bytes)
        return "string offsets do not span the string bytes";
    for (uint64_t i = 0; i < index.size; ++i)
        if (index.offsets[i] > index.offsets[i + 1]) return "string offsets decrease";
    uint64_t used = 0, run = 0, longest = 0, last = 0;
    for (uint64_t i = 0; i < index.capacity; ++i) {
        const uint64_t slot = index.slots[i], filled = slot != 0;
        run = (run + 1) & (0 - filled);
        longest = std::max(longest, run);
        used += filled;
        last = std::max(last, ((slot & 0xffffffffu) - filled) & 0xffffffffu);  // a tag without an id gives 2³² − 1
    }
    if (longest > kLongestRun) return "too many of its strings collide";
    if (used > 0 && last >= index.size) return "a slot points past the last string";
    if (used != index.size) return "the number of used slots differs from the number of strings";
    // Every string is found where its hash says, and is no other string.
    const uint64_t mask = index.capacity - 1;
    const auto is_found = [&](uint64_t id, uint64_t hash) {
        for (uint64_t i = hash & mask; index.slots[i] != 0; i = (i + 1) & mask) {
            if (index.slots[i] >> 32 != hash >> 32) continue;
            const uint64_t other = (index.slots[i] & 0xffffffffu) - 1;
            if (other == id) return true;
            if (index.holds(other, index.at(id))) return false;
        }
        return false;
    };
    uint64_t hashes[kAhead];
    for (uint64_t id = 0; id < index.size + kAhead; ++id) {
        if (id >= kAhead && !is_found(id - kAhead, hashes[id % kAhead]))
            return "string " + std::to_string(id - kAhead) + " is not found where its hash says";
        if (id < index.size) {
            hashes[id % kAhead] = hash_string(index.at(id), index.key);
            __builtin_prefetch(&index.slots[hashes[id % kAhead] & mask]);
        }
    }
    return "";
}

Interner::Interner(uint64_t most) : slots_(1024, 0), most_(most) {}

int32_t Interner::intern(std::string_view text, uint64_t hash) {
    const uint64_t tag = hash >> 32;
    const uint64_t mask = slots_.size() - 1;
    uint64_t i = hash & mask, steps = 0;
    for (; slots_[i] != 0; i = (i + 1) & mask, ++steps) {
        if (slots_[i] >> 32 != tag) continue;
        const auto id = static_cast<uint32_t>(slots_[i]) - 1;
        if (view().holds(id, text)) return static_cast<int32_t>(id);
    }
    if (steps > kLongestRun && !key_.is_set()) {
        key_ = secret_key();
        hash_again();
        rebuild(slots_.size());
        return intern(text);
    }
    const uint64_t id = size();
    if (id >= most_)
        throw TooManyStrings("more than " + std::to_string(most_) + " different attributes, which is the limit");
    slots_[i] = (tag << 32) | (id + 1);
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    offsets_.push_back(bytes_.size());
    hashes_.push_back(hash);
    if (size() * 2 > slots_.size()) rebuild(slots_.size() * 2);
    return static_cast<int32_t>(id);
}

void Interner::hash_again() {
    for (uint64_t id = 0; id < size(); ++id) hashes_[id] = hash(view().at(id));
}

void Interner::rebuild(uint64_t capacity) {
    slots_.assign(capacity, 0);
    for (uint64_t id = 0; id < size();) {
        if (id + kAhead < size()) __builtin_prefetch(&slots_[hashes_[id + kAhead] & (capacity - 1)], 1);
        if (place(slots_, hashes_[id], id)) {
            ++id;
            continue;
        }
        key_ = key_.is_set() ? HashKey{key_.first, key_.second + 1} : secret_key();
        hash_again();
        slots_.assign(capacity, 0);
        id = 0;
    }
}

}  // namespace crfkit
