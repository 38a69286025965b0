// PTX as the driver gets it: parsed, then interpreted thread by thread. It is slow, and it sees what a GPU doesn't tell:
// accesses outside the allocations and outside shared memory, unaligned ones, threads that touch the same shared memory
// without a barrier between them, and barriers and warp instructions that only some threads reach.
//
// Only the instructions that the kernels use are known. Another one is an error when the module is loaded.
#pragma once
#include <stdint.h>

#include <map>
#include <string>
#include <vector>

#include "emulator.h"

namespace ptx {

enum class Op : uint8_t {
	Load, Store, Move, Pack, Unpack, Select, Convert,
	Add, Subtract, Multiply, MultiplyWide, MultiplyHigh, MultiplyAdd, MultiplyAddWide, FusedMultiplyAdd, Divide, Remainder,
	Minimum, Maximum, Negate, Absolute, Not, And, Or, Xor, ShiftLeft, ShiftRight, ExtractBits, Compare,
	Exp2, Log2, Reciprocal, SquareRoot, ReciprocalSquareRoot,
	Branch, Barrier, Return, MatrixMultiplyAdd,
};
enum class Type : uint8_t { Unsigned, Signed, Bits, Float, Predicate, TF32 };
enum class Space : uint8_t { Global, Shared, Local, Parameter };
enum class Order : uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual };
enum class Combine : uint8_t { No, And, Or, Xor };                                       // of setp with a predicate
enum class Rounding : uint8_t { Nearest, Down, Up, Zero };                               // .rn .rm .rp .rz, also to integers
enum class Special : uint8_t { Thread, Block = 3, BlockSize = 6, GridSize = 9, Lane = 12, Count }; // x, y, z each

struct Operand {
	enum Kind : uint8_t { Register, Immediate, SpecialRegister } kind = Immediate;
	int index = 0;      // of the register
	uint64_t value = 0; // of the immediate; an address in shared, local or parameter space
	int64_t offset = 0; // added to an address
};

struct Instruction {
	Op op = Op::Return;
	Type type = Type::Bits, from = Type::Bits; // of the result, and of what is converted
	int width = 32, fromWidth = 32;            // in bits
	Space space = Space::Global;
	Order order = Order::Equal;
	Combine combine = Combine::No;
	Rounding rounding = Rounding::Nearest;
	bool unordered = false; // a comparison with NaN is true, a minimum or maximum with it NaN
	bool saturate = false;
	int guard = -1;   // the predicate's register
	bool guardNegated = false;
	int target = 0;               // of a branch
	std::vector<int> to;          // registers written, or stored by a vector store
	std::vector<Operand> operands; // in the order of the text
	std::string text;
};

struct Kernel {
	std::string name;
	std::vector<size_t> parameterSizes, parameterOffsets;
	size_t parameters = 0, shared = 0, local = 0; // bytes
	int registers = 0;
	std::vector<Instruction> code; // it ends with a return
};

// parse returns the kernels of a PTX file by their names, and sets what is wrong with it, if anything is.
std::map<std::string, Kernel> parse(const std::string &source, std::string &error);

// run executes a kernel and returns a CUresult. What went wrong it says on stderr.
int run(const Kernel &kernel, Dim3 grid, Dim3 block, size_t dynamicShared, void **arguments);

} // namespace ptx
