/* Tokens: words of two or three syllables, chosen by a mixed state. */
#include <string.h>

#include "tinyserve.h"

static const char *const SYLLABLES[] = {"ba", "ke", "lo", "mi", "nu", "ra", "se", "to", "vi", "zu", "da", "fe", "go", "hi", "ju", "pa"};

uint64_t ts_mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

/* Writes one word of at most 7 characters, the space after it included. */
size_t ts_write_token(uint64_t state, char *out) {
    size_t count = 2 + (state >> 60) % 2, length = 0;
    for (size_t i = 0; i < count; i++, state >>= 4) {
        memcpy(out + length, SYLLABLES[state & 15], 2);
        length += 2;
    }
    out[length++] = ' ';
    return length;
}
