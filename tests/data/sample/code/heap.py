# A binary heap: the smallest item is always at the front.


class Heap:
    def __init__(self, items=()):
        self._items = []
        for item in items:
            self.push(item)

    def __len__(self):
        return len(self._items)

    def push(self, item):
        items = self._items
        items.append(item)
        at = len(items) - 1
        while at > 0:
            parent = (at - 1) // 2
            if items[parent] <= items[at]:
                break
            items[parent], items[at] = items[at], items[parent]
            at = parent

    def pop(self):
        items = self._items
        smallest, last = items[0], items.pop()
        if items:
            items[0] = last
            self._sink(0)
        return smallest

    def _sink(self, at):
        items = self._items
        while True:
            child = 2 * at + 1
            if child >= len(items):
                return
            if child + 1 < len(items) and items[child + 1] < items[child]:
                child += 1
            if items[at] <= items[child]:
                return
            items[at], items[child] = items[child], items[at]
            at = child


def heap_sort(items):
    heap = Heap(items)
    return [heap.pop() for _ in range(len(heap))]


assert heap_sort([5, 1, 4, 1, 3]) == [1, 1, 3, 4, 5]
