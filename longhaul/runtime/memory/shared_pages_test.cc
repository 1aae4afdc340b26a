#include "longhaul/runtime/memory/shared_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "longhaul/base/huge_pages.h"
#include "longhaul/runtime/memory/memory_region.h"

namespace longhaul {
namespace {

TEST(SharedPages, PiecesLieSideBySideFromTheBeginningOfAHugePage) {
  SharedPages pages;
  char* const first = static_cast<char*>(pages.take(3 * kPage));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kHugePage, 0u);
  EXPECT_EQ(pages.take(kPage), first + 3 * kPage);
  EXPECT_EQ(pages.chunks(), 1u);
}

TEST(SharedPages, WhatIsGivenBackServesTheNextOfItsSize) {
  SharedPages pages;
  void* const first = pages.take(2 * kPage);
  void* const second = pages.take(2 * kPage);
  pages.give_back(first, 2 * kPage);
  EXPECT_NE(pages.take(kPage), first) << "another size";
  EXPECT_EQ(pages.take(2 * kPage), first);
  EXPECT_NE(pages.take(2 * kPage), second);
}

TEST(SharedPages, AChunkOfWhichNothingIsTakenGoesBack) {
  SharedPages pages;
  constexpr size_t kHalf = SharedPages::kChunk / 2;
  void* const first = pages.take(kHalf);
  void* const second = pages.take(kHalf);
  void* const third = pages.take(kHalf);
  EXPECT_EQ(pages.chunks(), 2u);
  pages.give_back(first, kHalf);
  EXPECT_EQ(pages.chunks(), 2u);
  pages.give_back(second, kHalf);
  EXPECT_EQ(pages.chunks(), 1u);
  EXPECT_EQ(pages.take(kHalf), static_cast<char*>(third) + kHalf) << "nothing of the chunk that is gone is free";
  pages.give_back(third, kHalf);
  pages.give_back(static_cast<char*>(third) + kHalf, kHalf);
  EXPECT_EQ(pages.chunks(), 0u);
}

// Each thread writes its mark on what it takes, and must find it there when it gives it back.
TEST(SharedPages, NoTwoPiecesOverlapWhoeverTakesThem) {
  SharedPages pages;
  const auto take_and_give = [&](char mark) {
    struct Piece {
      char* data;
      size_t bytes;
    };
    std::mt19937 random(static_cast<unsigned>(mark));
    std::vector<Piece> taken;
    for (int i = 0; i < 1000; ++i) {
      if (taken.size() < 20 && random() % 3 != 0) {
        const size_t bytes = (1 + random() % 64) * kPage;
        taken.push_back({static_cast<char*>(pages.take(bytes)), bytes});
        taken.back().data[0] = taken.back().data[bytes - 1] = mark;
      } else if (!taken.empty()) {
        std::swap(taken[random() % taken.size()], taken.back());
        const Piece piece = taken.back();
        taken.pop_back();
        ASSERT_EQ(piece.data[0], mark);
        ASSERT_EQ(piece.data[piece.bytes - 1], mark);
        pages.give_back(piece.data, piece.bytes);
      }
    }
    for (const Piece& piece : taken) pages.give_back(piece.data, piece.bytes);
  };
  std::vector<std::thread> threads;
  for (const char mark : {1, 2, 3, 4}) threads.emplace_back(take_and_give, mark);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pages.chunks(), 0u);
}

TEST(MemoryRegion, LargeOnesBeginAtAHugePageAndSmallOnesAtAPage) {
  for (const size_t bytes : {kPage, kHugePage - kPage, kHugePage, 5 * kHugePage + kPage}) {
    const MemoryRegion region(bytes);
    const size_t alignment = bytes < kHugePage ? kPage : kHugePage;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(region.data()) % alignment, 0u) << bytes;
    std::memset(region.data(), 1, bytes);
  }
}

// Of the mapping that begins there, as the system describes it.
std::string flags_of_mapping(const void* data) {
  std::ifstream maps("/proc/self/smaps");
  bool is_found = false;
  for (std::string line; std::getline(maps, line);) {
    char* end = nullptr;
    const uintptr_t begin = std::strtoull(line.c_str(), &end, 16);
    if (end != line.c_str() && *end == '-') {
      const uintptr_t last = std::strtoull(end + 1, nullptr, 16);
      is_found = begin <= reinterpret_cast<uintptr_t>(data) && reinterpret_cast<uintptr_t>(data) < last;
    }
    if (is_found && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(MemoryRegion, AsksForHugePages) {
  for (const size_t bytes : {kPage, 3 * kHugePage}) {
    const MemoryRegion region(bytes);
    EXPECT_NE(flags_of_mapping(region.data()).find(" hg "), std::string::npos) << bytes;
  }
}

TEST(SharedPages, WhatIsGivenBackIsNoMemoryOfTheProcess) {
  SharedPages pages;
  char* const kept = static_cast<char*>(pages.take(kPage));
  char* const piece = static_cast<char*>(pages.take(kPage));
  *kept = *piece = 1;
  pages.give_back(piece, kPage);
  EXPECT_EQ(pages.take(kPage), piece);
  EXPECT_EQ(*piece, 0) << "it is a new page";
  EXPECT_EQ(*kept, 1);
}

TEST(MemoryRegion, IsTouchedUntilSomebodyStopsIt) {
  const MemoryRegion region(4 * kHugePage);
  EXPECT_TRUE(region.touch([] { return false; }));
  EXPECT_FALSE(region.touch([] { return true; }));
}

}  // namespace
}  // namespace longhaul
