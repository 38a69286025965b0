#pragma once
#include <map>
#include <string>
#include <vector>
#include "emulator.h"
namespace ptxi {
struct Kernel;
bool parse(const std::string &src, std::map<std::string, Kernel *> &out, std::string &err);
std::vector<size_t> param_sizes(const Kernel *);
int run(Kernel *, emu_dim3 grid, emu_dim3 block, size_t dyn, void **args);
}
