#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <stdexcept>

#include "ptx.h"

namespace ptx {
namespace {

using Strings = std::vector<std::string>;

[[noreturn]] void fail(const std::string &what) { throw std::runtime_error(what); }

std::string trim(const std::string &s) {
	size_t first = s.find_first_not_of(" \t\r\n"), last = s.find_last_not_of(" \t\r\n");
	return first == std::string::npos ? "" : s.substr(first, last - first + 1);
}

bool starts(const std::string &s, const char *prefix) { return s.compare(0, strlen(prefix), prefix) == 0; }

Strings split(const std::string &s, const char *separators) {
	Strings parts;
	for (size_t i = 0; (i = s.find_first_not_of(separators, i)) != std::string::npos;) {
		size_t end = std::min(s.find_first_of(separators, i), s.size());
		parts.push_back(s.substr(i, end - i));
		i = end;
	}
	return parts;
}

// list splits at the commas that aren't inside braces.
Strings list(const std::string &s) {
	Strings parts;
	std::string part;
	int depth = 0;
	for (char c : s) {
		depth += (c == '{') - (c == '}');
		if (c == ',' && depth == 0) {
			parts.push_back(trim(part));
			part.clear();
		} else {
			part += c;
		}
	}
	if (!trim(part).empty()) parts.push_back(trim(part));
	return parts;
}

// values returns the elements of a vector {a, b}, or the one operand.
Strings values(const std::string &s) { return s[0] == '{' ? list(s.substr(1, s.size() - 2)) : Strings{s}; }

bool isType(const std::string &s, Type &type, int &width) {
	if (s == "pred") return type = Type::Predicate, width = 1, true;
	if (s == "tf32") return type = Type::TF32, width = 32, true;
	if (s.size() < 2 || !strchr("usbf", s[0]) || s.find_first_not_of("0123456789", 1) != std::string::npos) return false;
	type = s[0] == 'u' ? Type::Unsigned : s[0] == 's' ? Type::Signed : s[0] == 'f' ? Type::Float : Type::Bits;
	width = atoi(s.c_str() + 1);
	return width == 8 || width == 16 || width == 32 || width == 64;
}

std::string withoutComments(const std::string &source) {
	std::string out;
	for (size_t i = 0; i < source.size(); i++) {
		if (source.compare(i, 2, "//") == 0) {
			i = std::min(source.find('\n', i), source.size());
			out += '\n';
		} else if (source.compare(i, 2, "/*") == 0) {
			i = source.find("*/", i);
			if (i == std::string::npos) fail("a comment doesn't end");
			i++;
		} else {
			out += source[i];
		}
	}
	return out;
}

// Memory is a space whose variables are laid out one after the other.
struct Memory {
	std::map<std::string, uint64_t> offsets;
	size_t size = 0;
	std::string dynamic; // the variable without a size, which begins where the others end

