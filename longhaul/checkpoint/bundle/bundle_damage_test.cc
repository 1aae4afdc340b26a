// Damaged files: whatever happens to the bytes, the reader says so, gives what was stored, and takes no memory that the
// files could not fill.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include "longhaul/base/varint.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/genuine_test.h"
#include "longhaul/checkpoint/table/wire.h"

namespace {

std::atomic<size_t> largest_allocation{0};

void* noted(size_t size, void* memory) {
  if (size > largest_allocation.load(std::memory_order_relaxed)) largest_allocation = size;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace
// GCC sees the free() below but not that the new before it is this one.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

// All memory that this test program takes passes here; tensors use aligned_alloc.
void* operator new(size_t size) {
  return noted(size, std::malloc(size));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (size > largest_allocation.load(std::memory_order_relaxed)) largest_allocation = size;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
extern "C" void* aligned_alloc(size_t alignment, size_t size) noexcept {
  void* memory = nullptr;
  if (size > largest_allocation.load(std::memory_order_relaxed)) largest_allocation = size;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : nullptr;
}

namespace longhaul {
namespace {

using testing::GenuineBundle;
using Tensors = std::map<std::string, Tensor>;

// All tensors; an error is thrown.
Tensors read_all(const GenuineBundle& bundle) {
  const auto files = testing::files_in_memory(bundle);
  const BundleReader reader(*files, "x");
  Tensors tensors;
  for (const std::string& name : reader.keys()) tensors[name] = reader.read(name);
  return tensors;
}

// Reads the damaged bundle. Empty: an error was thrown.
std::optional<Tensors> read_damaged(const GenuineBundle& bundle) {
  try {
    return read_all(bundle);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool same(const Tensors& a, const Tensors& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && identical(x.second, y.second);
         });
}

// One with numbers, strings and slices.
GenuineBundle rich_bundle() {
  const testing::TemporaryDirectory directory;
  BundleWriter writer(FileSystem::real(), directory.file("m"));
  writer.add("numbers", Tensor::of<int64_t>({1, 2, 3}));
  writer.add("strings", Tensor::of<std::string>({"one", "", "three"}));
  writer.add_slice("sliced", {4}, parse_shape_and_slice("4 0,1").second, Tensor::of<float>({1}));
  writer.add_slice("sliced", {4}, parse_shape_and_slice("4 1,3").second, Tensor::of<float>({2, 3, 4}));
  writer.finish();
  return {read_file(FileSystem::real(), directory.file("m.index")),
          read_file(FileSystem::real(), data_path(directory.file("m"), 0, 1))};
}

std::vector<GenuineBundle> bundles() {
  return {testing::counter_bundle(), testing::snappy_bundle(), rich_bundle()};
}

TEST(DamagedBundle, NoPrefixOfAFilePassesForTheWhole) {
  for (const GenuineBundle& bundle : bundles()) {
    for (size_t size = 0; size < bundle.index.size(); ++size) {
      EXPECT_FALSE(read_damaged({bundle.index.substr(0, size), bundle.data})) << size;
    }
    for (size_t size = 0; size < bundle.data.size(); ++size) {
      EXPECT_FALSE(read_damaged({bundle.index, bundle.data.substr(0, size)})) << size;
    }
  }
}

TEST(DamagedBundle, AFlippedByteIsDetectedOrHarmless) {
  for (const GenuineBundle& bundle : bundles()) {
    const Tensors whole = read_all(bundle);
    for (std::string GenuineBundle::* file : {&GenuineBundle::index, &GenuineBundle::data}) {
      for (size_t i = 0; i < (bundle.*file).size(); ++i) {
        GenuineBundle damaged = bundle;
        (damaged.*file)[i] = static_cast<char>((damaged.*file)[i] ^ (1 << i % 8));
        const auto tensors = read_damaged(damaged);
        EXPECT_TRUE(!tensors || same(*tensors, whole)) << i;
        EXPECT_TRUE(!tensors || file == &GenuineBundle::index) << "every byte of the data counts: " << i;
      }
    }
  }
}

void mutate(std::string& bytes, std::mt19937& random) {
  const auto below = [&random](size_t limit) { return limit == 0 ? 0 : random() % limit; };
  switch (below(4)) {
    case 0:
      if (!bytes.empty()) bytes[below(bytes.size())] = static_cast<char>(random());
      break;
    case 1: bytes.erase(below(bytes.size()), below(8)); break;
    case 2: bytes.insert(below(bytes.size()), below(8), static_cast<char>(random())); break;
    case 3:
      for (size_t i = below(bytes.size()), n = 0; i < bytes.size() && n < 8; ++i, ++n) bytes[i] = '\xff';
      break;
  }
}

TEST(DamagedBundle, TwentyThousandDamagesNeitherCrashNorTakeMemory) {
  std::mt19937 random(20);
  const auto originals = bundles();
  largest_allocation = 0;
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    GenuineBundle bundle = originals[static_cast<size_t>(i) % originals.size()];
    for (size_t n = random() % 3 + 1; n > 0; --n) mutate(random() % 4 == 0 ? bundle.data : bundle.index, random);
    if (read_damaged(bundle)) ++read;
  }
  EXPECT_LT(read, 10000);
  EXPECT_LE(largest_allocation, 64u * 1024);
}

// Each key repeats all of the long one before it, and adds two bytes: 300 KB that spell out to 120 MB.
TEST(DamagedBundle, KeysThatRepeatEachOtherTakeNoMemory) {
  std::string block = testing::from_hex("00000608011a020801");
  const size_t long_key = 300 * 1000;
  block += '\0';
  append_varint(block, long_key);
  block += '\0' + std::string(long_key, 'k');
  for (int i = 0; i < 400; ++i) {
    append_varint(block, long_key);
    block += {'\2', '\0', static_cast<char>('a' + i / 100), static_cast<char>(i % 100)};
  }
  wire::append(block, uint32_t{0});
  wire::append(block, uint32_t{1});
  const auto files = testing::files_in_memory({testing::table_with_block(block, 0), ""});
  try {
    BundleReader(*files, "x");
    FAIL();
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("bytes of memory, too much for an index of"));
  }
}

}  // namespace
}  // namespace longhaul
