#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "ptx.h"

namespace ptx {
namespace {

float asFloat(uint64_t bits) {
	uint32_t low = bits;
	float v;
	memcpy(&v, &low, 4);
	return v;
}
double asDouble(uint64_t bits) {
	double v;
	memcpy(&v, &bits, 8);
	return v;
}
uint64_t bits(float v) {
	uint32_t b;
	memcpy(&b, &v, 4);
	return b;
}
uint64_t bits(double v) {
	uint64_t b;
	memcpy(&b, &v, 8);
	return b;
}
uint64_t zeroExtend(uint64_t v, int width) { return width == 64 ? v : v & ((uint64_t(1) << width) - 1); }
int64_t signExtend(uint64_t v, int width) { return int64_t(v << (64 - width)) >> (64 - width); }

template <class V> bool compares(Order order, V a, V b) {
	switch (order) {
	case Order::Equal: return a == b;
	case Order::NotEqual: return a != b;
	case Order::Less: return a < b;
	case Order::LessEqual: return a <= b;
	case Order::Greater: return a > b;
	default: return a >= b;
	}
}

int roundingMode(Rounding r) {
	return r == Rounding::Down ? FE_DOWNWARD : r == Rounding::Up ? FE_UPWARD : r == Rounding::Zero ? FE_TOWARDZERO : FE_TONEAREST;
}

// inMode computes f in a rounding mode other than the usual one.
template <class F> auto inMode(Rounding r, F f) {
	if (r == Rounding::Nearest) return f();
	fesetround(roundingMode(r));
	auto v = f();
	fesetround(FE_TONEAREST);
	return v;
}

// toTF32 rounds to 10 bits of fraction, ties away from zero.
uint64_t toTF32(uint64_t v) {
	if ((v & 0x7f800000) != 0x7f800000) v += 0x1000;
	return v & 0xffffe000;
}

// arithmetic computes the instructions that only look at their operands.
uint64_t arithmetic(const Instruction &in, uint64_t a, uint64_t b, uint64_t c) {
	const int w = in.width;
	if (in.type == Type::Float) {
		if (w == 64) {
			double x = asDouble(a), y = asDouble(b), z = asDouble(c);
			switch (in.op) {
			case Op::Add: return bits(x + y);
			case Op::Subtract: return bits(x - y);
			case Op::Multiply: return bits(x * y);
			case Op::FusedMultiplyAdd: return bits(fma(x, y, z));
			case Op::Divide: return bits(x / y);
			case Op::Minimum: return bits(fmin(x, y));
			case Op::Maximum: return bits(fmax(x, y));
			case Op::Negate: return bits(-x);
			case Op::Absolute: return bits(fabs(x));
			case Op::SquareRoot: return bits(sqrt(x));
			default: return bits(1 / x);
			}
		}
		// volatile, so that the compiler doesn't compute before the mode is set
		volatile float x = asFloat(a), y = asFloat(b), z = asFloat(c);
		switch (in.op) {
		case Op::Add: return bits(inMode(in.rounding, [&]() -> float { return x + y; }));
		case Op::Subtract: return bits(inMode(in.rounding, [&]() -> float { return x - y; }));
		case Op::Multiply: return bits(inMode(in.rounding, [&]() -> float { return x * y; }));
		case Op::FusedMultiplyAdd: return bits(inMode(in.rounding, [&]() -> float { return fmaf(x, y, z); }));
		case Op::Divide: return bits(x / y);
		case Op::Minimum: return bits(in.unordered && (x != x || y != y) ? NAN : fminf(x, y));
		case Op::Maximum: return bits(in.unordered && (x != x || y != y) ? NAN : fmaxf(x, y));
		case Op::Negate: return bits(-x);
		case Op::Absolute: return bits(fabsf(x));
		case Op::Exp2: return bits(exp2f(x));
		case Op::Log2: return bits(log2f(x));
		case Op::SquareRoot: return bits(sqrtf(x));
		case Op::ReciprocalSquareRoot: return bits(1 / sqrtf(x));
		default: return bits(1 / x);
		}
	}
	const bool isSigned = in.type == Type::Signed;
	const uint64_t ua = zeroExtend(a, w), ub = zeroExtend(b, w);
	const int64_t sa = signExtend(a, w), sb = signExtend(b, w);
	const uint64_t product = isSigned ? uint64_t(sa) * uint64_t(sb) : ua * ub; // of 32 bits or fewer it is whole
	const uint64_t shift = zeroExtend(b, 32);
	switch (in.op) {
	case Op::Add: return zeroExtend(a + b, w);
	case Op::Subtract: return zeroExtend(a - b, w);
	case Op::Multiply: return zeroExtend(a * b, w);
	case Op::MultiplyWide: return product;
	case Op::MultiplyHigh:
		if (w < 64) return zeroExtend(product >> w, w);
		return isSigned ? uint64_t((__int128(sa) * sb) >> 64) : uint64_t(((unsigned __int128)ua * ub) >> 64);
	case Op::MultiplyAdd: return zeroExtend(a * b + c, w);
	case Op::MultiplyAddWide: return product + c;
	case Op::Divide: // by zero the result is unspecified: all ones, as on GPUs
		if (ub == 0) return zeroExtend(~uint64_t(0), w);
		return zeroExtend(isSigned ? (sb == -1 ? uint64_t(0) - a : uint64_t(sa / sb)) : ua / ub, w);
	case Op::Remainder:
		if (ub == 0) return zeroExtend(~uint64_t(0), w);
		return zeroExtend(isSigned ? (sb == -1 ? 0 : uint64_t(sa % sb)) : ua % ub, w);
	case Op::Minimum: return (isSigned ? sa < sb : ua < ub) ? ua : ub;
	case Op::Maximum: return (isSigned ? sa > sb : ua > ub) ? ua : ub;
	case Op::Negate: return zeroExtend(0 - a, w);
	case Op::Absolute: return zeroExtend(sa < 0 ? 0 - a : a, w);
	case Op::Not: return in.type == Type::Predicate ? !a : zeroExtend(~a, w);
	case Op::And: return a & b;
	case Op::Or: return a | b;
	case Op::Xor: return a ^ b;
	case Op::ShiftLeft: return shift >= uint64_t(w) ? 0 : zeroExtend(a << shift, w);
	case Op::ShiftRight:
		if (isSigned) return zeroExtend(uint64_t(sa >> (shift >= uint64_t(w) ? w - 1 : shift)), w);
		return shift >= uint64_t(w) ? 0 : ua >> shift;
	case Op::ExtractBits: {
		int first = b & 0xff, count = c & 0xff;
		if (count == 0) return 0;
		uint64_t top = isSigned ? uint64_t(sa) : ua;
		uint64_t v = first >= 64 ? (isSigned && sa < 0 ? ~uint64_t(0) : 0) : isSigned ? uint64_t(int64_t(top) >> first) : top >> first;
		return zeroExtend(count >= 64 ? v : isSigned ? uint64_t(signExtend(v, count)) : zeroExtend(v, count), w);
	}
	default: return 0;
	}
}

bool comparison(const Instruction &in, uint64_t a, uint64_t b, uint64_t c) {
	bool v;
	if (in.type == Type::Float) {
		double x = in.width == 32 ? asFloat(a) : asDouble(a), y = in.width == 32 ? asFloat(b) : asDouble(b);
		v = x != x || y != y ? in.unordered : compares(in.order, x, y);
	} else if (in.type == Type::Signed) {
		v = compares(in.order, signExtend(a, in.width), signExtend(b, in.width));
	} else {
		v = compares(in.order, zeroExtend(a, in.width), zeroExtend(b, in.width));
	}
	switch (in.combine) {
	case Combine::And: return v && c;
	case Combine::Or: return v || c;
	case Combine::Xor: return v != !!c;
	default: return v;
	}
}

uint64_t conversion(const Instruction &in, uint64_t v) {
	if (in.type == Type::TF32) return toTF32(v);
	auto made = [&](double d) { return in.width == 32 ? bits(float(d)) : bits(d); };
	if (in.from == Type::Float) {
		double d = in.fromWidth == 32 ? asFloat(v) : asDouble(v);
		if (in.type == Type::Float) {
			// Between the same widths a rounding is one to a whole number.
			if (in.width == in.fromWidth && in.text.find("i.f") != std::string::npos) d = inMode(in.rounding, [&] { return nearbyint(d); });
			if (in.saturate) d = d > 0 ? fmin(d, 1) : 0;
			return made(d);
		}
		d = inMode(in.rounding, [&] { return nearbyint(d); });
		if (d != d) return 0;
		if (in.type == Type::Signed) {
			double limit = ldexp(1, in.width - 1);
			int64_t most = int64_t(~uint64_t(0) >> (65 - in.width)); // beyond the range the nearest, as on GPUs
			return zeroExtend(uint64_t(d >= limit ? most : d < -limit ? -most - 1 : int64_t(d)), in.width);
		}
		return d <= 0 ? 0 : d >= ldexp(1, in.width) ? zeroExtend(~uint64_t(0), in.width) : uint64_t(d);
	}
	if (in.type == Type::Float) {
		if (in.from == Type::Signed) return in.width == 32 ? bits(float(signExtend(v, in.fromWidth))) : bits(double(signExtend(v, in.fromWidth)));
		return in.width == 32 ? bits(float(zeroExtend(v, in.fromWidth))) : bits(double(zeroExtend(v, in.fromWidth)));
	}
	return zeroExtend(in.from == Type::Signed ? uint64_t(signExtend(v, in.fromWidth)) : zeroExtend(v, in.fromWidth), in.width);
}

// Word is who touched four bytes of shared memory since the last barrier. Threads count from 0; -1 is none.
struct Word {
	int writer = -1, reader = -1;
	bool manyReaders = false;
	int epoch = -1;
};

// Launch is one execution of a kernel. Its blocks come one after the other, and of a block the threads, each until it
// has to wait for others.
class Launch {
public:
	Launch(const Kernel &kernel, Dim3 grid, Dim3 block, size_t dynamicShared, void **arguments)
		: kernel(kernel), grid(grid), block(block), count(size_t(block.x) * block.y * block.z), sharedSize(kernel.shared + dynamicShared),
		  parameters(kernel.parameters + 8), registers(count * kernel.registers), shared(sharedSize + 16), words(sharedSize / 4 + 4),
		  local(count * kernel.local + 16), threads(count) {
		for (size_t i = 0; i < kernel.parameterSizes.size(); i++) memcpy(&parameters[kernel.parameterOffsets[i]], arguments[i], kernel.parameterSizes[i]);
	}

