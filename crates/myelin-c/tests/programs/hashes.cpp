// Layout hashes as C++ describes them, in the order that the test expects.
#include <iostream>

#include "myelin.hpp"

struct Inner { float at[3][2]; bool closed; std::array<std::uint8_t, 7> _pad; };
struct Outer { std::int64_t big; Inner inner[2]; char name[16]; std::int16_t tail[4]; };
MYELIN_STRUCT(Inner, at, closed, _pad)
MYELIN_STRUCT(Outer, big, inner, name, tail)

int main() {
  std::cout << myelin::layout_hash<myelin::Bytes>() << '\n' << myelin::layout_hash<double>() << '\n'
            << myelin::layout_hash<std::uint16_t[2][5]>() << '\n'
            << myelin::layout_hash<Outer>() << '\n' << myelin::layout_hash<myelin::Slice<Inner>>()
            << '\n' << myelin::layout_hash<myelin::HeaderSlice<Inner, Outer>>() << '\n';
}
