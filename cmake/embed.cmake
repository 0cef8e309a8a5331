# cmake -DOUT=assets.cpp -DFILES="a;b" -P embed.cmake: files as bytes of a program, found by name.
set(arrays "")
set(table "")
set(number 0)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char k${number}[] = {\n${bytes}0};\n")
  string(APPEND table "    {\"${name}\", {reinterpret_cast<const char*>(k${number}), sizeof k${number} - 1}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "// Made by cmake/embed.cmake.
#include \"rotrnn/board/server/assets.h\"

namespace rotrnn::board {
namespace {

${arrays}
struct Asset {
  std::string_view name, bytes;
};
const Asset kAssets[] = {
${table}};

}  // namespace

std::string_view asset(std::string_view name) {
  for (const Asset& a : kAssets) {
    if (a.name == name) return a.bytes;
  }
  return {};
}

}  // namespace rotrnn::board
")