	int run() {
		for (place.z = 0; place.z < grid.z; place.z++)
			for (place.y = 0; place.y < grid.y; place.y++)
				for (place.x = 0; place.x < grid.x; place.x++)
					if (int result = runBlock()) return result;
		return 0;
	}

private:
	enum State : uint8_t { Running, AtBarrier, AtWarp, Ended };
	struct Thread {
		int next; // instruction
		State state;
	};

	const Kernel &kernel;
	const Dim3 grid, block;
	const size_t count, sharedSize;
	std::vector<char> parameters;
	std::vector<uint64_t> registers; // by thread
	std::vector<char> shared;
	std::vector<Word> words;
	std::vector<char> local; // by thread
	std::vector<Thread> threads;
	Dim3 place = {};
	int epoch = 0;                       // barriers passed in the block
	uint64_t rangeBegin = 1, rangeEnd = 0; // of global memory that the last access fell in
	int result = 0;

	int runBlock() {
		std::fill(threads.begin(), threads.end(), Thread{0, Running});
		std::fill(registers.begin(), registers.end(), 0);
		std::fill(shared.begin(), shared.end(), char(0xff)); // reads as NaN and -1
		std::fill(local.begin(), local.end(), char(0xff));
		std::fill(words.begin(), words.end(), Word());
		for (epoch = 0;; epoch++) {
			size_t waiting = 0, ended = 0;
			for (size_t warp = 0; warp < count; warp += 32) {
				if (!runWarp(warp, std::min(warp + 32, count))) return result;
			}
			for (Thread &t : threads) {
				waiting += t.state == AtBarrier;
				ended += t.state == Ended;
			}
			if (waiting == 0) return 0;
			if (ended > 0) {
				fprintf(stderr, "emulated CUDA: %s: %zu of %zu threads wait at a barrier that the others never reach\n", kernel.name.c_str(), waiting, count);
				return CUDA_ERROR_LAUNCH_FAILED;
			}
			for (Thread &t : threads) t.state = Running;
		}
	}

