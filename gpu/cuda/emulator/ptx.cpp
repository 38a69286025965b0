// A small PTX interpreter: runs the very PTX that ships, with bounds checks on global
// and shared memory and a race check on shared memory.
#include "ptx.h"
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>

extern std::map<uint64_t, size_t> dev_mem;

namespace ptxi {
typedef std::string str;
typedef std::vector<str> strs;
enum Op { NONE, LD, ST, MOV, ADD, SUB, MULLO, MULWIDE, MULHI, MADLO, MADWIDE, DIV, REM, MIN, MAX, NEG, ABS, NOT, AND, OR, XOR, SHL, SHR,
	FMA, SETP, SELP, CVT, CVTA, BRA, BAR, RET, EX2, LG2, RCP, SQRT, RSQRT, ATOM, BFE, TF32, MMA };
enum Ty { U, S, B, F, P };
enum Space { GLOBAL, SHARED, PARAM };
enum Cmp { EQ, NE, LT, LE, GT, GE, LO, LS, HI, HS };
struct Opd { enum { REG, IMM, SREG } k = IMM; int r = 0; uint64_t v = 0; int64_t off = 0; };
struct Ins {
	Op op = NONE; Ty t = U, t2 = U; int w = 32, w2 = 32; Space sp = GLOBAL; Cmp cmp = EQ;
	bool unord = false, down = false, sat = false, rzi = false, guarded = false, gneg = false;
	int comb = 0; // setp .and/.or/.xor
	int guard = 0, target = 0, nv = 1, line = 0;
	int d[4] = {0, 0, 0, 0};
	Opd s[4];
	int fragment[10] = {}; // mma: a, b, c
	str text, label;
};
struct Kernel {
	str name; std::vector<size_t> psize, poff; size_t pbytes = 0, shm = 0;
	std::map<str, int> regs; std::vector<Ins> code;
};
std::vector<size_t> param_sizes(const Kernel *k) { return k->psize; }

static strs split(const str &s, const char *sep) {
	strs o; size_t i = 0;
	while ((i = s.find_first_not_of(sep, i)) != str::npos) { size_t j = s.find_first_of(sep, i); o.push_back(s.substr(i, j - i)); if (j == str::npos) break; i = j; }
	return o;
}
static str trim(const str &s) { size_t a = s.find_first_not_of(" \t\r\n"), b = s.find_last_not_of(" \t\r\n"); return a == str::npos ? "" : s.substr(a, b - a + 1); }
static bool type_of(const str &x, Ty &t, int &w) {
	if (x == "pred") { t = P; w = 1; return true; }
	if (x.size() < 2 || !strchr("usbf", x[0]) || x.find_first_not_of("0123456789", 1) != str::npos) return false;
	w = atoi(x.c_str() + 1);
	t = x[0] == 'u' ? U : x[0] == 's' ? S : x[0] == 'b' ? B : F;
	return w == 8 || w == 16 || w == 32 || w == 64;
}
struct Var { size_t off; };
static bool shared_decl(const str &st, std::map<str, Var> &vars, size_t &shm, str *dyn) {
	if (st.compare(0, 7, ".shared") && st.compare(0, 15, ".extern .shared")) return false;
	strs w = split(st, " \t\n"); size_t align = 4, n = 1; int eb = 4; str nm = w.back();
	for (size_t i = 0; i < w.size(); i++) { if (w[i] == ".align") align = atoi(w[i + 1].c_str()); Ty t; int b; if (w[i][0] == '.' && type_of(w[i].substr(1), t, b)) eb = b / 8; }
	size_t br = nm.find('['); bool is_dyn = false;
	if (br != str::npos) { n = atoi(nm.c_str() + br + 1); is_dyn = n == 0; nm = nm.substr(0, br); }
	if (is_dyn) { *dyn = nm; return true; }
	shm = (shm + align - 1) / align * align; vars[nm] = {shm}; shm += n * eb;
	return true;
}
static bool fail(str &err, const str &m) { err = m; return false; }

static bool operand(Kernel *k, const std::map<str, Var> &vars, const std::map<str, int> &pidx, str x, Opd &o, str &err) {
	x = trim(x);
	if (x[0] == '[') { // address
		x = x.substr(1, x.size() - 2); size_t p = x.find_first_of("+-", 1);
		if (p != str::npos) { o.off = strtoll(x.c_str() + p + (x[p] == '+'), 0, 0); x = x.substr(0, p); }
		x = trim(x);
	}
	static const char *sr[] = {"%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid"};
	for (int i = 0; i < 13; i++) if (x == sr[i]) { o.k = Opd::SREG; o.r = i; return true; }
	auto r = k->regs.find(x);
	if (r != k->regs.end()) { o.k = Opd::REG; o.r = r->second; return true; }
	o.k = Opd::IMM;
	auto v = vars.find(x);
	if (v != vars.end()) { o.v = v->second.off; return true; }
	auto p = pidx.find(x);
	if (p != pidx.end()) { o.v = k->poff[p->second]; return true; }
	if (x.compare(0, 2, "0f") == 0 || x.compare(0, 2, "0d") == 0) { o.v = strtoull(x.c_str() + 2, 0, 16); return true; }
	if (isdigit(x[0]) || x[0] == '-') { o.v = (uint64_t)strtoll(x.c_str(), 0, 0); return true; }
	return fail(err, "unknown operand " + x);
}
static strs args_of(const str &s) { // split on commas outside braces
	strs o; str c; int d = 0;
	for (char ch : s) { if (ch == '{') d++; if (ch == '}') d--; if (ch == ',' && !d) { o.push_back(trim(c)); c.clear(); } else c += ch; }
	if (trim(c) != "") o.push_back(trim(c));
	return o;
}
static bool decode(Kernel *k, const std::map<str, Var> &vars, const std::map<str, int> &pidx, str s, Ins &in, str &err) {
	in.text = s;
	if (s[0] == '@') { size_t sp = s.find_first_of(" \t"); str g = s.substr(1, sp - 1); in.guarded = true; if (g[0] == '!') { in.gneg = true; g = g.substr(1); } if (!k->regs.count(g)) return fail(err, "guard " + g); in.guard = k->regs[g]; s = trim(s.substr(sp)); }
	size_t sp = s.find_first_of(" \t"); str m = s.substr(0, sp); strs a = sp == str::npos ? strs() : args_of(s.substr(sp));
	strs p = split(m, "."); str o = p[0]; std::vector<std::pair<Ty, int>> ty; bool lo = 0, wide = 0, hi = 0;
	static const std::map<str, Cmp> cm = {{"eq", EQ}, {"ne", NE}, {"lt", LT}, {"le", LE}, {"gt", GT}, {"ge", GE}, {"lo", LO}, {"ls", LS}, {"hi", HI}, {"hs", HS}, {"equ", EQ}, {"neu", NE}, {"ltu", LT}, {"leu", LE}, {"gtu", GT}, {"geu", GE}};
	for (size_t i = 1; i < p.size(); i++) {
		Ty t; int w; const str &x = p[i];
		if (type_of(x, t, w)) ty.push_back({t, w});
		else if (x == "shared") in.sp = SHARED; else if (x == "param") in.sp = PARAM; else if (x == "global") in.sp = GLOBAL;
		else if (x == "local" || x == "const" ) return fail(err, "unsupported space in: " + s);
		else if (x == "v2") in.nv = 2; else if (x == "v4") in.nv = 4;
		else if (x == "lo" && o != "setp") lo = true; else if (x == "wide") wide = true; else if (x == "hi" && o != "setp") hi = true;
		else if (x == "rm") in.down = true; else if (x == "sat") in.sat = true; else if (x == "rzi") in.rzi = true;
		else if (o == "setp" && x == "and") in.comb = 1; else if (o == "setp" && x == "or") in.comb = 2; else if (o == "setp" && x == "xor") in.comb = 3;
		else if (o == "setp" && cm.count(x)) { in.cmp = cm.at(x); in.unord = x.size() == 3 && x[2] == 'u'; }
	}
	if (!ty.empty()) { in.t = ty[0].first; in.w = ty[0].second; }
	if (ty.size() > 1) { in.t2 = ty[1].first; in.w2 = ty[1].second; }
	static const std::map<str, Op> ops = {{"ld", LD}, {"ldu", LD}, {"st", ST}, {"mov", MOV}, {"add", ADD}, {"sub", SUB}, {"div", DIV}, {"rem", REM}, {"min", MIN}, {"max", MAX}, {"neg", NEG}, {"abs", ABS}, {"not", NOT}, {"and", AND}, {"or", OR}, {"xor", XOR}, {"shl", SHL}, {"shr", SHR}, {"fma", FMA}, {"setp", SETP}, {"selp", SELP}, {"cvt", CVT}, {"cvta", CVTA}, {"bra", BRA}, {"bar", BAR}, {"barrier", BAR}, {"ret", RET}, {"exit", RET}, {"ex2", EX2}, {"lg2", LG2}, {"rcp", RCP}, {"sqrt", SQRT}, {"rsqrt", RSQRT}, {"atom", ATOM}, {"red", ATOM}, {"bfe", BFE}, {"mma", MMA}};
	if (o == "mul") in.op = in.t == F ? MULLO : wide ? MULWIDE : hi ? MULHI : MULLO;
	else if (o == "mad") in.op = in.t == F ? FMA : wide ? MADWIDE : MADLO;
	else if (ops.count(o)) in.op = ops.at(o);
	else return fail(err, "unsupported instruction: " + s);
	(void)lo;
	if (in.op == CVT && m.find(".tf32") != str::npos) in.op = TF32;
	if (in.op == MMA) {
		if (m != "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" || in.guarded) return fail(err, "unsupported " + s);
		int *to[] = {in.d, in.fragment, in.fragment + 4, in.fragment + 6}, counts[] = {4, 4, 2, 4};
		for (int i = 0; i < 4; i++) {
			strs v = (int)a.size() == 4 ? args_of(a[i].substr(1, a[i].size() - 2)) : strs();
			if ((int)v.size() != counts[i]) return fail(err, "operands of " + s);
			for (int j = 0; j < counts[i]; j++) { if (!k->regs.count(v[j])) return fail(err, "operands of " + s); to[i][j] = k->regs[v[j]]; }
		}
		return true;
	}
	if (in.op == BRA) { in.label = a[0]; return true; }
	if (in.op == BAR || in.op == RET) return true;
	size_t first = 0;
	auto regs = [&](const str &x, int *d) -> bool { strs v = x[0] == '{' ? args_of(x.substr(1, x.size() - 2)) : strs{x}; if ((int)v.size() != in.nv) return false; for (size_t i = 0; i < v.size(); i++) { if (!k->regs.count(v[i])) return false; d[i] = k->regs[v[i]]; } return true; };
	if (in.op == ST) { // st [addr], val(s)
		if (!operand(k, vars, pidx, a[0], in.s[0], err)) return false;
		strs v = a[1][0] == '{' ? args_of(a[1].substr(1, a[1].size() - 2)) : strs{a[1]};
		if (in.nv == 1) return operand(k, vars, pidx, v[0], in.s[1], err);
		return regs(a[1], in.d) || fail(err, "operands of " + s);
	}
	if (o != "red") { if (!regs(a[0], in.d)) return fail(err, "destination of " + s); first = 1; } else in.d[0] = -1;
	if (in.op == ATOM && m.find(".add") == str::npos) return fail(err, "unsupported " + s);
	for (size_t i = first; i < a.size() && i - first < 4; i++) if (!operand(k, vars, pidx, a[i], in.s[i - first], err)) return false;
	if (in.op == LD && in.sp == GLOBAL && m.find("global") == str::npos) return fail(err, "generic address in " + s);
	return true;
}

bool parse(const str &raw, std::map<str, Kernel *> &out, str &err) {
	str src; // without comments
	for (size_t i = 0; i < raw.size(); i++) {
		if (raw.compare(i, 2, "//") == 0) { while (i < raw.size() && raw[i] != '\n') i++; src += '\n'; }
		else if (raw.compare(i, 2, "/*") == 0) { i = raw.find("*/", i) + 1; }
		else src += raw[i];
	}
	std::map<str, Var> gvars; size_t gshm = 0; str dyn;
	size_t i = 0;
	while (true) {
		size_t e = src.find(".entry", i);
		for (auto &st : split(src.substr(i, (e == str::npos ? src.size() : e) - i), ";")) { size_t l = st.find(".shared"); if (l != str::npos) { size_t b = st.find_last_of("\n", l); shared_decl(trim(st.substr(b == str::npos ? 0 : b)), gvars, gshm, &dyn); } }
		if (e == str::npos) break;
		size_t op = src.find('(', e), cp = src.find(')', op), ob = src.find('{', cp), cb = ob; int depth = 0;
		for (cb = ob; cb < src.size(); cb++) { if (src[cb] == '{') depth++; if (src[cb] == '}' && !--depth) break; }
		Kernel *k = new Kernel; k->name = trim(src.substr(e + 6, op - e - 6));
		std::map<str, int> pidx;
		for (auto &q : args_of(src.substr(op + 1, cp - op - 1))) { strs w = split(q, " \t\n"); Ty t; int b = 64; size_t n = 1; for (auto &x : w) if (x[0] == '.') type_of(x.substr(1), t, b); str nm = w.back(); size_t br = nm.find('['); if (br != str::npos) { n = atoi(nm.c_str() + br + 1); nm = nm.substr(0, br); } size_t sz = n * b / 8; k->pbytes = (k->pbytes + 7) / 8 * 8; pidx[nm] = k->psize.size(); k->psize.push_back(sz); k->poff.push_back(k->pbytes); k->pbytes += sz; }
		str body = src.substr(ob + 1, cb - ob - 1);
		std::replace(body.begin(), body.end(), '\n', ' ');
		std::map<str, Var> vars = gvars; k->shm = gshm; std::map<str, int> labels; std::vector<str> stm;
		str cur; int br = 0;
		for (char c : body) { // statements end at ';', labels at ':', vector operands keep their braces
			if (c == '{' && trim(cur).empty()) continue;
			if (c == '}' && trim(cur).empty() && !br) continue;
			if (c == '{') br++; if (c == '}') br--;
			if (c == ';') { stm.push_back(trim(cur)); cur.clear(); }
			else if (c == ':') { stm.push_back(trim(cur) + ":"); cur.clear(); }
			else cur += c;
		}
		strs code;
		for (auto &s : stm) {
			if (s.empty()) continue;
			if (s.compare(0, 4, ".reg") == 0) { strs w = split(s, " \t,"); for (size_t j = 2; j < w.size(); j++) { size_t lt = w[j].find('<'); if (lt == str::npos) { int id = k->regs.size(); k->regs[w[j]] = id; } else { int n = atoi(w[j].c_str() + lt + 1); str b = w[j].substr(0, lt); for (int z = 0; z < n; z++) { int id = k->regs.size(); k->regs.emplace(b + std::to_string(z), id); } } } }
			else if (shared_decl(s, vars, k->shm, &dyn)) {}
			else if (s[0] == '.' ) { if (s.compare(0, 7, ".pragma") && s.compare(0, 4, ".loc")) return fail(err, k->name + ": unsupported directive " + s); }
			else code.push_back(s);
		}
		k->shm = (k->shm + 15) / 16 * 16;
		if (dyn != "") vars[dyn] = {k->shm};
		for (auto &s : code) {
			if (s.back() == ':') { labels[s.substr(0, s.size() - 1)] = k->code.size(); continue; }
			Ins in;
			if (!decode(k, vars, pidx, s, in, err)) { err = k->name + ": " + err; return false; }
			k->code.push_back(in);
		}
		for (auto &in : k->code) if (in.op == BRA) { if (!labels.count(in.label)) return fail(err, k->name + ": no label " + in.label); in.target = labels[in.label]; }
		Ins r; r.op = RET; k->code.push_back(r);
		out[k->name] = k;
		i = cb + 1;
	}
	return !out.empty() || fail(err, "no entry");
}

static inline float f32(uint64_t v) { uint32_t u = v; float f; memcpy(&f, &u, 4); return f; }
static inline uint64_t b32(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline double f64(uint64_t v) { double f; memcpy(&f, &v, 8); return f; }
static inline uint64_t b64(double f) { uint64_t u; memcpy(&u, &f, 8); return u; }
static inline uint64_t trunc_(uint64_t v, int w) { return w == 64 ? v : v & ((1ull << w) - 1); }
static inline int64_t sext(uint64_t v, int w) { return w == 64 ? (int64_t)v : (int64_t)(v << (64 - w)) >> (64 - w); }

// mma adds the products of a warp's fragments, which lie in its lanes as the PTX ISA gives them for m16n8k8. What TF32 has no
// bits for is not looked at. registers are those of lane 0, a lane's count on.
static void mma(const Ins &in, uint64_t *registers, size_t count) {
	auto at = [&](int lane, int r) { return f32(registers[lane * count + r]); };
	auto tf32 = [&](int lane, int r) { return f32(registers[lane * count + r] & 0xffffe000); };
	float sums[32][4];
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 4; i++) {
			int row = lane / 4, column = lane % 4 * 2 + i % 2;
			sums[lane][i] = at(lane, in.fragment[6 + i]);
			for (int k = 0; k < 8; k++) sums[lane][i] += tf32(4 * row + k % 4, in.fragment[k / 4 * 2 + i / 2]) * tf32(4 * column + k % 4, in.fragment[4 + k / 4]);
		}
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 4; i++) registers[lane * count + in.d[i]] = b32(sums[lane][i]);
}

