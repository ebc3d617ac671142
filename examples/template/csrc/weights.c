/* Weights: there is no checkpoint, a weight is a function of its place. */
#include "tinyserve.h"

uint64_t ts_weight(unsigned layer, unsigned index) {
    return ts_mix(((uint64_t)layer << 32) | index) >> 32;
}