	// runWarp runs the threads of a warp until each has ended or waits at the block's barrier.
	bool runWarp(size_t first, size_t end) {
		for (;;) {
			int at = -1; // the warp's instruction that a thread waits at
			for (size_t t = first; t < end; t++) {
				if (threads[t].state == Running && !runThread(t)) return false;
				if (threads[t].state == AtWarp) at = threads[t].next;
			}
			if (at < 0) return true;
			for (size_t t = first; t < end; t++) {
				if (threads[t].state != AtWarp || threads[t].next != at) {
					fprintf(stderr, "emulated CUDA: %s: not the whole warp reaches: %s\n", kernel.name.c_str(), kernel.code[at].text.c_str());
					result = CUDA_ERROR_LAUNCH_FAILED;
					return false;
				}
			}
			if (!multiply(kernel.code[at], first, end)) return false;
			for (size_t t = first; t < end; t++) threads[t] = {at + 1, Running};
		}
	}

	uint64_t *registersOf(size_t thread) { return &registers[thread * kernel.registers]; }

	uint64_t value(const Operand &o, size_t thread) {
		if (o.kind == Operand::Register) return registersOf(thread)[o.index];
		if (o.kind == Operand::Immediate) return o.value;
		const Dim3 self = {unsigned(thread % block.x), unsigned(thread / block.x % block.y), unsigned(thread / block.x / block.y)};
		const Dim3 *const all[] = {&self, &place, &block, &grid};
		if (o.index == int(Special::Lane)) return thread % 32;
		const Dim3 &d = *all[o.index / 3];
		return o.index % 3 == 0 ? d.x : o.index % 3 == 1 ? d.y : d.z;
	}

