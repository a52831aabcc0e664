"""Primes by the sieve of Eratosthenes."""


def primes_below(limit):
    """All primes below limit, in order.

    >>> primes_below(20)
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    composite = bytearray(limit)
    found = []
    for number in range(2, limit):
        if composite[number]:
            continue
        found.append(number)
        for multiple in range(number * number, limit, number):
            composite[multiple] = 1
    return found


if __name__ == "__main__":
    print(*primes_below(100))
