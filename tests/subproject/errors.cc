#include <longhaul/base.h>

#include <iostream>

int main() {
  try {
    throw longhaul::NotFoundError("no such thing");
  } catch (const longhaul::Error& error) {
    std::cout << longhaul::code_name(error.code()) << "\n";
  }
}
