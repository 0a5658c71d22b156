"""
Ed25519 signatures checked in plain Python: RFC 8032 section 5.1.

For `verify`, in which it travels to people who have nothing but Python; slow, and not for signing.
Points are (X, Y, Z, T) with x = X/Z, y = Y/Z, xy = T/Z.
"""

from __future__ import annotations

from hashlib import sha512

TYPE_CHECKING = False
if TYPE_CHECKING:
    Point = tuple[int, int, int, int]

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)


def _add(a: Point, b: Point) -> Point:
    left = (a[1] - a[0]) * (b[1] - b[0]) % _P
    right = (a[1] + a[0]) * (b[1] + b[0]) % _P
    c, d = 2 * a[3] * b[3] * _D % _P, 2 * a[2] * b[2] % _P
    e, f, g, h = right - left, d - c, d + c, right + left
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _times(scalar: int, point: Point) -> Point:
    total = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = _add(total, point)
        point = _add(point, point)
        scalar >>= 1
    return total


def _point(data: bytes) -> Point:
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if y >= _P or (x * x - square) % _P or (not x and sign):
        raise ValueError("not a point")
    if x & 1 != sign:
        x = _P - x
    return (x, y, 1, x * y % _P)


_BASE = _point(bytes([0x58]) + bytes([0x66]) * 31)


def is_signed(message: bytes, signature: bytes, public: bytes) -> bool:
    """Return whether *signature* is the Ed25519 signature of *message* by *public*."""
    if (len(signature), len(public)) != (64, 32):
        return False
    s = int.from_bytes(signature[32:], "little")
    digest = sha512(signature[:32] + public + message).digest()
    try:
        r, key = _point(signature[:32]), _point(public)
    except ValueError:
        return False
    a, b = _times(s, _BASE), _add(r, _times(int.from_bytes(digest, "little") % _L, key))
    is_same = (a[0] * b[2] - b[0] * a[2]) % _P == (a[1] * b[2] - b[1] * a[2]) % _P == 0
    return is_same and s < _L