	// declare takes ".shared .align 4 .b8 name[1024]", with or without .extern and .visible before it.
	void declare(const std::string &statement) {
		Strings words = split(statement, " \t\n");
		size_t align = 4, count = 1, width = 4;
		for (size_t i = 0; i < words.size(); i++) {
			Type type;
			int bits;
			if (words[i] == ".align") align = atoi(words.at(i + 1).c_str());
			if (words[i][0] == '.' && isType(words[i].substr(1), type, bits)) width = bits / 8;
		}
		std::string name = words.back();
		if (size_t bracket = name.find('['); bracket != std::string::npos) {
			count = atoi(name.c_str() + bracket + 1);
			name = name.substr(0, bracket);
			if (count == 0) {
				dynamic = name;
				return;
			}
		}
		size = (size + align - 1) / align * align;
		offsets[name] = size;
		size += count * width;
	}
};

bool declares(const std::string &statement, const char *space) {
	for (const std::string &word : split(statement, " \t\n")) {
		if (word == space) return true;
		if (word != ".extern" && word != ".visible" && word != ".weak") return false;
	}
	return false;
}

const std::map<std::string, Op> operations = {
	{"ld", Op::Load}, {"ldu", Op::Load}, {"st", Op::Store}, {"mov", Op::Move},
	{"cvta", Op::Move}, {"selp", Op::Select}, {"cvt", Op::Convert}, {"add", Op::Add}, {"sub", Op::Subtract},
	{"fma", Op::FusedMultiplyAdd}, {"div", Op::Divide}, {"rem", Op::Remainder}, {"min", Op::Minimum}, {"max", Op::Maximum},
	{"neg", Op::Negate}, {"abs", Op::Absolute}, {"not", Op::Not}, {"and", Op::And}, {"or", Op::Or}, {"xor", Op::Xor},
	{"shl", Op::ShiftLeft}, {"shr", Op::ShiftRight}, {"bfe", Op::ExtractBits}, {"setp", Op::Compare},
	{"ex2", Op::Exp2}, {"lg2", Op::Log2}, {"rcp", Op::Reciprocal}, {"sqrt", Op::SquareRoot}, {"rsqrt", Op::ReciprocalSquareRoot},
	{"bra", Op::Branch}, {"bar", Op::Barrier}, {"barrier", Op::Barrier}, {"ret", Op::Return}, {"exit", Op::Return},
	{"mma", Op::MatrixMultiplyAdd},
};
const std::map<std::string, Order> orders = {
	{"eq", Order::Equal}, {"ne", Order::NotEqual}, {"lt", Order::Less}, {"le", Order::LessEqual}, {"gt", Order::Greater},
	{"ge", Order::GreaterEqual}, {"lo", Order::Less}, {"ls", Order::LessEqual}, {"hi", Order::Greater}, {"hs", Order::GreaterEqual},
};
const std::map<std::string, Space> spaces = {
	{"global", Space::Global}, {"shared", Space::Shared}, {"local", Space::Local}, {"param", Space::Parameter},
};
const std::map<std::string, Combine> combinations = {{"and", Combine::And}, {"or", Combine::Or}, {"xor", Combine::Xor}};
const std::map<std::string, Rounding> roundings = {
	{"rn", Rounding::Nearest}, {"rm", Rounding::Down}, {"rp", Rounding::Up}, {"rz", Rounding::Zero},
	{"rni", Rounding::Nearest}, {"rmi", Rounding::Down}, {"rpi", Rounding::Up}, {"rzi", Rounding::Zero}, {"rna", Rounding::Nearest},
};
// Words that change nothing here: caches, scopes, flushing of denormals, approximations and uniformity.
const Strings meaningless = {
	"nc", "ca", "cg", "cs", "lu", "cv", "volatile", "relaxed", "gpu", "cta", "sys", "ftz", "approx", "full", "uni", "sync",
	"aligned", "to", "lo", "row", "col", "m16n8k8", "L1::no_allocate", "L2::128B", "L2::256B",
};

// Body parses the statements of one kernel.
class Body {
public:
	Body(Kernel &kernel, Memory shared) : kernel(kernel), shared(std::move(shared)) {}

	void parameters(const std::string &declarations) {
		for (const std::string &declaration : list(declarations)) {
			Strings words = split(declaration, " \t\n");
			Type type;
			int width = 64;
			for (const std::string &word : words) if (word[0] == '.') isType(word.substr(1), type, width);
			size_t size = width / 8, &end = kernel.parameters;
			std::string name = words.back();
			if (size_t bracket = name.find('['); bracket != std::string::npos) {
				size *= atoi(name.c_str() + bracket + 1);
				name = name.substr(0, bracket);
			}
			end = (end + 7) / 8 * 8;
			parameterOffsets[name] = end;
			kernel.parameterSizes.push_back(size);
			kernel.parameterOffsets.push_back(end);
			end += size;
		}
	}

	void statements(const std::string &text) {
		Strings code;
		std::string statement;
		int depth = 0; // of a vector's braces; those of a scope stand alone
		for (char c : text) {
			bool alone = trim(statement).empty();
			if ((c == '{' || (c == '}' && depth == 0)) && alone) continue;
			depth += (c == '{') - (c == '}');
			bool label = c == ':' && trim(statement).find_first_of(" .") == std::string::npos;
			if (c == ';' || label) {
				add(trim(statement) + (label ? ":" : ""), code);
				statement.clear();
			} else {
				statement += c == '\n' ? ' ' : c;
			}
		}
		kernel.shared = (shared.size + 15) / 16 * 16;
		kernel.local = local.size;
		if (!shared.dynamic.empty()) shared.offsets[shared.dynamic] = kernel.shared;
		std::map<std::string, int> labels;
		int count = 0;
		for (const std::string &s : code) {
			if (s.back() == ':') labels[s.substr(0, s.size() - 1)] = count;
			else count++;
		}
		for (const std::string &s : code) {
			if (s.back() != ':') kernel.code.push_back(instruction(s, labels));
		}
		kernel.code.push_back(Instruction());
		kernel.registers = registers.size();
	}

private:
	Kernel &kernel;
	Memory shared, local;
	std::map<std::string, int> registers;
	std::map<std::string, uint64_t> parameterOffsets;

