"""Small dense matrices, as lists of rows."""
from fractions import Fraction


def multiply(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def identity(n):
    return [[int(i == j) for j in range(n)] for i in range(n)]


def power(a, n):
    """a to the n, by squaring: about log2(n) products."""
    result = identity(len(a))
    while n:
        if n & 1:
            result = multiply(result, a)
        a = multiply(a, a)
        n >>= 1
    return result


def determinant(a):
    """By elimination, exactly."""
    a = [[Fraction(x) for x in row] for row in a]
    sign, product = 1, Fraction(1)
    for i in range(len(a)):
        pivot = next((r for r in range(i, len(a)) if a[r][i] != 0), None)
        if pivot is None:
            return Fraction(0)
        if pivot != i:
            a[i], a[pivot], sign = a[pivot], a[i], -sign
        product *= a[i][i]
        for r in range(i + 1, len(a)):
            factor = a[r][i] / a[i][i]
            a[r] = [x - factor * y for x, y in zip(a[r], a[i])]
    return sign * product


def fibonacci(n):
    return power([[1, 1], [1, 0]], n)[0][1]