	// multiply computes mma.m16n8k8. Lane 4·g+t holds a of rows g and g+8 at k = t and t+4, b of column g at the same k, and
	// d of rows g and g+8 at columns 2·t and 2·t+1 (PTX ISA, "Matrix Fragments for mma.m16n8k8").
	bool multiply(const Instruction &in, size_t first, size_t end) {
		if (end - first != 32 || in.to.size() != 4 || in.operands.size() != 10) {
			fprintf(stderr, "emulated CUDA: %s: mma of a warp that isn't whole\n", kernel.name.c_str());
			result = CUDA_ERROR_LAUNCH_FAILED;
			return false;
		}
		float a[16][8], b[8][8], d[32][4];
		for (int lane = 0; lane < 32; lane++) {
			const int g = lane / 4, t = lane % 4;
			auto factor = [&](int i) { return asFloat(value(in.operands[i], first + lane) & 0xffffe000); }; // 10 bits count
			for (int i = 0; i < 4; i++) a[g + i % 2 * 8][t + i / 2 * 4] = factor(i);
			for (int i = 0; i < 2; i++) b[t + i * 4][g] = factor(4 + i);
		}
		for (int lane = 0; lane < 32; lane++) {
			for (int i = 0; i < 4; i++) {
				const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
				float sum = asFloat(value(in.operands[6 + i], first + lane));
				for (int k = 0; k < 8; k++) sum += a[row][k] * b[k][column];
				d[lane][i] = sum;
			}
		}
		for (int lane = 0; lane < 32; lane++)
			for (int i = 0; i < 4; i++) registersOf(first + lane)[in.to[i]] = bits(d[lane][i]);
		return true;
	}

	bool isGlobal(uint64_t address, size_t size) {
		if (address >= rangeBegin && address + size <= rangeEnd) return true;
		return allocationOf(address, size, rangeBegin, rangeEnd);
	}

	// touch notes an access to a word of shared memory, and returns the thread that it races with, or -1.
	int touch(Word &w, int thread, bool write) {
		if (w.epoch != epoch) w = Word{-1, -1, false, epoch};
		if (w.writer >= 0 && w.writer != thread) return w.writer;
		if (write) {
			if (w.reader >= 0 && (w.reader != thread || w.manyReaders)) return w.reader;
			w.writer = thread;
		} else if (w.reader < 0) {
			w.reader = thread;
		} else if (w.reader != thread) {
			w.manyReaders = true;
		}
		return -1;
	}