	void add(const std::string &statement, Strings &code) {
		if (starts(statement, ".reg")) declareRegisters(statement);
		else if (declares(statement, ".shared")) shared.declare(statement);
		else if (declares(statement, ".local")) local.declare(statement);
		else if (starts(statement, ".pragma") || starts(statement, ".loc")) return;
		else if (statement[0] == '.') fail(kernel.name + ": directive that isn't known: " + statement);
		else if (!statement.empty()) code.push_back(statement);
	}

	void declareRegisters(const std::string &statement) {
		Strings words = split(statement, " \t,");
		for (size_t i = 2; i < words.size(); i++) {
			size_t bracket = words[i].find('<');
			if (bracket == std::string::npos) {
				registers.emplace(words[i], registers.size());
				continue;
			}
			for (int n = atoi(words[i].c_str() + bracket + 1), j = 0; j < n; j++)
				registers.emplace(words[i].substr(0, bracket) + std::to_string(j), registers.size());
		}
	}

	int reg(const std::string &name) {
		auto r = registers.find(name);
		if (r == registers.end()) fail(kernel.name + ": register that isn't declared: " + name);
		return r->second;
	}

	Operand operand(std::string s) {
		Operand o;
		if (s[0] == '[') {
			s = s.substr(1, s.size() - 2);
			if (size_t sign = s.find_first_of("+-", 1); sign != std::string::npos) {
				o.offset = strtoll(s.c_str() + sign + (s[sign] == '+'), nullptr, 0);
				s = trim(s.substr(0, sign));
			}
		}
		static const Strings specials = {"%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%ntid.x",
			"%ntid.y", "%ntid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid"};
		if (auto special = std::find(specials.begin(), specials.end(), s); special != specials.end()) {
			o.kind = Operand::SpecialRegister;
			o.index = special - specials.begin();
			return o;
		}
		if (auto r = registers.find(s); r != registers.end()) {
			o.kind = Operand::Register;
			o.index = r->second;
			return o;
		}
		for (const auto *names : {&shared.offsets, &local.offsets, &parameterOffsets}) {
			if (auto name = names->find(s); name != names->end()) {
				o.value = name->second;
				return o;
			}
		}
		if (starts(s, "0f") || starts(s, "0d") || starts(s, "0F") || starts(s, "0D")) o.value = strtoull(s.c_str() + 2, nullptr, 16);
		else if (isdigit(s[0])) o.value = strtoull(s.c_str(), nullptr, 0);
		else if (s[0] == '-') o.value = strtoll(s.c_str(), nullptr, 0);
		else fail(kernel.name + ": operand that isn't known: " + s);
		return o;
	}

	Instruction instruction(std::string s, const std::map<std::string, int> &labels) {
		Instruction in;
		in.text = s;
		if (s[0] == '@') {
			size_t space = s.find_first_of(" \t");
			in.guardNegated = s[1] == '!';
			in.guard = reg(s.substr(1 + in.guardNegated, space - 1 - in.guardNegated));
			s = trim(s.substr(space));
		}
		size_t space = std::min(s.find_first_of(" \t"), s.size());
		Strings words = split(s.substr(0, space), "."), operands = list(s.substr(space));
		modifiers(in, words);
		switch (in.op) {
		case Op::Branch: {
			auto label = labels.find(operands.at(0));
			if (label == labels.end()) fail(kernel.name + ": label that isn't there: " + operands.at(0));
			in.target = label->second;
			return in;
		}
		case Op::Barrier:
		case Op::Return:
			return in;
		case Op::Store: // the address, then what is stored
			in.operands.push_back(operand(operands.at(0)));
			for (const std::string &v : values(operands.at(1))) in.operands.push_back(operand(v));
			return in;
		default:
			break;
		}
		if (operands.empty()) fail(kernel.name + ": instruction without operands: " + in.text);
		for (const std::string &v : values(operands[0])) in.to.push_back(reg(v));
		for (size_t i = 1; i < operands.size(); i++) {
			for (const std::string &v : values(operands[i])) in.operands.push_back(operand(v));
		}
		if (in.op == Op::Move && in.to.size() > 1) in.op = Op::Unpack;
		if (in.op == Op::Move && in.operands.size() > 1) in.op = Op::Pack;
		return in;
	}

