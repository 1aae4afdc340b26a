// Archives that are damaged, or made to harm: nothing is executed, no size is believed, and each error says what it is.
#include <gmock/gmock.h>

#include "longhaul/checkpoint/torch_archive/torch_archive_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::open_torch;
using testing::pickled;
using testing::pickled_dict_of;
using testing::pickled_text;
using testing::torch_file;
using testing::torch_values;

// What opening an archive with this pickle says.
std::string told(const std::string& pickle, const std::vector<std::string>& storages = {}) {
  return coded_error_of([&] { torch_values(torch_file(pickle, storages)); });
}

const std::string kSixFloats(24, '\0');

TEST(TorchArchiveDamage, EveryGlobalThatNoStateDictNeedsIsRefusedByName) {
  // os.system("echo") and others, as pickles that harm have them.
  EXPECT_THAT(told("\x80\x02"
                   "cposix\nsystem\n" +
                   pickled_text("echo") + "\x85R."),
              AllOf(HasSubstr("UNIMPLEMENTED: x.pt: x/data.pkl at byte 2: it wants posix.system, which no state dict"),
                    HasSubstr("torch.save(model.state_dict(), path)")));
  for (const char* global : {"builtins\neval", "torch.nn.modules.linear\nLinear", "torch\nload", "collections\ndeque",
                             "torch._utils\n_rebuild_sparse_tensor", "numpy.core.multiarray\nscalar",
                             "torch\nQInt8Storage", "__torch__x\nModule", "os\x01\nsystem"}) {
    EXPECT_THAT(told(std::string("\x80\x02"
                                 "c") +
                     global + "\n."),
                HasSubstr("nothing is executed here"))
        << global;
  }
}

TEST(TorchArchiveDamage, OtherOpcodesAndProtocolsAreRefused) {
  EXPECT_THAT(told("\x80\x04."), HasSubstr("UNIMPLEMENTED: x.pt: x/data.pkl at byte 0: pickle protocol 4"));
  EXPECT_THAT(told("\x80\x02i"), HasSubstr("at byte 2: opcode 0x69, which no state dict has"));
  EXPECT_THAT(told(std::string("\x80\x02\x8a\x09") + std::string(9, 'x') + "."), HasSubstr("more than 64 bits"));
}