	// memory returns where an access goes to, or null after a fault.
	char *memory(const Instruction &in, size_t thread, size_t size, bool write) {
		const Operand &o = in.operands[0];
		const uint64_t address = value(o, thread) + o.offset;
		if (in.space == Space::Parameter) return &parameters[address];
		if (address % size) return fault(CUDA_ERROR_MISALIGNED_ADDRESS);
		switch (in.space) {
		case Space::Global:
			return isGlobal(address, size) ? reinterpret_cast<char *>(address) : fault(CUDA_ERROR_ILLEGAL_ADDRESS);
		case Space::Local:
			return address + size <= kernel.local ? &local[thread * kernel.local + address] : fault(CUDA_ERROR_ILLEGAL_ADDRESS);
		default:
			break;
		}
		if (address + size > sharedSize) return fault(CUDA_ERROR_ILLEGAL_ADDRESS);
		for (uint64_t w = address / 4; w <= (address + size - 1) / 4; w++) {
			if (int other = touch(words[w], thread, write); other >= 0) {
				fprintf(stderr, "emulated CUDA: %s: threads %d and %zu touch the same shared memory without a barrier between them\n", kernel.name.c_str(), other, thread);
				return fault(CUDA_ERROR_LAUNCH_FAILED);
			}
		}
		return &shared[address];
	}

	char *fault(int code) {
		result = code;
		return nullptr;
	}

	// runThread runs a thread until it ends or waits.
	bool runThread(size_t thread) {
		uint64_t *const r = registersOf(thread);
		Thread &t = threads[thread];
		for (;;) {
			const Instruction &in = kernel.code[t.next];
			if (in.guard >= 0 && !!r[in.guard] == in.guardNegated) {
				t.next++;
				continue;
			}
			auto operand = [&](size_t i) -> uint64_t { return i < in.operands.size() ? value(in.operands[i], thread) : 0; };
			const size_t bytes = in.width / 8;
			switch (in.op) {
			case Op::Load: {
				const char *from = memory(in, thread, bytes * in.to.size(), false);
				if (!from) return stop(in, thread);
				for (size_t i = 0; i < in.to.size(); i++) {
					uint64_t v = 0;
					memcpy(&v, from + i * bytes, bytes);
					if (in.type == Type::Signed && in.width < 32) v = zeroExtend(signExtend(v, in.width), 32);
					r[in.to[i]] = v;
				}
				break;
			}
			case Op::Store: {
				const size_t n = in.operands.size() - 1;
				char *to = memory(in, thread, bytes * n, true);
				if (!to) return stop(in, thread);
				for (size_t i = 0; i < n; i++) {
					uint64_t v = operand(i + 1);
					memcpy(to + i * bytes, &v, bytes);
				}
				break;
			}
			case Op::Move:
				r[in.to[0]] = operand(0) + in.operands[0].offset;
				break;
			case Op::Pack: {
				uint64_t v = 0;
				const int part = in.width / in.operands.size();
				for (size_t i = 0; i < in.operands.size(); i++) v |= zeroExtend(operand(i), part) << (i * part);
				r[in.to[0]] = v;
				break;
			}
			case Op::Unpack: {
				const uint64_t v = operand(0);
				const int part = in.width / in.to.size();
				for (size_t i = 0; i < in.to.size(); i++)
					r[in.to[i]] = zeroExtend(v >> (i * part), part);
				break;
			}
			case Op::Select:
				r[in.to[0]] = operand(2) ? operand(0) : operand(1);
				break;
			case Op::Convert:
				r[in.to[0]] = conversion(in, operand(0));
				break;
			case Op::Compare:
				r[in.to[0]] = comparison(in, operand(0), operand(1), operand(2));
				break;
			case Op::Branch:
				t.next = in.target;
				continue;
			case Op::Barrier:
				t = {t.next + 1, AtBarrier};
				return true;
			case Op::Return:
				t.state = Ended;
				return true;
			case Op::MatrixMultiplyAdd:
				t.state = AtWarp;
				return true;
			default:
				r[in.to[0]] = arithmetic(in, operand(0), operand(1), operand(2));
			}
			t.next++;
		}
	}

	bool stop(const Instruction &in, size_t thread) {
		const unsigned x = thread % block.x, y = thread / block.x % block.y, z = thread / block.x / block.y;
		fprintf(stderr, "emulated CUDA: %s: CUDA error %d in block (%u,%u,%u), thread (%u,%u,%u), at: %s\n", kernel.name.c_str(), result, place.x, place.y, place.z, x, y, z, in.text.c_str());
		return false;
	}
};

} // namespace

int run(const Kernel &kernel, Dim3 grid, Dim3 block, size_t dynamicShared, void **arguments) {
	return Launch(kernel, grid, block, dynamicShared, arguments).run();
}

} // namespace ptx