	void modifiers(Instruction &in, const Strings &words) {
		auto unknown = [&] { fail(kernel.name + ": instruction that isn't known: " + in.text); };
		bool wide = false, high = false, typed = false;
		const std::string &name = words[0];
		int types = 0;
		for (size_t i = 1; i < words.size(); i++) {
			const std::string &w = words[i];
			Type type;
			int width;
			if (isType(w, type, width)) {
				// Converting to TF32 keeps the bits' width; mma's types are those of its shape.
				(types == 0 ? in.type : in.from) = type;
				(types == 0 ? in.width : in.fromWidth) = width;
				typed = ++types > 0;
			} else if (name == "setp" && (orders.count(w) || (w.size() == 3 && w[2] == 'u' && orders.count(w.substr(0, 2))))) {
				in.order = orders.at(w.substr(0, 2));
				in.unordered = w.size() == 3;
			} else if (name == "setp" && combinations.count(w)) {
				in.combine = combinations.at(w);
			} else if (spaces.count(w)) {
				in.space = spaces.at(w);
			} else if (roundings.count(w)) {
				in.rounding = roundings.at(w);
			} else if (w == "NaN" && (name == "min" || name == "max")) {
				in.unordered = true;
			} else if (w == "wide") {
				wide = true;
			} else if (w == "hi") {
				high = true;
			} else if (w == "sat") {
				in.saturate = true;
			} else if (w != "v2" && w != "v4" && std::find(meaningless.begin(), meaningless.end(), w) == meaningless.end()) {
				unknown();
			}
		}
		if (name == "mul") in.op = wide ? Op::MultiplyWide : high ? Op::MultiplyHigh : Op::Multiply;
		else if (name == "mad") in.op = in.type == Type::Float ? Op::FusedMultiplyAdd : wide ? Op::MultiplyAddWide : Op::MultiplyAdd;
		else if (operations.count(name)) in.op = operations.at(name);
		else unknown();
		if ((in.type == Type::Float && in.width == 16) || (in.from == Type::Float && in.fromWidth == 16)) unknown();
		if (name == "mad" && high) unknown();
		if (name == "mma" && (in.text.find(".m16n8k8.row.col.f32.tf32.tf32.f32") == std::string::npos)) unknown();
		if ((name == "ld" || name == "st") && in.text.find(".global") == std::string::npos && in.space == Space::Global)
			fail(kernel.name + ": address of an unknown space: " + in.text);
		if (!typed && in.op != Op::Branch && in.op != Op::Barrier && in.op != Op::Return) unknown();
	}
};

std::map<std::string, Kernel> parseModule(const std::string &source) {
	std::map<std::string, Kernel> kernels;
	Memory shared; // of the file's own declarations
	for (size_t i = 0;;) {
		size_t entry = source.find(".entry", i);
		for (const std::string &s : split(source.substr(i, std::min(entry, source.size()) - i), ";")) {
			size_t at = s.find(".shared");
			if (at == std::string::npos) continue;
			size_t line = s.find_last_of('\n', at);
			shared.declare(trim(s.substr(line == std::string::npos ? 0 : line)));
		}
		if (entry == std::string::npos) break;
		size_t open = source.find('(', entry), close = source.find(')', open), begin = source.find('{', close), end = begin;
		int depth = 0;
		for (; end < source.size(); end++) {
			if (source[end] == '{') depth++;
			if (source[end] == '}' && --depth == 0) break;
		}
		if (end >= source.size()) fail("a kernel doesn't end");
		Kernel kernel;
		kernel.name = trim(source.substr(entry + 6, open - entry - 6));
		Body body(kernel, shared);
		body.parameters(source.substr(open + 1, close - open - 1));
		body.statements(source.substr(begin + 1, end - begin - 1));
		kernels.emplace(kernel.name, std::move(kernel));
		i = end + 1;
	}
	if (kernels.empty()) fail("there is no kernel in it");
	return kernels;
}

} // namespace

std::map<std::string, Kernel> parse(const std::string &source, std::string &error) {
	try {
		return parseModule(withoutComments(source));
	} catch (const std::exception &e) {
		error = e.what();
		return {};
	}
}

} // namespace ptx