struct Shadow { int wt, we, rt, re; };
int run(Kernel *k, emu_dim3 g, emu_dim3 b, size_t dyn, void **args) {
	size_t n = (size_t)b.x * b.y * b.z, nr = k->regs.size(), sh = k->shm + dyn;
	if (sh > 49152) return 1;
	std::vector<char> param(k->pbytes + 8), shm(sh + 16);
	for (size_t i = 0; i < k->psize.size(); i++) memcpy(&param[k->poff[i]], args[i], k->psize[i]);
	std::vector<uint64_t> R(n * nr);
	std::vector<int> pc(n), state(n);
	std::vector<Shadow> sd(sh / 4 + 4);
	uint64_t lo = 1, hi = 0; // last global range hit
	auto global_ok = [&](uint64_t p, size_t w) {
		if (p >= lo && p + w <= hi) return true;
		auto it = dev_mem.upper_bound(p);
		if (it == dev_mem.begin()) return false;
		--it; lo = it->first; hi = lo + it->second;
		return p >= lo && p + w <= hi;
	};
	unsigned c[3];
	for (c[2] = 0; c[2] < g.z; c[2]++) for (c[1] = 0; c[1] < g.y; c[1]++) for (c[0] = 0; c[0] < g.x; c[0]++) {
		std::fill(pc.begin(), pc.end(), 0); std::fill(state.begin(), state.end(), 0);
		std::fill(R.begin(), R.end(), 0); memset(shm.data(), 0xff, shm.size());
		std::fill(sd.begin(), sd.end(), Shadow{-1, -1, -1, -1});
		int epoch = 0;
		for (size_t left = n; left; epoch++) {
			size_t waiting = 0, ended = 0;
			for (size_t t = 0; t < n; t++) {
				if (state[t] != 2) {
				uint64_t *r = &R[t * nr];
				unsigned sreg[13] = {(unsigned)(t % b.x), (unsigned)(t / b.x % b.y), (unsigned)(t / b.x / b.y), c[0], c[1], c[2], b.x, b.y, b.z, g.x, g.y, g.z, (unsigned)(t % 32)};
				auto val = [&](const Opd &o) -> uint64_t { return o.k == Opd::REG ? r[o.r] : o.k == Opd::SREG ? sreg[o.r] : o.v; };
				int p = pc[t], rc = 0; const Ins *in = 0;
				auto mem = [&](const Ins &i, const Opd &o, int bytes, bool write) -> char * {
					uint64_t a = val(o) + o.off;
					if (i.sp == PARAM) return &param[a];
					if (a % (i.w / 8)) { rc = 716; return 0; }
					if (i.sp == GLOBAL) { if (!global_ok(a, bytes)) { rc = 700; return 0; } return (char *)a; }
					if (a + bytes > sh) { rc = 700; return 0; }
					for (uint64_t q = a / 4; q <= (a + bytes - 1) / 4; q++) {
						Shadow &s = sd[q];
						if ((s.we == epoch && s.wt != (int)t) || (write && s.re == epoch && s.rt != (int)t)) { fprintf(stderr, "emulated CUDA: %s: shared-memory race between threads %d and %d at: %s\n", k->name.c_str(), s.we == epoch ? s.wt : s.rt, (int)t, i.text.c_str()); rc = 719; return 0; }
						if (write) { s.wt = t; s.we = epoch; } else { s.rt = t; s.re = epoch; }
					}
					return &shm[a];
				};
				for (;; p++) {
					in = &k->code[p];
					if (in->guarded && !!r[in->guard] == in->gneg) continue;
					const Ins &i = *in;
#define A val(i.s[0])
#define Bv val(i.s[1])
#define Cv val(i.s[2])
#define D r[i.d[0]]
					bool sg = i.t == S;
					switch (i.op) {
					case LD: { char *m = mem(i, i.s[0], i.w / 8 * i.nv, false); if (rc) goto stop; for (int v = 0; v < i.nv; v++) { uint64_t x = 0; memcpy(&x, m + v * i.w / 8, i.w / 8); r[i.d[v]] = sg && i.w < 32 ? trunc_(sext(x, i.w), 32) : x; } break; }
					case ST: { char *m = mem(i, i.s[0], i.w / 8 * i.nv, true); if (rc) goto stop; for (int v = 0; v < i.nv; v++) { uint64_t x = i.nv == 1 ? Bv : r[i.d[v]]; memcpy(m + v * i.w / 8, &x, i.w / 8); } break; }
					case MOV: case CVTA: D = A; break;
#define ARITH(OPC, FX, DX, IX) case OPC: if (i.t == F) D = i.w == 32 ? b32(FX) : b64(DX); else D = trunc_(IX, i.w); break;
#define fa f32(A)
#define fb f32(Bv)
#define da f64(A)
#define db f64(Bv)
					ARITH(ADD, fa + fb, da + db, A + Bv)
					ARITH(SUB, fa - fb, da - db, A - Bv)
					ARITH(MULLO, fa * fb, da * db, A * Bv)
					ARITH(DIV, fa / fb, da / db, (trunc_(Bv, i.w) == 0 ? ~0ull : sg ? (uint64_t)(sext(A, i.w) / sext(Bv, i.w)) : trunc_(A, i.w) / trunc_(Bv, i.w)))
					ARITH(MIN, fminf(fa, fb), fmin(da, db), (sg ? (sext(A, i.w) < sext(Bv, i.w)) : (trunc_(A, i.w) < trunc_(Bv, i.w))) ? A : Bv)
					ARITH(MAX, fmaxf(fa, fb), fmax(da, db), (sg ? (sext(A, i.w) > sext(Bv, i.w)) : (trunc_(A, i.w) > trunc_(Bv, i.w))) ? A : Bv)
					ARITH(NEG, -fa, -da, 0 - A)
					ARITH(ABS, fabsf(fa), fabs(da), (uint64_t)llabs(sext(A, i.w)))
					case REM: D = trunc_(Bv, i.w) == 0 ? ~0u : trunc_(sg ? (uint64_t)(sext(A, i.w) % sext(Bv, i.w)) : trunc_(A, i.w) % trunc_(Bv, i.w), i.w); break;
					case MULWIDE: D = sg ? (uint64_t)(sext(A, i.w) * sext(Bv, i.w)) : trunc_(A, i.w) * trunc_(Bv, i.w); break;
					case MULHI: D = trunc_(i.w == 32 ? (sg ? (uint64_t)(sext(A, 32) * sext(Bv, 32)) : trunc_(A, 32) * trunc_(Bv, 32)) >> 32 : sg ? (uint64_t)(((__int128)(int64_t)A * (int64_t)Bv) >> 64) : (uint64_t)(((unsigned __int128)A * Bv) >> 64), i.w); break;
					case MADLO: D = trunc_(A * Bv + Cv, i.w); break;
					case MADWIDE: D = (sg ? (uint64_t)(sext(A, i.w) * sext(Bv, i.w)) : trunc_(A, i.w) * trunc_(Bv, i.w)) + Cv; break;
					case NOT: D = i.t == P ? !A : trunc_(~A, i.w); break;
					case AND: D = A & Bv; break;
					case OR: D = A | Bv; break;
					case XOR: D = A ^ Bv; break;
					case SHL: { uint64_t q = trunc_(Bv, 32); D = q >= (unsigned)i.w ? 0 : trunc_(A << q, i.w); break; }
					case SHR: { uint64_t q = trunc_(Bv, 32); if (sg) D = trunc_((uint64_t)(sext(A, i.w) >> (q >= (unsigned)i.w ? i.w - 1 : q)), i.w); else D = q >= (unsigned)i.w ? 0 : trunc_(A, i.w) >> q; break; }
					case FMA: if (i.w == 32) { if (i.down) { volatile float x = fa, y = fb, z = f32(Cv), q; fesetround(FE_DOWNWARD); q = fmaf(x, y, z); fesetround(FE_TONEAREST); D = b32(q); } else D = b32(fmaf(fa, fb, f32(Cv))); } else D = b64(fma(da, db, f64(Cv))); break;
					case SETP: {
						bool v;
						if (i.t == F) { double x = i.w == 32 ? fa : da, y = i.w == 32 ? fb : db; if (x != x || y != y) v = i.unord || (i.cmp == NE && false); else v = i.cmp == EQ ? x == y : i.cmp == NE ? x != y : i.cmp == LT ? x < y : i.cmp == LE ? x <= y : i.cmp == GT ? x > y : x >= y; }
						else if (sg) { int64_t x = sext(A, i.w), y = sext(Bv, i.w); v = i.cmp == EQ ? x == y : i.cmp == NE ? x != y : i.cmp == LT ? x < y : i.cmp == LE ? x <= y : i.cmp == GT ? x > y : x >= y; }
						else { uint64_t x = trunc_(A, i.w), y = trunc_(Bv, i.w); v = i.cmp == EQ ? x == y : i.cmp == NE ? x != y : i.cmp == LT || i.cmp == LO ? x < y : i.cmp == LE || i.cmp == LS ? x <= y : i.cmp == GT || i.cmp == HI ? x > y : x >= y; }
						if (i.comb == 1) v = v && Cv; else if (i.comb == 2) v = v || Cv; else if (i.comb == 3) v = v != !!Cv;
						D = v; break; }
					case SELP: D = Cv ? A : Bv; break;
					case CVT: {
						uint64_t x = A;
						if (i.t == F && i.t2 == F) { double v = i.w2 == 32 ? f32(x) : f64(x); if (i.sat) v = v != v ? 0 : v < 0 ? 0 : v > 1 ? 1 : v; D = i.w == 32 ? b32((float)v) : b64(v); }
						else if (i.t == F) { if (i.t2 == S) { int64_t v = sext(x, i.w2); D = i.w == 32 ? b32((float)v) : b64((double)v); } else { uint64_t v = trunc_(x, i.w2); D = i.w == 32 ? b32((float)v) : b64((double)v); } }
						else if (i.t2 == F) { double v = i.w2 == 32 ? f32(x) : f64(x); v = i.rzi ? trunc(v) : nearbyint(v); D = trunc_(sg ? (uint64_t)(int64_t)v : (uint64_t)v, i.w); }
						else D = trunc_(i.t2 == S ? (uint64_t)sext(x, i.w2) : trunc_(x, i.w2), i.w);
						break; }
					case BRA: p = i.target - 1; break;
					case BAR: pc[t] = p + 1; state[t] = 1; waiting++; goto next;
					case RET: state[t] = 2; ended++; goto next;
					case EX2: D = b32(exp2f(fa)); break;
					case LG2: D = b32(log2f(fa)); break;
					case RCP: D = b32(1.f / fa); break;
					case SQRT: D = b32(sqrtf(fa)); break;
					case RSQRT: D = b32(1.f / sqrtf(fa)); break;
					case ATOM: { uint64_t a = val(i.s[0]) + i.s[0].off; char *m; if (i.sp == GLOBAL) { if (!global_ok(a, i.w / 8)) { rc = 700; goto stop; } m = (char *)a; } else { if (a + i.w / 8 > sh) { rc = 700; goto stop; } m = &shm[a]; } uint64_t o = 0; memcpy(&o, m, i.w / 8); uint64_t nv = i.t == F ? b32(f32(o) + fb) : trunc_(o + Bv, i.w); memcpy(m, &nv, i.w / 8); if (i.d[0] >= 0) D = o; break; }
					case BFE: { unsigned q = A, from = Bv & 255, len = Cv & 255; uint64_t x = from > 31 ? 0 : trunc_(q, 32) >> from; D = len == 0 ? 0 : sg && len < 32 ? trunc_((uint64_t)sext(trunc_(x, len), len), 32) : len < 32 ? trunc_(x, len) : x; break; }
					case TF32: D = (trunc_(A, 32) + ((A & 0x7f800000) != 0x7f800000 ? 0x1000 : 0)) & 0xffffe000; break;
					case MMA: pc[t] = p; state[t] = 3; goto next;
					case NONE: rc = 1; goto stop;
					}
				}
			stop:
				if (rc != 719) fprintf(stderr, "emulated CUDA: %s: CUDA error %d in block (%u,%u,%u) thread (%u,%u,%u) at: %s\n", k->name.c_str(), rc, c[0], c[1], c[2], sreg[0], sreg[1], sreg[2], in->text.c_str());
				return rc;
				next:;
				}
				if (t % 32 != 31 && t + 1 != n) continue;
				// The warp is through. If it stands at an mma, it goes on together from there.
				size_t first = t / 32 * 32, there = std::count(&state[first], &state[0] + t + 1, 3);
				if (!there) continue;
				if (there != 32 || std::count(&pc[first], &pc[0] + t + 1, pc[first]) != 32) { fprintf(stderr, "emulated CUDA: %s: a part of a warp is at an mma.sync\n", k->name.c_str()); return 719; }
				mma(k->code[pc[first]], &R[first * nr], nr);
				for (size_t lane = first; lane <= t; lane++) { pc[lane]++; state[lane] = 0; }
				t = first - 1;
			}
			if (waiting && waiting != left) { fprintf(stderr, "emulated CUDA: %s: divergent bar.sync\n", k->name.c_str()); return 719; }
			left -= ended;
		}
	}
	return 0;
}
} // namespace ptxi
