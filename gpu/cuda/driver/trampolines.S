/* Every function of the driver API as a jump through its slot, which library.c fills. */
#if defined(__x86_64__)
#define NEEDED(f) .globl f; .hidden f; .type f, @function; f: movq slot_##f(%rip), %r11; jmp *%r11; .size f, . - f;
#elif defined(__aarch64__)
#define NEEDED(f) .globl f; .hidden f; .type f, %function; f: adrp x16, slot_##f; ldr x16, [x16, :lo12:slot_##f]; br x16; .size f, . - f;
#else
#error "there are no trampolines for this processor: build without the tag cuda"
#endif
#define OTHER(f) NEEDED(f)
	.text
#include "symbols.h"
	.section .note.GNU-stack, "", %progbits
