#!/usr/bin/env python3
"""Prints sdk/include/gestalt/philox_normal_table.h: the inverse of the normal distribution in fixed point.

For q odd in [1, 2^32), p = q / 2^33 in (0, 1/2): octave o counts q's leading zero bits, the next two bits choose one of
four segments, and the 29 bits left are t in [0, 1). Per segment, a polynomial of degree 5 in t, interpolated at
Chebyshev's nodes, gives the magnitude -z(p); coefficients in units of 2^-28, constant term first.
"""
import math
import statistics

DEGREE = 5


def magnitude(octave, segment, t):
    p = (1 + (segment + t) / 4) * 2.0 ** (-octave - 2)
    return -statistics.NormalDist().inv_cdf(p)


def coefficients(octave, segment):
    n = DEGREE + 1
    nodes = [0.5 + 0.5 * math.cos(math.pi * (k + 0.5) / n) for k in range(n)]
    newton = [magnitude(octave, segment, t) for t in nodes]
    for j in range(1, n):
        for i in range(n - 1, j - 1, -1):
            newton[i] = (newton[i] - newton[i - 1]) / (nodes[i] - nodes[i - j])
    poly = [0.0] * n
    for i in range(n - 1, -1, -1):  # poly = poly * (t - nodes[i]) + newton[i]
        poly = [(poly[k - 1] if k else 0.0) - nodes[i] * poly[k] for k in range(n)]
        poly[0] += newton[i]
    return [round(c * 2 ** 28) for c in poly]


print("// Written by tests/abi/normal_table.py, which explains it; included by philox.h in a function. 32 octaves, four")
print("// segments each, six coefficients each.")
for octave in range(32):
    for segment in range(4):
        print("{" + ", ".join(str(c) for c in coefficients(octave, segment)) + "},")
