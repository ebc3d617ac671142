#ifndef TINYSERVE_H
#define TINYSERVE_H

#include <stddef.h>
#include <stdint.h>

#define TS_ALIGNMENT 64

uint64_t ts_mix(uint64_t value);
size_t ts_write_token(uint64_t state, char *out);
size_t ts_pool_bytes(unsigned num_tokens, unsigned query_len);
uint64_t ts_capture(unsigned num_tokens, unsigned query_len);
uint64_t ts_weight(unsigned layer, unsigned index);

#endif