TEST(TorchArchiveDamage, APickleThatMakesNoSenseIsDamaged) {
  const struct {
    std::string pickle;
    const char* why;
  } cases[] = {
      {"", "the pickle ends in the middle"},
      {"\x80\x02}", "the pickle ends in the middle"},
      {"\x80\x02.", "the pickle ends with other than one value"},
      {"\x80\x02}}.", "other than one value"},
      {"\x80\x02R.", "takes a value that is not there"},
      {"\x80\x02}(R.", "takes a value that is not there"},  // not from below the mark
      {"\x80\x02t.", "a mark that is not there"},
      {"\x80\x02}(" + pickled_text("w") + "u.", "keys and values for what is no dict"},
      {"\x80\x02](K\x01K\x02u.", "keys and values for what is no dict"},
      {"\x80\x02}(K\x01"
       "e.",
       "values for what is no list"},
      {"\x80\x02}h\x07.", "place 7 of the memo is empty"},
      {std::string("\x80\x02}r\0\0\0\x7f.", 9), "place 2130706432 of the memo comes before place 0"},
      {"\x80\x02})R.", "a call of what is no function"},
      {"\x80\x02K\x01K\x02"
       "b.",
       "a state for what is no object"},
      {std::string("\x80\x02X\xff\xff\xff\x7fw.", 8), "the pickle ends in the middle"},
      {"\x80\x02"
       "ctorch\nFloatStorage\n)R.",
       "calls torch.FloatStorage"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(told(one.pickle), AllOf(HasSubstr("DATA_LOSS: x.pt"), HasSubstr(one.why))) << one.why;
  }
}

TEST(TorchArchiveDamage, ATensorBeyondItsStorageIsRefused) {
  for (const testing::PickledTensor& tensor :
       std::vector<testing::PickledTensor>{{.offset = 1},
                                           {.sizes = {3, 3}},
                                           {.strides = {4, 1}},
                                           {.sizes = {7}, .strides = {1}},
                                           {.offset = 6, .sizes = {}, .strides = {}}}) {
    EXPECT_THAT(told(pickled_dict_of(pickled(tensor)), {kSixFloats}),
                HasSubstr("DATA_LOSS: x.pt: x/data.pkl: tensor w reaches beyond its storage of 24 bytes"));
  }
  EXPECT_THAT(told(pickled_dict_of(pickled({.strides = {1}})), {kSixFloats}), HasSubstr("numbers of strides"));
  EXPECT_THAT(told(pickled_dict_of(pickled({})), {std::string(20, '\0')}),
              HasSubstr("tensor w: its storage data/0 has 20 bytes, but 24 are wanted"));
  EXPECT_THAT(told(pickled_dict_of(pickled({})), {}), HasSubstr("its storage data/0 has 0 bytes"));
}

// Sizes and strides whose products overflow: BININT and LONG1 in place of BININT1.
TEST(TorchArchiveDamage, SizesThatOverflowAreRefused) {
  std::string tensor = pickled({.sizes = {}, .strides = {}});
  const std::string huge = "(\x8a\x08" + std::string(7, '\xff') + "\x7f\x8a\x08" + std::string(7, '\xff') + "\x7ft";
  tensor.replace(tensor.find("(t(t"), 4, huge + huge);
  EXPECT_THAT(told(pickled_dict_of(tensor), {kSixFloats}), HasSubstr("DATA_LOSS"));
  std::string negative = pickled({.sizes = {}, .strides = {}});
  negative.replace(negative.find("(t(t"), 4, "(J\xff\xff\xff\xfft(K\x01t");
  EXPECT_THAT(told(pickled_dict_of(negative), {kSixFloats}), HasSubstr("has -1 as a size or a stride"));
}

// A float that is repeated 2^31 times by a stride of 0.
TEST(TorchArchiveDamage, ElementsThatAreRepeatedTakeNoMemoryBeyondALimit) {
  std::string tensor = pickled({.sizes = {}, .strides = {}});
  tensor.replace(tensor.find("(t(t"), 4, std::string("(J\xff\xff\xff\x7ft(K\0t", 11));
  EXPECT_THAT(told(pickled_dict_of(tensor), {kSixFloats}), HasSubstr("tensor w repeats the elements of its storage"));
}

// A list that contains itself; a pair of two times the pair before, and so on.
TEST(TorchArchiveDamage, CyclesAndRepetitionsEnd) {
  EXPECT_THAT(told(std::string("\x80\x02]q\0h\0a.", 9)), HasSubstr("is nested deeper than 64"));
  std::string pairs("\x80\x02K\1q\0", 6);
  for (char i = 1; i < 60; ++i) pairs += std::string("h") + static_cast<char>(i - 1) + "\x86q" + i;
  EXPECT_THAT(told(pairs + "."), HasSubstr("needs more memory than the values of an honest pickle"));
}

TEST(TorchArchiveDamage, NoPrefixIsReadAndNoFlippedByteGoesUnnoticedInATensor) {
  const std::string file = torch_file(pickled_dict_of(pickled({})), {kSixFloats});
  const auto whole = torch_values(file);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROW(torch_values(file.substr(0, size)), DataLossError) << size;
  }
  for (size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    try {
      const auto values = torch_values(damaged);
      ASSERT_EQ(values.size(), 1u) << i;
      EXPECT_TRUE(identical(values[0].second, whole[0].second)) << i;
    } catch (const Error&) {
    }
  }
}

TEST(TorchArchiveDamage, TwoValuesOfOneNameAndKeysOfOtherKindsAreRefused) {
  EXPECT_THAT(told("\x80\x02}(" + pickled_text("1") + "K\x02K\x01K\x03u."),
              HasSubstr("INVALID_ARGUMENT: x.pt: x/data.pkl: two values are called 1"));
  EXPECT_THAT(told("\x80\x02}(\x88K\x03u."), HasSubstr("a key that is neither a text nor an integer"));
}

}  // namespace
}  // namespace longhaul
