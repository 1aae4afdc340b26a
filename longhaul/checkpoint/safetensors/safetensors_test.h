#pragma once

#include <string>
#include <string_view>

namespace longhaul::testing {

// A safetensors file put together by hand from the format's specification: the length of the JSON as 8 bytes, little
// endian, the JSON with the spaces that it has, the data.
inline std::string safetensors_file(std::string_view json, std::string_view data) {
  std::string file;
  for (int shift = 0; shift < 64; shift += 8) file.push_back(static_cast<char>(json.size() >> shift));
  return file.append(json).append(data);
}

// One tensor of each dtype that both formats have, as the format's own writer lays them out, and their bytes.
inline constexpr std::string_view kJsonOfAllDTypes =
    R"("u64":{"dtype":"U64","shape":[1],"data_offsets":[0,8]},)"
    R"("i64":{"dtype":"I64","shape":[],"data_offsets":[8,16]},)"
    R"("f64":{"dtype":"F64","shape":[1],"data_offsets":[16,24]},)"
    R"("c64":{"dtype":"C64","shape":[1],"data_offsets":[24,32]},)"
    R"("f32":{"dtype":"F32","shape":[2],"data_offsets":[32,40]},)"
    R"("u32":{"dtype":"U32","shape":[1],"data_offsets":[40,44]},)"
    R"("i32":{"dtype":"I32","shape":[1],"data_offsets":[44,48]},)"
    R"("bf16":{"dtype":"BF16","shape":[1],"data_offsets":[48,50]},)"
    R"("f16":{"dtype":"F16","shape":[1],"data_offsets":[50,52]},)"
    R"("u16":{"dtype":"U16","shape":[1],"data_offsets":[52,54]},)"
    R"("i16":{"dtype":"I16","shape":[1],"data_offsets":[54,56]},)"
    R"("i8":{"dtype":"I8","shape":[1],"data_offsets":[56,57]},)"
    R"("u8":{"dtype":"U8","shape":[2,1],"data_offsets":[57,59]},)"
    R"("bool":{"dtype":"BOOL","shape":[3],"data_offsets":[59,62]},)"
    R"("empty":{"dtype":"BOOL","shape":[2,0],"data_offsets":[62,62]}})";
inline constexpr char kHexOfAllDTypes[] =
    "0807060504030201"  // 0x0102030405060708
    "feffffffffffffff"  // -2
    "000000000000f03f"  // 1
    "0000803f000000c0"  // 1 - 2i
    "0000803f000000bf"  // 1, -0.5
    "efbeadde"          // 0xdeadbeef
    "ffffffff"          // -1
    "803f"              // 1
    "003c"              // 1
    "3412"              // 0x1234
    "feff"              // -2
    "fd"                // -3
    "0709"
    "010001";

}  // namespace longhaul::testing
